"""If every trial was past a bound: which trials came nearest, which shows whether it can be met at all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from autotune.measure.rules.bounds import beyond_bounds
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import TrialRecord


def nearest_to_bounds(
    trials: Sequence[TrialRecord], metrics: Sequence[Mapping[str, Any]]
) -> list[tuple[TrialRecord, str]]:
    """For each metric whose bound several trials violate, the nearest of them and a text on by how much.

    ``metrics`` are as a study keeps them. The message of a trial itself is about its first violated bound
    only.
    """
    wrong = [trial for trial in trials if trial.status is Status.WRONG]
    said = []
    for metric in (MetricSpec(**metric) for metric in metrics):
        trial = _nearest(wrong, metric)
        past = None if trial is None else beyond_bounds([metric], trial.metrics)
        if trial is not None and past is not None:
            said.append((trial, past[1]))
    return said


def _nearest(wrong: Sequence[TrialRecord], metric: MetricSpec) -> TrialRecord | None:
    for bound, sign in ((metric.at_most, 1), (metric.at_least, -1)):
        if bound is None:
            continue
        values = {t.number: t.metrics[metric.name].value for t in wrong if metric.name in t.metrics}
        excess = {number: sign * (value - bound) for number, value in values.items()}
        past = [trial for trial in wrong if 0 < excess.get(trial.number, 0.0) < math.inf]
        if len(past) > 1:
            return min(past, key=lambda trial: (excess[trial.number], trial.number))
    return None
