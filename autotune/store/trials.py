"""Statements on trials: proposing, leases, results, and reading them back.

Each function runs in the caller's transaction. Rows are locked in one order, a trial before its study, and
several trials by id, so that writers on PostgreSQL never wait for each other in a circle. The
statements that every trial needs are built once: compiling them is then a look into a cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from autotune.errors import InputError
from autotune.measure.outcome import Outcome, Reading
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.documents import decode_metrics, encode_metrics
from autotune.store.records import NewTrial, TrialRecord
from autotune.store.schema import OPEN, readings, studies, trials
from autotune.store.studies import ENDED, lock_study

NOT_TOLD = -1
"""What :func:`finish` answers for a trial that was lost: it has no place in the order of results."""

_AT_ONCE = 500
"""How many values one statement is given; SQLite's own limit may be as low as 999."""

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

_INSERT = sa.insert(trials)
_IDS = (
    sa.select(trials.c.id)
    .where(trials.c.study_id == sa.bindparam("study_id"), trials.c.number >= sa.bindparam("first"))
    .order_by(trials.c.number)
)
_SEARCHED = sa.select(trials.c.hash).where(
    trials.c.study_id == sa.bindparam("study_id"),
    sa.text("purpose = 'search'"),  # as literal text, so that the partial index serves
    trials.c.hash.in_(sa.bindparam("hashes", expanding=True)),
)
_COUNT_UP = (
    sa.update(studies)
    .where(studies.c.id == sa.bindparam("study"))
    .values(next_number=studies.c.next_number + sa.bindparam("more"))
)


def propose(
    connection: sa.Connection,
    study_id: int,
    session_id: int,
    segment_id: int,
    proposals: Sequence[NewTrial],
    lease_until: float,
    now: float,
) -> list[TrialRecord | None]:
    """Write trials down as ``waiting``; ``None`` for a search trial that the study has already."""
    first = number = lock_study(connection, study_id)
    taken = _already_searched(connection, study_id, proposals)
    chosen: list[dict[str, Any] | None] = []
    for new in proposals:
        if new.purpose == "search" and new.configuration.hash in taken:
            chosen.append(None)
            continue
        if new.purpose == "search":
            taken.add(new.configuration.hash)
        chosen.append(
            _BLANK
            | vars(new)
            | {
                "study_id": study_id,
                "session_id": session_id,
                "segment_id": segment_id,
                "number": number,
                "hash": new.configuration.hash,
                "status": Status.WAITING.value,
                "told": None,
                "attempt": 1,
                "lease_until": lease_until,
                "proposed_at": now,
                "reading_count": 0,
            }
        )
        number += 1
    rows = [row for row in chosen if row is not None]
    if not rows:
        return [None] * len(chosen)
    connection.execute(_INSERT, rows)
    connection.execute(_COUNT_UP, {"study": study_id, "more": len(rows)})
    # The study is held: what lies at and past ``first`` is what was just written, in this order.
    ids = iter(connection.scalars(_IDS, {"study_id": study_id, "first": first}).all())
    return [None if row is None else _as_proposed(next(ids), row) for row in chosen]


def _already_searched(connection: sa.Connection, study_id: int, proposals: Sequence[NewTrial]) -> set[str]:
    hashes = [new.configuration.hash for new in proposals if new.purpose == "search"]
    found: set[str] = set()
    for start in range(0, len(hashes), _AT_ONCE):
        part = hashes[start : start + _AT_ONCE]
        found.update(connection.scalars(_SEARCHED, {"study_id": study_id, "hashes": part}))
    return found


def _as_proposed(trial_id: int, row: Mapping[str, Any]) -> TrialRecord:
    return TrialRecord(**{**row, "id": trial_id, "status": Status.WAITING, "metrics": {}})


# -- leases --------------------------------------------------------------------------------------

_START = (
    sa.update(trials)
    .where(trials.c.id == sa.bindparam("trial"), trials.c.status.in_(("waiting", "running", "lost")))
    .values(
        status=Status.RUNNING.value,
        worker=sa.bindparam("by"),
        started_at=sa.bindparam("now"),
        lease_until=sa.bindparam("until"),
        message="",
    )
)


def start(connection: sa.Connection, trial_id: int, worker: str, lease_until: float, now: float) -> None:
    """A worker begins: also with a trial that was taken for lost, for it evidently is not.

    Nothing happens to a trial that is finished.
    """
    begun = connection.execute(_START, {"trial": trial_id, "by": worker, "now": now, "until": lease_until})
    if begun.rowcount == 0:
        _require(connection, trial_id)


def renew(connection: sa.Connection, trial_ids: Sequence[int], lease_until: float) -> None:
    """Leases of the trials that are still waiting or running."""
    ordered = sorted(set(trial_ids))
    for at in range(0, len(ordered), _AT_ONCE):
        held = _held(trials.c.id.in_(ordered[at : at + _AT_ONCE]))
        connection.execute(sa.update(trials).where(trials.c.id.in_(held)).values(lease_until=lease_until))


def expire(connection: sa.Connection, study_id: int, now: float) -> list[TrialRecord]:
    """Mark what is past its lease as lost, and return it; each loss is returned to one caller only."""
    ids = connection.scalars(_held(trials.c.study_id == study_id, trials.c.lease_until <= now)).all()
    if not ids:
        return []
    why = sa.case(
        (trials.c.lease_until == ENDED, "its session ended before it did"),
        else_="its worker gave no sign of life until its lease ran out",
    )
    lost: list[TrialRecord] = []
    for at in range(0, len(ids), _AT_ONCE):
        these = trials.c.id.in_(ids[at : at + _AT_ONCE])
        connection.execute(sa.update(trials).where(these).values(status=Status.LOST.value, message=why))
        lost += _read(connection, these)
    return lost


def retry(
    connection: sa.Connection,
    trial_id: int,
    session_id: int | None,
    segment_id: int | None,
    lease_until: float,
) -> TrialRecord | None:
    """Put a lost trial back; ``None`` where it is not lost (any more)."""
    row = _BLANK | {
        "status": Status.WAITING.value,
        "attempt": trials.c.attempt + 1,
        "lease_until": lease_until,
    }
    row |= {} if session_id is None else {"session_id": session_id}
    row |= {} if segment_id is None else {"segment_id": segment_id}
    again = connection.execute(
        sa.update(trials).where(trials.c.id == trial_id, trials.c.status == Status.LOST.value).values(**row)
    )
    if again.rowcount == 0:
        _require(connection, trial_id)
        return None
    return read_trial(connection, trial_id)


def _held(*conditions: sa.ColumnElement[bool]) -> sa.Select[int]:
    """Ids of unfinished trials, which PostgreSQL locks one after the other in this order."""
    return sa.select(trials.c.id).where(sa.text(OPEN), *conditions).order_by(trials.c.id).with_for_update()


def _require(connection: sa.Connection, trial_id: int) -> None:
    if connection.scalar(sa.select(trials.c.id).where(trials.c.id == trial_id)) is None:
        raise InputError(f"there is no trial with the id {trial_id} in this store")


# -- results -------------------------------------------------------------------------------------

_STANDING = (
    sa.select(trials.c.study_id, trials.c.status, trials.c.told, trials.c.reading_count)
    .where(trials.c.id == sa.bindparam("trial"))
    .with_for_update()
)
_NEXT_TOLD = (
    sa.update(studies)
    .where(studies.c.id == sa.bindparam("study"))
    .values(next_told=studies.c.next_told + 1)
    .returning(studies.c.next_told - 1)
)
_RESULT = {"status", "told", "reading_count", *_BLANK} - {"worker", "started_at"}
_FINISH = (
    sa.update(trials)
    .where(trials.c.id == sa.bindparam("trial"))
    .values(
        {name: sa.bindparam(f"new_{name}") for name in sorted(_RESULT)}
        | {"worker": sa.func.coalesce(sa.bindparam("by", type_=sa.Text), trials.c.worker)}
    )
)
_INSERT_READINGS = sa.insert(readings)


def finish(
    connection: sa.Connection,
    trial_id: int,
    outcome: Outcome,
    environment_hash: str,
    artifact_hashes: Mapping[str, str],
    now: float,
) -> int:
    """Write a result down, once: the first one counts. Returns its place in the order of results.

    A trial that was taken for lost takes its late result. An outcome that is itself ``lost`` is no result:
    the trial can be tried again, and what it read is kept as discarded.
    """
    standing = connection.execute(_STANDING, {"trial": trial_id}).one_or_none()
    if standing is None:
        raise InputError(f"there is no trial with the id {trial_id} in this store")
    if Status(standing.status).finished:
        return int(standing.told)
    told = None
    if outcome.status.finished:
        # Given out while the study's row is held: whoever sees a result sees all before it.
        told = connection.execute(_NEXT_TOLD, {"study": standing.study_id}).scalar_one()
    earlier = standing.reading_count
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
    connection.execute(_FINISH, result)
    if outcome.readings:
        lost = "" if outcome.status.finished else Status.LOST.value
        rows = [_reading_row(trial_id, seq, r, lost) for seq, r in enumerate(outcome.readings, earlier)]
        connection.execute(_INSERT_READINGS, rows)
    return NOT_TOLD if told is None else int(told)


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


# -- reading back --------------------------------------------------------------------------------

# In the order of TrialRecord's fields, so that a row becomes a record without a dictionary between.
_FIELDS = list(TrialRecord.__dataclass_fields__)
_SELECT = sa.select(*(trials.c[name] for name in _FIELDS))
_CONFIGURATION, _STATUS, _METRICS = (_FIELDS.index(n) for n in ("configuration", "status", "metrics"))
_STATUSES = {status.value: status for status in Status}


def read_trial(connection: sa.Connection, trial_id: int) -> TrialRecord:
    # A number past 64 bits, which a user may well type, is none that a database can compare with.
    found = _read(connection, trials.c.id == trial_id) if abs(trial_id) < 2**63 else []
    if not found:
        raise InputError(f"there is no trial with the id {trial_id} in this store")
    return found[0]


def list_trials(
    connection: sa.Connection,
    study_id: int,
    purpose: str | None = None,
    status: str | None = None,
    after: int | None = None,
) -> list[TrialRecord]:
    """By number; with ``after``, the results past that place, in the order of finishing."""
    conditions = [trials.c.study_id == study_id]
    if purpose is not None:
        conditions.append(trials.c.purpose == purpose)
    if status is not None:
        conditions.append(trials.c.status == str(status))
    if after is None:
        return _read(connection, *conditions)
    return _read(connection, *conditions, trials.c.told > after, order=trials.c.told)


def _read(
    connection: sa.Connection, *conditions: sa.ColumnElement[bool], order: sa.Column[Any] = trials.c.number
) -> list[TrialRecord]:
    return [_record(row) for row in connection.execute(_SELECT.where(*conditions).order_by(order)).all()]


def _record(row: sa.Row[Any]) -> TrialRecord:
    values = list(row)
    values[_CONFIGURATION] = Configuration(values[_CONFIGURATION])
    values[_STATUS] = _STATUSES[values[_STATUS]]
    values[_METRICS] = decode_metrics(values[_METRICS])
    return TrialRecord(*values)


def list_readings(connection: sa.Connection, trial_id: int) -> tuple[Reading, ...]:
    """In the order in which they were taken."""
    query = sa.select(readings).where(readings.c.trial_id == trial_id).order_by(readings.c.seq)
    return tuple(map(_reading, connection.execute(query).all()))


_READINGS_OF = (
    sa.select(readings)
    .join(trials, trials.c.id == readings.c.trial_id)
    .where(
        trials.c.study_id == sa.bindparam("study_id"),
        trials.c.number >= sa.bindparam("first"),
        trials.c.number < sa.bindparam("past"),
    )
    .order_by(trials.c.number, readings.c.seq)
)


def readings_between(
    connection: sa.Connection, study_id: int, first: int, past: int
) -> list[tuple[int, tuple[Reading, ...]]]:
    """``(trial id, readings)`` for the trials numbered ``first`` to ``past - 1`` that have any."""
    rows = connection.execute(_READINGS_OF, {"study_id": study_id, "first": first, "past": past}).all()
    return [
        (trial_id, tuple(map(_reading, own))) for trial_id, own in groupby(rows, lambda row: row.trial_id)
    ]


def number_of_trials(connection: sa.Connection, study_id: int) -> int:
    """How many trials the study has, for whatever purpose."""
    number: int | None = connection.scalar(sa.select(studies.c.next_number).where(studies.c.id == study_id))
    return number or 0


def _reading(row: sa.Row[Any]) -> Reading:
    _, _, metric, value, at, discarded, context = tuple(row)
    return Reading(metric, value, at, discarded, context or {})
