"""The trials of a study as one DataFrame, read row by row, so that a long study fits into memory."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from autotune.measure.facts import STEP, STEPS, TIMELINE
from autotune.search.contract import Observation
from autotune.space.configuration import Configuration
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.brief import BriefTrial
from autotune.store.records import ResultRecord, StudyRecord
from autotune.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

PHASES = ("prepare", "check", "warmup", "measure")
SPANS = ("prepare_began", "prepare_ended", "check_began", "check_ended", "measure_began", "measure_ended")
NUMBERS = (
    *("told", "proposed", "started", "finished", *PHASES, *SPANS),
    *("lane", "value", "fraction", "peak_memory"),
)
OTHERS = (
    *("trial", "id", "session", "segment", "purpose", "status", "strategy", "kind"),
    *("label", "message", "hash", "environment"),
)
"""The columns of the frame that are not numbers; metrics have columns of their own."""


def frame_of(
    store: Store, study: StudyRecord, goal: MetricSpec, configurations: dict[int, Mapping[str, Any]]
) -> pd.DataFrame:
    """The columns that :func:`~autotune.report.evidence.load_evidence` names; fills ``configurations``."""
    import pandas as pd

    columns: dict[str, list[Any]] = {name: [] for name in (*OTHERS, *NUMBERS)}
    metrics: dict[str, list[float]] = {}
    early: list[tuple[int, Observation]] = []
    declared = {str(metric["name"]) for metric in study.metrics}
    stopping = bool((study.document.get("search") or {}).get("early_stopping"))
    count = 0
    for trial in store.brief_trials(study.id):
        configurations[trial.number] = trial.configuration
        if stopping and trial.purpose == "search" and goal.name in trial.metrics:
            early.append((count, _observed(trial)))
        for name, value in _row(trial, goal).items():
            columns[name].append(value)
        for column, number in _metrics(trial, declared).items():
            own = metrics.setdefault(column, [])
            own.extend([math.nan] * (count - len(own)))
            own.append(number)
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


def _metrics(trial: BriefTrial, declared: Container[str]) -> dict[str, float]:
    """The metrics by their columns. Those of a declared one are its own, whatever else was returned."""
    columns: dict[str, float] = {}
    for name, e in sorted(trial.metrics.items(), key=lambda metric: metric[0] in declared):
        for part, number in (("", e.value), (".low", e.low), (".high", e.high), (".n", e.n)):
            columns[f"metric.{name}{part}"] = _finite(number)
    return columns


def _observed(trial: BriefTrial) -> Observation:
    from autotune.session.observing import observe_record

    result = ResultRecord(
        told=-1 if trial.told is None else trial.told,
        number=trial.number,
        configuration=Configuration(trial.configuration),
        status=Status(trial.status),
        reason=trial.reason,
        phases=trial.phases,
        metrics=trial.metrics,
        peak_memory=trial.peak_memory,
        facts=trial.facts,
    )
    return observe_record(result)


def _at_full(early: list[tuple[int, Observation]], frame: pd.DataFrame, goal: MetricSpec) -> pd.Series[float]:
    """``value``, with a strategy's predictions of the final value for trials that were stopped early."""
    import numpy as np

    from autotune.search.models.fidelity import at_full

    rows = [row for row, _ in early]
    known = np.array([o.metrics.get(goal.name, math.nan) for _, o in early])
    values = frame["value"].copy()
    values.iloc[rows] = goal.sign * at_full([o for _, o in early], goal.sign * known, goal.sign).losses
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
    """The fraction of its resource that a trial used if it was stopped early; else 1."""
    step, steps = trial.facts.get(STEP), trial.facts.get(STEPS)
    early = trial.status == Status.PRUNED.value and isinstance(step, int) and isinstance(steps, int)
    return step / steps if early and step < steps else 1.0  # type: ignore[operator]


def _finite(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan
