"""A study read from its store once: what every table, figure and report is made of."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from autotune.measure.outcome import TIMELINE
from autotune.report.knob_views import KnobView, knob_views
from autotune.search.contract import Observation
from autotune.session.searches import searches_of
from autotune.space.configuration import Configuration
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.brief import BriefTrial
from autotune.store.records import ResultRecord, SegmentRecord, SessionRecord, StudyRecord, VerdictRecord
from autotune.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

Place = Store | str | os.PathLike[str] | None
"""A store that is open, or where it is; ``None``: the default one."""

PHASES = ("prepare", "check", "warmup", "measure")


@contextmanager
def opened(place: Place) -> Iterator[Store]:
    """The store at ``place``, open for reading; one that was open stays open."""
    if isinstance(place, Store):
        yield place
    else:
        with Store.open(place, readonly=True) as store:
            yield store


@dataclass(frozen=True, eq=False)
class Evidence:
    """A study as it stood in its store when it was read."""

    study: StudyRecord
    store: str
    """The store's URL, with a password masked."""
    goals: tuple[MetricSpec, ...]
    """The metrics with a goal; the first judges what is best."""
    knobs: tuple[KnobView, ...]
    all_trials: pd.DataFrame
    """One row a trial, for whatever purpose, by number: see :func:`load_evidence`."""
    configurations: Mapping[int, Mapping[str, Any]]
    """By the number of the trial."""
    verdicts: tuple[VerdictRecord, ...]
    sessions: tuple[SessionRecord, ...]
    """The searches, without replays and verifications."""
    last_finished: Mapping[int, float]
    """When the last trial of each session that finished any did so."""
    segment: SegmentRecord | None
    """The latest: the objective's source, frozen."""
    environment: Mapping[str, Any]
    """The one that the study began in; empty where it is not in the store."""

    def end_of(self, session: SessionRecord) -> float:
        """When it was closed, or finished its last trial where it was not; never before it began."""
        ended = session.finished_at or self.last_finished.get(session.id, 0.0)
        return max(ended, session.started_at)

    @property
    def metric(self) -> MetricSpec:
        """The first goal."""
        return self.goals[0]

    @property
    def sign(self) -> float:
        """1 where the first goal is to minimise, -1 where it is to maximise."""
        return -1.0 if self.metric.goal == "maximize" else 1.0

    @cached_property
    def trials(self) -> pd.DataFrame:
        """The trials of the search alone, without the replicates."""
        own = self.all_trials
        return own[own["purpose"] == "search"].reset_index(drop=True)

    @cached_property
    def succeeded(self) -> pd.DataFrame:
        """The search trials that succeeded and have a number for the first goal."""
        own = self.trials
        usable = (own["status"] == Status.OK.value) & own["value"].notna()
        return own[usable].reset_index(drop=True)

    @property
    def verdict(self) -> Mapping[str, Any] | None:
        """What the last re-measurement of the finalists came to; ``None`` where none has a winner."""
        last = self.verdicts[-1].document if self.verdicts else {}
        return last if last.get("configuration") is not None else None

    @property
    def statuses(self) -> dict[str, int]:
        """How many search trials stand in each status, the commonest first."""
        return {str(name): int(n) for name, n in self.trials["status"].value_counts().items()}

    def knob_column(self, name: str, trials: pd.DataFrame) -> list[Any]:
        """The values of a knob, ``None`` where a trial does not have it."""
        return [self.configurations[number].get(name) for number in trials["trial"].tolist()]


def load_evidence(place: Place = None, study: str | int | None = None) -> Evidence:
    """Read a study: by name, ``name#id`` or id; ``None``: the newest of the store.

    Its ``all_trials`` has the columns ``trial`` (the number), ``id``, ``session``, ``segment``,
    ``purpose``, ``status``, ``strategy``, ``kind`` (of the reason), ``told``, ``proposed``, ``started`` and
    ``finished`` (POSIX seconds), ``prepare``, ``check``, ``warmup`` and ``measure`` (seconds of each
    phase), ``prepare_began`` ... ``measure_ended`` (POSIX seconds; ``check_began`` only where the check
    came ahead), ``lane``, ``value`` (the first goal, where the trial has not failed and used its whole
    resource), ``at_full`` (the same, and what a trial that was stopped early would have come to),
    ``fraction`` (of the resource), ``metric.NAME`` with ``.low``, ``.high`` and ``.n``, ``label`` (of a
    replicate), ``message``, ``hash`` and ``environment``.
    """
    with opened(place) as store:
        record = store.study(study)
        goals = record.goals
        configurations: dict[int, Mapping[str, Any]] = {}
        frame = _frame(store, record, goals[0], configurations)
        seen = dict.fromkeys(name for c in configurations.values() for name in c)
        return Evidence(
            study=record,
            store=store.url,
            goals=goals,
            knobs=knob_views(record.document, tuple(seen)),
            all_trials=frame,
            configurations=configurations,
            verdicts=tuple(store.verdicts(record.id)),
            sessions=searches_of(store, record.id),
            last_finished=store.last_finished(record.id),
            segment=store.latest_segment(record.id),
            environment=store.environment(record.environment_hash),
        )


SPANS = ("prepare_began", "prepare_ended", "check_began", "check_ended", "measure_began", "measure_ended")
NUMBERS = (
    *("told", "proposed", "started", "finished", *PHASES, *SPANS),
    *("lane", "value", "fraction", "peak_memory"),
)
OTHERS = (
    *("trial", "id", "session", "segment", "purpose", "status", "strategy", "kind"),
    *("label", "message", "hash", "environment"),
)
"""Columns of a frame of trials, beside the metrics."""


def _frame(
    store: Store, study: StudyRecord, goal: MetricSpec, configurations: dict[int, Mapping[str, Any]]
) -> pd.DataFrame:
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [] for name in (*OTHERS, *NUMBERS)}
    metrics: dict[str, list[float]] = {}
    early: list[tuple[int, Observation]] = []
    stopping = bool((study.document.get("search") or {}).get("early_stopping"))
    count = 0
    for trial in store.brief_trials(study.id):
        configurations[trial.number] = trial.configuration
        if stopping and trial.purpose == "search" and goal.name in trial.metrics:
            early.append((count, _observed(trial)))
        for name, value in _row(trial, goal).items():
            columns[name].append(value)
        for name, e in trial.metrics.items():
            for part, number in (("", e.value), (".low", e.low), (".high", e.high), (".n", float(e.n))):
                own = metrics.setdefault(f"metric.{name}{part}", [])
                own.extend([math.nan] * (count - len(own)))
                own.append(_finite(number))
        count += 1
    for own in metrics.values():
        own.extend([math.nan] * (count - len(own)))
    frame = pd.DataFrame(columns | metrics)
    for name in NUMBERS:
        frame[name] = pd.to_numeric(frame[name], errors="coerce").astype("float64")
    frame["at_full"] = frame["value"] if not (frame["fraction"] < 1).any() else _at_full(early, frame, goal)
    for metric in study.metrics:
        for part in ("", ".low", ".high", ".n"):
            if f"metric.{metric['name']}{part}" not in frame:
                frame[f"metric.{metric['name']}{part}"] = math.nan
    for name in ("purpose", "status", "strategy", "kind"):
        frame[name] = frame[name].astype("category").astype(str)
    return frame


def _row(trial: BriefTrial, goal: MetricSpec) -> dict[str, Any]:
    timeline = trial.facts.get(TIMELINE)
    spans = timeline if isinstance(timeline, Mapping) else {}
    prepare, check, measure = (_span(spans.get(stage)) for stage in ("prepare", "check", "measure"))
    fraction = _fraction(trial)
    return {
        "trial": trial.number,
        "id": trial.id,
        "session": trial.session_id,
        "segment": trial.segment_id,
        "purpose": trial.purpose,
        "status": trial.status,
        "strategy": trial.strategy,
        "kind": str(trial.reason.get("kind", "")),
        "told": trial.told,
        "proposed": trial.proposed_at,
        "started": trial.started_at,
        "finished": trial.finished_at,
        **{name: _finite(trial.phases.get(name, 0.0)) for name in PHASES},
        "prepare_began": prepare[0],
        "prepare_ended": prepare[1],
        "check_began": check[0],
        "check_ended": check[1],
        "measure_began": measure[0],
        "measure_ended": measure[1],
        "lane": measure[2],
        "value": _value(trial, goal.name) if fraction == 1.0 else math.nan,
        "fraction": fraction,
        "label": str(trial.reason.get("label", "")) if trial.purpose != "search" else "",
        "message": trial.message,
        "hash": trial.hash,
        "environment": trial.environment_hash,
        "peak_memory": trial.peak_memory,
    }


def _observed(trial: BriefTrial) -> Observation:
    from autotune.session.observing import observe_record

    fields = {name: getattr(trial, name) for name in ResultRecord.__dataclass_fields__}
    fields |= {"configuration": Configuration(trial.configuration), "status": Status(trial.status)}
    return observe_record(ResultRecord(**fields))


def _at_full(early: list[tuple[int, Observation]], frame: pd.DataFrame, goal: MetricSpec) -> pd.Series[float]:
    """``value``, and for trials that were stopped early what a strategy takes them for."""
    import numpy as np

    from autotune.search.fidelity import at_full

    sign = -1.0 if goal.goal == "maximize" else 1.0
    rows = [row for row, _ in early]
    known = np.array([o.metrics.get(goal.name, math.nan) for _, o in early])
    values = frame["value"].copy()
    values.iloc[rows] = sign * at_full([o for _, o in early], sign * known, sign).losses
    return values


def _span(entry: Any) -> tuple[float, float, float]:
    try:
        began, ended, lane = entry
        return float(began), float(ended), float(lane)
    except (TypeError, ValueError):
        return math.nan, math.nan, math.nan


def _value(trial: BriefTrial, goal: str) -> float:
    usable = trial.status in (Status.OK.value, Status.PRUNED.value) and goal in trial.metrics
    return _finite(trial.metrics[goal].value) if usable else math.nan


def _fraction(trial: BriefTrial) -> float:
    """Of its resource, where the trial was stopped early; else 1."""
    step, steps = trial.facts.get("step"), trial.facts.get("steps")
    early = trial.status == Status.PRUNED.value and isinstance(step, int) and isinstance(steps, int)
    return step / steps if early and step < steps else 1.0  # type: ignore[operator]


def _finite(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan
