"""What a cross measurement of a family says, read from the store as a matrix: workloads by configurations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.errors import InputError, Problem
from autotune.session.families.cross import columns_of, own_winner, own_winners
from autotune.session.finale.contender import DEFAULT
from autotune.session.opening.identity import are_kin
from autotune.space.configuration import Configuration, FrozenMap
from autotune.space.from_document import space_from_document
from autotune.space.spec import MetricSpec, say_workload
from autotune.status import Status
from autotune.store.records import StudyRecord, TrialRecord, VerdictRecord
from autotune.store.store import Store

NOT_MEASURED = "not measured"
NOT_ALLOWED = "forbidden by a constraint"


@dataclass(frozen=True)
class Cell:
    """The value of a configuration for a workload; NaN if there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan
    status: str = NOT_MEASURED
    """``ok``, or why there is no value."""


HOLE = Cell(math.nan)


@dataclass(frozen=True)
class Matrix:
    """Each row is a workload, each column a configuration."""

    metric: MetricSpec
    studies: tuple[StudyRecord, ...]
    """The study of each row."""
    held_out: tuple[bool, ...]
    """Whether the workload of a row was only measured, never searched."""
    configurations: tuple[Configuration, ...]
    found_by: tuple[frozenset[int], ...]
    """For each column, the rows whose own search it won; empty for a default that won no search."""
    default: int | None
    """The default's column; ``None`` if it was not measured for any workload."""
    cells: tuple[tuple[Cell, ...], ...]

    @property
    def workloads(self) -> tuple[FrozenMap, ...]:
        return tuple(FrozenMap(study.workload) for study in self.studies)

    @property
    def has_ratios(self) -> bool:
        """Whether every value is above 0, so that configurations can be compared by ratios."""
        return not any(cell.value <= 0 for row in self.cells for cell in row)

    @property
    def losses(self) -> NDArray[np.float64]:
        """Logarithms of the metric, smaller is better; shape (rows, columns), NaN where there is no value.

        Raises :class:`InputError` if a value is not above 0, since regrets are ratios.
        """
        values = np.array([[cell.value for cell in row] for row in self.cells], dtype=np.float64)
        values = values.reshape(len(self.cells), len(self.configurations))
        if (values <= 0).any():
            row, column = map(int, np.argwhere(values <= 0)[0])
            raise InputError(self._no_ratio(row, column))
        return np.log(values) * self.metric.sign

    def _no_ratio(self, row: int, column: int) -> Problem:
        name, value = self.metric.name, self.cells[row][column].value
        configuration = say_workload(self.configurations[column])
        workload = say_workload(self.workloads[row])
        where = f"{self.studies[row].label} ({workload})" if workload else self.studies[row].label
        return Problem(
            f"{name} is {value:.4g} in {where} with {configuration}",
            expected="values above 0, since configurations are compared by ratios",
            hint=f"measure a metric instead of {name} that is always above 0",
        )


def family_of(store: Store, study: StudyRecord) -> tuple[StudyRecord, ...]:
    """The studies that differ from ``study`` in the workload only; the newest of each workload, by age.

    They have the same name, objective, source, metrics, machine and, in their workloads, the same keys.
    """
    newest: dict[str, StudyRecord] = {}
    for other in store.studies(study.name):
        if are_kin(study, other):
            newest[other.key] = other
    return tuple(sorted(newest.values(), key=lambda other: other.id))


def load_matrix(store: Store, studies: Sequence[StudyRecord]) -> Matrix:
    """The matrix of what the last verdict of each study measured. A study without a verdict has no values.

    The columns are the default, the winners of the studies, and the other configurations of cross
    measurements.
    """
    metric = studies[0].goals[0]
    last = [verdicts[-1] if (verdicts := store.verdicts(study.id)) else None for study in studies]
    measured = [_measured(store, s, verdict) for s, verdict in zip(studies, last, strict=True)]
    trials = (trial for row in measured for trial in row)
    default = next((t.configuration for t in trials if t.reason.get("label") == DEFAULT), None)
    winners = (own_winner(store, study) for study in studies)
    measured_too = (one["configuration"] for v in last if v is not None for one in columns_of(v).values())
    columns = dict.fromkeys(
        configuration
        for configuration in (default, *winners, *map(Configuration, measured_too))
        if configuration is not None
    )
    won = [own_winners(store, study) for study in studies]
    return Matrix(
        metric=metric,
        studies=tuple(studies),
        held_out=tuple(not study.counts for study in studies),
        configurations=tuple(columns),
        found_by=tuple(frozenset(row for row, own in enumerate(won) if one in own) for one in columns),
        default=None if default is None else 0,
        cells=tuple(
            tuple(_row(columns, study, verdict, trials, metric.name))
            for study, verdict, trials in zip(studies, last, measured, strict=True)
        ),
    )


def _measured(store: Store, study: StudyRecord, verdict: VerdictRecord | None) -> list[TrialRecord]:
    """The trials that a verdict is based on: the measurements of its session's finale."""
    if verdict is None:
        return []
    return [
        trial
        for trial in store.trials(study.id)
        if trial.session_id == verdict.session_id and trial.purpose in ("final", "default")
    ]


def _row(
    columns: Iterable[Configuration],
    study: StudyRecord,
    verdict: VerdictRecord | None,
    measured: Sequence[TrialRecord],
    metric: str,
) -> Iterator[Cell]:
    """The cells of ``study``.

    Whether a candidate is allowed was written down by the cross measurement. For a configuration that was not
    among its candidates, as a default that won nowhere, the study's space is asked.
    """
    by_hash = {trial.hash: trial for trial in measured}
    known = {} if verdict is None else columns_of(verdict)
    for configuration in columns:
        trial = by_hash.get(configuration.hash)
        if trial is None:
            entry = known.get(configuration.hash)
            allowed = entry["allowed"] if entry is not None else not known or _has(study, configuration)
            yield HOLE if allowed else Cell(math.nan, status=NOT_ALLOWED)
        elif trial.status is Status.OK and metric in trial.metrics:
            found = trial.metrics[metric]
            yield Cell(found.value, found.low, found.high, str(Status.OK))
        else:
            yield Cell(math.nan, status=str(trial.status))


def _has(study: StudyRecord, configuration: Configuration) -> bool:
    """Whether the study's space contains it; also true for a space of a version that cannot be read here."""
    try:
        return configuration in space_from_document(study.document["space"])
    except (KeyError, InputError):
        return True
