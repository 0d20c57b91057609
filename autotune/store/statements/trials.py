"""Statements on the life of a trial: proposing, leases, results.

Each function runs in the caller's transaction. Rows are locked in one order, a trial before its study, and
several trials by id, so that writers on PostgreSQL never wait for each other in a circle.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect

from autotune.errors import InputError
from autotune.measure.outcome import Outcome, Reading
from autotune.status import Status
from autotune.store.documents import encode_metrics
from autotune.store.records import NewTrial, Place, TrialRecord
from autotune.store.schema import OPEN, SEARCHED, pauses, readings, studies, trials
from autotune.store.statements.lookup import read_trial, select_trials
from autotune.store.statements.parts import in_parts
from autotune.store.statements.prepared import Direct, Prepared, Row, insert_into
from autotune.store.statements.room import Room, room_left
from autotune.store.statements.studies import ENDED

NOT_TOLD = -1
"""What :func:`finish` answers for a trial that was lost: it has no place in the order of results."""

_BLANK: dict[str, Any] = {
    "worker": "",
    "started_at": None,
    "finished_at": None,
    "phases": {},
    "metrics": "{}",
    "message": "",
    "phase": "",
    "exit_code": None,
    "signal": None,
    "peak_memory": None,
    "stderr": "",
    "facts": {},
    "environment_hash": "",
    "artifacts": {},
}
"""The columns of a trial of which nothing is known yet."""

# -- proposing -----------------------------------------------------------------------------------


def _insert_unless_searched(dialect: Dialect) -> sa.Insert:
    once: sa.Insert = insert_into(dialect, trials).on_conflict_do_nothing(
        index_elements=[trials.c.study_id, trials.c.hash], index_where=sa.text(SEARCHED)
    )
    return once.returning(trials.c.id)


_INSERT = Prepared(_insert_unless_searched, columns=[c.name for c in trials.c if c is not trials.c.id])
_COUNT_UP = Prepared(
    sa.update(studies).where(studies.c.id == sa.bindparam("study")).values(next_number=sa.bindparam("next"))
)


def propose(
    direct: Direct,
    place: Place,
    proposals: Sequence[NewTrial],
    rooms: Sequence[Room],
    worker: str | None,
    lease_until: float,
    now: float,
) -> list[TrialRecord | None]:
    """Write trials down, ``running`` where a ``worker`` has them already, else ``waiting``.

    ``None`` for a search trial that the study has already. Ends with the first that finds no room.
    """
    first, left = room_left(direct, place.study, rooms)
    number = first
    common = _BLANK | {
        "study_id": place.study,
        "session_id": place.session,
        "segment_id": place.segment,
        "status": Status.WAITING.value,
        "told": None,
        "attempt": 1,
        "lease_until": lease_until,
        "proposed_at": now,
        "reading_count": 0,
    }
    if worker is not None:
        common |= {"status": Status.RUNNING.value, "worker": worker, "started_at": now}
    written: list[TrialRecord | None] = []
    for new in proposals:
        if left is not None and number - first == left:
            break
        row = common | vars(new) | {"number": number, "hash": new.configuration.hash}
        inserted = _INSERT.row(direct, row)
        if inserted is None:
            written.append(None)
            continue
        row |= {"id": inserted[0], "status": Status(row["status"]), "metrics": {}}
        written.append(TrialRecord(**row))
        number += 1
    if number > first:
        _COUNT_UP.run(direct, {"study": place.study, "next": number})
    return written


# -- leases --------------------------------------------------------------------------------------

_START = Prepared(
    sa.update(trials)
    .where(trials.c.id == sa.bindparam("trial"), sa.text(f"({OPEN} OR status = 'lost')"))
    .values(
        status=Status.RUNNING.value,
        worker=sa.bindparam("by"),
        started_at=sa.bindparam("now"),
        lease_until=sa.bindparam("until"),
        message="",
    )
)


def start(direct: Direct, trial_id: int, worker: str, lease_until: float, now: float) -> None:
    """A worker begins: also with a trial that was taken for lost, for it evidently is not.

    Nothing happens to a trial that is finished.
    """
    values = {"trial": trial_id, "by": worker, "now": now, "until": lease_until}
    if not _START.run(direct, values):
        _require(direct, trial_id)


def renew(connection: sa.Connection, trial_ids: Sequence[int], lease_until: float) -> None:
    """Leases of the trials that are still waiting or running."""
    for some in in_parts(sorted(set(trial_ids))):
        held = _held(trials.c.id.in_(some))
        connection.execute(sa.update(trials).where(trials.c.id.in_(held)).values(lease_until=lease_until))


def expire(
    connection: sa.Connection, study_id: int, now: float, alive: Collection[int] = ()
) -> list[TrialRecord]:
    """Mark what is past its lease as lost, and return it; each loss is returned to one caller only.

    What the sessions ``alive`` have is left to them.
    """
    out = (trials.c.study_id == study_id, trials.c.lease_until <= now, trials.c.session_id.not_in(alive))
    ids = connection.scalars(_held(*out)).all()
    why = sa.case(
        (trials.c.message != "", trials.c.message),  # it waited to be tried again
        (trials.c.lease_until == ENDED, "its session ended before it did"),
        else_="its worker gave no sign of life until its lease ran out",
    )
    lost: list[TrialRecord] = []
    for some in in_parts(ids):
        these = trials.c.id.in_(some)
        connection.execute(sa.update(trials).where(these).values(status=Status.LOST.value, message=why))
        counted = sa.update(readings).where(readings.c.trial_id.in_(some), readings.c.discarded == "")
        connection.execute(counted.values(discarded=Status.LOST.value))
        lost += select_trials(connection, these)
    return lost


def retry(
    connection: sa.Connection,
    trial_id: int,
    session_id: int | None,
    segment_id: int | None,
    lease_until: float,
    counts: bool,
) -> TrialRecord | None:
    """Put a lost trial back; ``None`` where it is not lost (any more). Until it begins it says why it was."""
    row = _BLANK | {
        "message": trials.c.message,
        "status": Status.WAITING.value,
        "attempt": trials.c.attempt + int(counts),
        "lease_until": lease_until,
    }
    row |= {} if session_id is None else {"session_id": session_id}
    row |= {} if segment_id is None else {"segment_id": segment_id}
    again = connection.execute(
        sa.update(trials).where(trials.c.id == trial_id, trials.c.status == Status.LOST.value).values(**row)
    )
    if again.rowcount == 0:
        _require(Direct.through(connection), trial_id)
        return None
    return read_trial(connection, trial_id)


def _held(*conditions: sa.ColumnElement[bool]) -> sa.Select[int]:
    """Ids of unfinished trials, which PostgreSQL locks one after the other in this order."""
    return sa.select(trials.c.id).where(sa.text(OPEN), *conditions).order_by(trials.c.id).with_for_update()


def _require(direct: Direct, trial_id: int) -> Row:
    """How a trial stands: its study, status, place among the results and number of readings."""
    standing = _STANDING.row(direct, {"trial": trial_id})
    if standing is None:
        raise InputError(f"there is no trial with the id {trial_id} in this store")
    return standing


# -- results -------------------------------------------------------------------------------------

_STANDING = Prepared(
    sa.select(trials.c.study_id, trials.c.status, trials.c.told, trials.c.reading_count)
    .where(trials.c.id == sa.bindparam("trial"))
    .with_for_update()
)
_NEXT_TOLD = Prepared(
    sa.update(studies)
    .where(studies.c.id == sa.bindparam("study"))
    .values(next_told=studies.c.next_told + 1)
    .returning(studies.c.next_told - 1)
)
_RESULT = {"status", "told", "reading_count", *_BLANK} - {"worker", "started_at"}
_FINISH = Prepared(
    sa.update(trials)
    .where(trials.c.id == sa.bindparam("trial"))
    .values(
        {name: sa.bindparam(f"new_{name}") for name in sorted(_RESULT)}
        | {"worker": sa.func.coalesce(sa.bindparam("by", type_=sa.Text), trials.c.worker)}
    )
)
_READ_ON = Prepared(
    sa.update(trials)
    .where(trials.c.id == sa.bindparam("trial"))
    .values(reading_count=sa.bindparam("count"), lease_until=sa.bindparam("until"))
)
_SET_ASIDE = Prepared(
    sa.update(readings)
    .where(readings.c.trial_id == sa.bindparam("trial"), readings.c.discarded == "")
    .values(discarded=Status.LOST.value)
)
_COUNT_AGAIN = Prepared(
    sa.update(readings)
    .where(
        readings.c.trial_id.in_(
            sa.select(trials.c.id).where(trials.c.id == sa.bindparam("trial"), sa.text(f"NOT {SEARCHED}"))
        ),
        readings.c.discarded == Status.LOST.value,
    )
    .values(discarded="")
)
"""A trial of a finale is not put back, so that all it has read is of its late result. What a search trial has
read before its result is of an earlier attempt."""
_INSERT_READINGS = Prepared(sa.insert(readings), columns=[c.name for c in readings.c])


def finish(
    direct: Direct,
    trial_id: int,
    outcome: Outcome,
    environment_hash: str,
    artifact_hashes: Mapping[str, str],
    now: float,
) -> int:
    """Write a result down, once: the first one counts. Returns its place in the order of results.

    A trial that was taken for lost takes its late result, and what a finale has read of it counts again. An
    outcome that is itself ``lost`` is no result: the trial can be tried again, and what it read is kept as
    discarded.
    """
    study_id, status, told, earlier = _require(direct, trial_id)
    if Status(status).finished:
        return int(told)
    if outcome.status.finished:
        # Given out while the study's row is held: whoever sees a result sees all before it.
        [(told,)] = _NEXT_TOLD.rows(direct, {"study": study_id})
    result = {
        "trial": trial_id,
        "by": outcome.worker or None,
        "new_status": outcome.status.value,
        "new_told": told,
        "new_finished_at": now,
        "new_phases": dict(outcome.phases),
        "new_metrics": encode_metrics(outcome.metrics),
        "new_reading_count": earlier + len(outcome.readings),
        "new_message": outcome.message,
        "new_phase": outcome.phase,
        "new_exit_code": outcome.exit_code,
        "new_signal": outcome.signal,
        "new_peak_memory": outcome.peak_memory,
        "new_stderr": outcome.stderr,
        "new_facts": outcome.facts,
        "new_environment_hash": environment_hash,
        "new_artifacts": artifact_hashes,
    }
    _FINISH.run(direct, result)
    if earlier and not outcome.status.finished:
        _SET_ASIDE.run(direct, {"trial": trial_id})
    elif earlier and status == Status.LOST:
        _COUNT_AGAIN.run(direct, {"trial": trial_id})
    if outcome.readings:
        lost = "" if outcome.status.finished else Status.LOST.value
        _INSERT_READINGS.run_for_each(
            direct,
            (_reading_row(trial_id, seq, r, lost) for seq, r in enumerate(outcome.readings, earlier)),
        )
    return NOT_TOLD if told is None else int(told)


def keep_readings(
    direct: Direct, trial_id: int, first: int, taken: Sequence[Reading], lease_until: float
) -> None:
    """Keep the readings of an unfinished trial from the place ``first`` on; those that are there stay.

    Its lease is renewed.
    """
    _, status, _, there = _require(direct, trial_id)
    if Status(status).finished:
        return
    new = enumerate(taken[there - first :], there)
    _INSERT_READINGS.run_for_each(direct, (_reading_row(trial_id, seq, r, "") for seq, r in new))
    count = max(there, first + len(taken))
    _READ_ON.run(direct, {"trial": trial_id, "count": count, "until": lease_until})


_PAUSED = Prepared(
    sa.select(pauses.c.told).where(
        pauses.c.trial_id == sa.bindparam("trial"), pauses.c.step == sa.bindparam("step")
    )
)
_INSERT_PAUSE = Prepared(sa.insert(pauses), columns=[c.name for c in pauses.c if c is not pauses.c.id])


def pause(direct: Direct, trial_id: int, step: int, outcome: Outcome) -> int:
    """Write down, once, what is known of a trial after this step. Returns its place in the order of results.

    Nothing happens to a trial that is finished: the answer is the place of its result.
    """
    study_id, status, told, _ = _require(direct, trial_id)
    if Status(status).finished:
        return int(told)
    before = _PAUSED.row(direct, {"trial": trial_id, "step": step})
    if before is not None:
        return int(before[0])
    [(told,)] = _NEXT_TOLD.rows(direct, {"study": study_id})
    row = {
        "study_id": study_id,
        "trial_id": trial_id,
        "told": told,
        "step": step,
        "phases": dict(outcome.phases),
        "metrics": encode_metrics(outcome.metrics),
        "peak_memory": outcome.peak_memory,
        "facts": outcome.facts,
    }
    _INSERT_PAUSE.run(direct, row)
    return int(told)


def _reading_row(trial_id: int, seq: int, reading: Reading, lost: str) -> dict[str, Any]:
    return {
        "trial_id": trial_id,
        "seq": seq,
        "metric": reading.metric,
        "value": reading.value,
        "at": reading.at,
        "discarded": reading.discarded or lost,
        "context": reading.context or None,
    }
