"""What a strategy is told of a trial, whether it was measured just now or is read back."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from autotune.measure.outcome import RESOURCES, Outcome
from autotune.search.contract import Observation
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.records import ResultRecord, TrialRecord

Ended: TypeAlias = Outcome | TrialRecord | ResultRecord
"""What came of a trial: as it was measured, or as it is read back."""


def observe(configuration: Configuration, outcome: Ended) -> Observation:
    """What a strategy is told of an outcome: of a failure no metrics, but by how much it missed a bound."""
    usable = {} if outcome.status.failed else outcome.metrics
    wrong = outcome.metrics if outcome.status is Status.WRONG else {}
    return Observation(
        configuration=configuration,
        status=outcome.status,
        metrics={name: e.value for name, e in usable.items() if math.isfinite(e.value)},
        errors={name: e.error for name, e in usable.items()},
        resources=_resources(outcome),
        bounded={name: e.value for name, e in wrong.items() if math.isfinite(e.value)},
        seconds=sum(outcome.phases.values()),
        **_progress(outcome),
    )


def _resources(outcome: Ended) -> dict[str, float]:
    """The memory that it had, and what its compiler says that its code takes."""
    named = outcome.facts.get(RESOURCES)
    resources = {str(k): float(v) for k, v in named.items()} if isinstance(named, dict) else {}
    if outcome.peak_memory is not None:
        resources["memory"] = float(outcome.peak_memory)
    return resources


def _progress(outcome: Ended) -> dict[str, Any]:
    """The part of its resource that a trial used, and its curve over it, where it was followed."""
    step, steps = outcome.facts.get("step"), outcome.facts.get("steps")
    curve = outcome.facts.get("curve")
    if not (isinstance(step, int) and isinstance(steps, int) and isinstance(curve, list)):
        return {}
    early = outcome.status is Status.PRUNED and step < steps
    return {"fraction": step / steps if early else 1.0, "curve": tuple((at / steps, v) for at, v in curve)}


def observe_record(trial: TrialRecord | ResultRecord) -> Observation:
    """What a strategy is told of a trial that is read back: the same as when it finished."""
    return observe(trial.configuration, trial)
