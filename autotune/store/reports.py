"""Statements on reports: what trials say while they run. Each function runs in the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from autotune.measure.outcome import Report
from autotune.store.schema import reports, trials


@dataclass(frozen=True)
class ReportRecord:
    """A report, and the trial that made it."""

    id: int
    """Counts up over the whole store. A later report has a higher one, but for writers at the same moment."""
    trial_id: int
    number: int
    """The trial's number in its study."""
    report: Report


_INSERT = sa.insert(reports)
_SELECT: sa.Select[Any] = sa.select(
    reports.c.id, reports.c.trial_id, trials.c.number, reports.c.step, reports.c.at, reports.c.metrics
).join(trials, trials.c.id == reports.c.trial_id)
_SINCE = _SELECT.where(
    reports.c.id > sa.bindparam("after"), trials.c.study_id == sa.bindparam("study_id")
).order_by(reports.c.id)
_OF_TRIAL = _SELECT.where(reports.c.trial_id == sa.bindparam("trial_id")).order_by(reports.c.id)


def add(connection: sa.Connection, trial_id: int, made: Sequence[Report]) -> None:
    """Keep reports of a running trial, in the order in which they were made."""
    rows = [{"trial_id": trial_id, "step": r.step, "at": r.at, "metrics": dict(r.metrics)} for r in made]
    connection.execute(_INSERT, rows)


def since(connection: sa.Connection, study_id: int, after: int) -> list[ReportRecord]:
    """The reports of a study whose id is above ``after``, oldest first."""
    return [_record(row) for row in connection.execute(_SINCE, {"study_id": study_id, "after": after})]


def of_trial(connection: sa.Connection, trial_id: int) -> list[ReportRecord]:
    """The reports of one trial, oldest first."""
    return [_record(row) for row in connection.execute(_OF_TRIAL, {"trial_id": trial_id})]


def _record(row: sa.Row[Any]) -> ReportRecord:
    identity, trial_id, number, step, at, metrics = tuple(row)
    return ReportRecord(identity, trial_id, number, Report(step, metrics, at))
