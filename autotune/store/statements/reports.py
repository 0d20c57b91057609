"""Statements on reports: what trials say while they run. Each function runs in the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from autotune.measure.outcome import Report
from autotune.store.schema import reports, trials
from autotune.store.statements.prepared import Direct
from autotune.store.statements.studies import lock_study


@dataclass(frozen=True)
class ReportRecord:
    """A report, and the trial that made it."""

    id: int
    """Counts up over the whole store. A reader who sees a report sees all of its study with lower ids."""
    trial_id: int
    number: int
    """The trial's number in its study."""
    report: Report


_INSERT = sa.insert(reports)
_STUDY_OF = (
    sa.select(trials.c.study_id)
    .where(trials.c.id == sa.bindparam("trial_id"))
    .with_for_update(read=True, key_share=True)
)
_SELECT: sa.Select[Any] = sa.select(
    reports.c.id, reports.c.trial_id, trials.c.number, reports.c.step, reports.c.at, reports.c.metrics
).join(trials, trials.c.id == reports.c.trial_id)
_SINCE = _SELECT.where(
    reports.c.id > sa.bindparam("after"), trials.c.study_id == sa.bindparam("study_id")
).order_by(reports.c.id)
_OF_TRIAL = _SELECT.where(reports.c.trial_id == sa.bindparam("trial_id")).order_by(reports.c.id)


def add(connection: sa.Connection, trial_id: int, made: Sequence[Report]) -> None:
    """Keep reports of a running trial, in the order in which they were made."""
    if connection.dialect.name == "postgresql":
        _keep_order(connection, trial_id)
    rows = [{"trial_id": trial_id, "step": r.step, "at": r.at, "metrics": dict(r.metrics)} for r in made]
    connection.execute(_INSERT, rows)


def _keep_order(connection: sa.Connection, trial_id: int) -> None:
    """Hold the trial's study until the transaction ends.

    PostgreSQL gives ids out as rows are written, and shows rows as transactions end: without this a reader
    who goes on from the highest id would miss a lower one that came to stand after it.
    """
    study_id = connection.scalar(_STUDY_OF, {"trial_id": trial_id})  # the trial first, as finish() locks them
    if study_id is not None:
        lock_study(Direct.through(connection), study_id)


def since(connection: sa.Connection, study_id: int, after: int) -> list[ReportRecord]:
    """The reports of a study whose id is above ``after``, oldest first."""
    return [_record(row) for row in connection.execute(_SINCE, {"study_id": study_id, "after": after})]


def of_trial(connection: sa.Connection, trial_id: int) -> list[ReportRecord]:
    """The reports of one trial, oldest first."""
    return [_record(row) for row in connection.execute(_OF_TRIAL, {"trial_id": trial_id})]


def _record(row: sa.Row[Any]) -> ReportRecord:
    identity, trial_id, number, step, at, metrics = tuple(row)
    return ReportRecord(identity, trial_id, number, Report(step, metrics, at))
