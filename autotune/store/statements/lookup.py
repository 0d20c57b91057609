"""Reading trials and their readings back. Each function runs in the caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from autotune.errors import InputError
from autotune.measure.outcome import Reading
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.documents import GarbledError, checked, decode, decode_metrics
from autotune.store.records import ResultRecord, TrialRecord
from autotune.store.schema import SEARCHED, pauses, readings, studies, trials
from autotune.store.statements.parts import in_parts
from autotune.store.statements.prepared import Direct, Prepared, Row

# In the order of TrialRecord's fields, so that a row becomes a record without a dictionary between.
_FIELDS = list(TrialRecord.__dataclass_fields__)
_SELECT = sa.select(*(trials.c[name] for name in _FIELDS))
_CONFIGURATION, _HASH, _STATUS, _METRICS = map(_FIELDS.index, ("configuration", "hash", "status", "metrics"))
_STATUSES = {status.value: status for status in Status}


def read_trial(connection: sa.Connection, trial_id: int) -> TrialRecord:
    # A number past 64 bits, which a user may well type, is none that a database can compare with.
    found = select_trials(connection, trials.c.id == trial_id) if abs(trial_id) < 2**63 else []
    if not found:
        raise InputError(f"there is no trial with the id {trial_id} in this store")
    return found[0]


def list_trials(
    connection: sa.Connection, study_id: int, purpose: str | None = None, status: str | None = None
) -> list[TrialRecord]:
    """By number."""
    conditions = [trials.c.study_id == study_id]
    if purpose is not None:
        conditions.append(trials.c.purpose == purpose)
    if status is not None:
        conditions.append(trials.c.status == str(status))
    return select_trials(connection, *conditions)


def numbered(connection: sa.Connection, study_id: int, numbers: Sequence[int]) -> list[TrialRecord]:
    """The study's trials that have these numbers, by number."""
    own = trials.c.study_id == study_id
    parts = (select_trials(connection, own, trials.c.number.in_(some)) for some in in_parts(sorted(numbers)))
    return [trial for part in parts for trial in part]


def select_trials(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> list[TrialRecord]:
    """The trials that meet all ``conditions``, by number."""
    query = _SELECT.where(*conditions).order_by(trials.c.number)
    return [_record(row) for row in connection.execute(query).all()]


def _record(row: sa.Row[Any]) -> TrialRecord:
    values = list(row)
    values[_CONFIGURATION] = Configuration(values[_CONFIGURATION], values[_HASH])
    values[_STATUS] = _STATUSES[values[_STATUS]]
    values[_METRICS] = decode_metrics(values[_METRICS])
    return TrialRecord(*values)


# -- what is new in a study ----------------------------------------------------------------------

_COUNTERS = Prepared(
    sa.select(studies.c.next_number, studies.c.next_told).where(studies.c.id == sa.bindparam("study_id"))
)
_OF_RESULT = [name for name in ResultRecord.__dataclass_fields__ if name != "paused"]
_RESULTS = Prepared(
    sa.select(*(trials.c[name] for name in _OF_RESULT), trials.c.hash)
    .where(
        trials.c.study_id == sa.bindparam("study_id"),
        trials.c.told >= sa.bindparam("first"),
        trials.c.told < sa.bindparam("past"),
        sa.text(SEARCHED),
    )
    .order_by(trials.c.told)
)
_PAUSES = Prepared(
    sa.select(*((pauses if name in pauses.c else trials).c[name] for name in _OF_RESULT), trials.c.hash)
    .join(trials, trials.c.id == pauses.c.trial_id)
    .where(
        pauses.c.study_id == sa.bindparam("study_id"),
        pauses.c.told >= sa.bindparam("first"),
        pauses.c.told < sa.bindparam("past"),
    )
)
_PROPOSED = Prepared(
    sa.select(trials.c.number, trials.c.configuration, trials.c.hash)
    .where(
        trials.c.study_id == sa.bindparam("study_id"),
        trials.c.number >= sa.bindparam("first"),
        trials.c.number < sa.bindparam("past"),
        sa.text(SEARCHED),
    )
    .order_by(trials.c.number)
)


def results_from(direct: Direct, study_id: int, first: int) -> tuple[int, list[ResultRecord]]:
    """The next place in the order of results, and what the search trials came to from ``first`` up to it.

    Whoever takes a place holds the study until its result is written, so no place up to the last is missing.
    A place without the result of a search trial is that of a pause, or of a finale.
    """
    counters = _COUNTERS.row(direct, {"study_id": study_id})
    past = first if counters is None else checked(counters[1], int)
    if past <= first:
        return first, []
    wanted = {"study_id": study_id, "first": first, "past": past}
    found = [_result(row) for row in _RESULTS.rows(direct, wanted)]
    if len(found) < past - first:
        pauses_there = map(_result, _PAUSES.rows(direct, wanted))
        paused = [
            replace(one, status=Status.PRUNED, started_at=None, finished_at=None, paused=True)
            for one in pauses_there
        ]
        found = sorted(found + paused, key=lambda result: result.told)
    return past, found


def heard_before(connection: sa.Connection, study_id: int, past: int | None) -> tuple[list[int], set[int]]:
    """The numbers of search trials that had finished before the place ``past``, and of those only paused."""

    def before(table: sa.Table) -> list[sa.ColumnElement[bool]]:
        limit = table.c.told.is_not(None) if past is None else table.c.told < past
        return [table.c.study_id == study_id, limit]

    finished = sa.select(trials.c.number).where(*before(trials), sa.text(SEARCHED)).order_by(trials.c.told)
    waiting = sa.select(trials.c.number).join(pauses, pauses.c.trial_id == trials.c.id).where(*before(pauses))
    known = list(connection.scalars(finished))
    return known, set(connection.scalars(waiting)).difference(known)


def proposed_from(direct: Direct, study_id: int, first: int) -> tuple[int, list[tuple[int, Configuration]]]:
    """The next trial number, and what each search trial from number ``first`` up to it tries."""
    found = _COUNTERS.row(direct, {"study_id": study_id})
    past = first if found is None else checked(found[0], int)
    if past <= first:
        return first, []
    rows = _PROPOSED.rows(direct, {"study_id": study_id, "first": first, "past": past})
    return past, [(number, Configuration(decode(text, dict), digest)) for number, text, digest in rows]


def _result(row: Row) -> ResultRecord:
    """As the driver gives it, so that nothing has looked at its numbers."""
    told, number, configuration, status, reason, phases, metrics, peak_memory, facts, *times, digest = row
    for known in (peak_memory, *times):
        if known is not None:
            checked(known, float)
    if status not in _STATUSES:
        raise GarbledError(f"{status!r:.40} is no status")
    return ResultRecord(
        told,
        number,
        Configuration(decode(configuration, dict), digest),
        _STATUSES[status],
        decode(reason, dict),
        decode(phases, dict),
        decode_metrics(metrics),
        peak_memory,
        decode(facts, dict),
        *times,
    )


# -- readings ------------------------------------------------------------------------------------


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
    return _by_trial(rows)


def readings_in(connection: sa.Connection, trial_ids: Sequence[int]) -> list[tuple[int, tuple[Reading, ...]]]:
    """``(trial id, readings)`` for those of these trials that have any, by id."""
    found: list[tuple[int, tuple[Reading, ...]]] = []
    for some in in_parts(sorted(trial_ids)):
        query = sa.select(readings).where(readings.c.trial_id.in_(some))
        found += _by_trial(connection.execute(query.order_by(readings.c.trial_id, readings.c.seq)).all())
    return found


def _by_trial(rows: Iterable[sa.Row[Any]]) -> list[tuple[int, tuple[Reading, ...]]]:
    """Readings that come trial by trial."""
    return [(trial, tuple(map(_reading, own))) for trial, own in groupby(rows, lambda row: row.trial_id)]


def last_finished(connection: sa.Connection, study_id: int, purpose: str | None = None) -> dict[int, float]:
    """When the last trial (of that purpose) of each session that finished any did so, by the session's id."""
    t = trials.c
    query = sa.select(t.session_id, sa.func.max(t.finished_at)).group_by(t.session_id)
    if purpose is not None:
        query = query.where(t.purpose == purpose)
    found = connection.execute(query.where(t.study_id == study_id, t.finished_at.is_not(None)))
    return {row[0]: row[1] for row in found}


def numbers_of(connection: sa.Connection, study_id: int, hashes: Sequence[str]) -> dict[str, int]:
    """The numbers of the study's search trials of these configurations, by hash."""
    t = trials.c
    query = sa.select(t.hash, t.number).where(t.study_id == study_id, sa.text(SEARCHED))
    found = (connection.execute(query.where(t.hash.in_(some))) for some in in_parts(hashes))
    return {row[0]: row[1] for rows in found for row in rows}


def number_of_trials(connection: sa.Connection, study_id: int) -> int:
    """How many trials the study has, for whatever purpose."""
    number: int | None = connection.scalar(sa.select(studies.c.next_number).where(studies.c.id == study_id))
    return number or 0


def _reading(row: sa.Row[Any]) -> Reading:
    _, _, metric, value, at, discarded, context = tuple(row)
    return Reading(metric, value, at, discarded, context or {})
