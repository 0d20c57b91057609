"""What a strategy is told of a trial: always from the stored record, so that it can be told that again."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from autotune.measure.facts import CURVE, RESOURCES, STEP, STEPS
from autotune.search.contract import Observation
from autotune.status import Status
from autotune.store.records import ResultRecord, TrialRecord

Finished: TypeAlias = TrialRecord | ResultRecord


def observe_record(trial: Finished) -> Observation:
    """What a strategy is told of a trial: of a failure no metrics; of a ``wrong`` one, those with bounds."""
    usable = {} if trial.status.failed else trial.metrics
    wrong = trial.metrics if trial.status is Status.WRONG else {}
    return Observation(
        configuration=trial.configuration,
        status=trial.status,
        metrics={name: e.value for name, e in usable.items() if math.isfinite(e.value)},
        errors={name: e.error for name, e in usable.items()},
        resources=_resources(trial),
        bounded={name: e.value for name, e in wrong.items() if math.isfinite(e.value)},
        seconds=sum(trial.phases.values()),
        began=trial.started_at or 0.0,
        ended=trial.finished_at or 0.0,
        reason=trial.reason,
        paused=isinstance(trial, ResultRecord) and trial.paused,
        **_progress(trial),
    )


def _resources(trial: Finished) -> dict[str, float]:
    """The memory that the trial used, and the resources that the compiler reported for its code."""
    named = trial.facts.get(RESOURCES)
    resources = {str(k): float(v) for k, v in named.items()} if isinstance(named, dict) else {}
    if trial.peak_memory is not None:
        resources["memory"] = float(trial.peak_memory)
    return resources


def _progress(trial: Finished) -> dict[str, Any]:
    """The fraction of its resource that a trial used, and its curve; empty without early stopping."""
    step, steps = trial.facts.get(STEP), trial.facts.get(STEPS)
    curve = trial.facts.get(CURVE)
    if not (isinstance(step, int) and isinstance(steps, int) and isinstance(curve, list)):
        return {}
    early = trial.status is Status.PRUNED and step < steps
    return {"fraction": step / steps if early else 1.0, "curve": tuple((at / steps, v) for at, v in curve)}
