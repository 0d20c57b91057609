"""Where every trial was past a bound: which came nearest, for that says whether it can be met at all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from autotune.status import Status
from autotune.store.records import TrialRecord


def nearest_to_bounds(
    trials: Sequence[TrialRecord], metrics: Sequence[Mapping[str, Any]]
) -> list[TrialRecord]:
    """For each metric past whose bound several trials were the nearest; ``metrics`` as a study keeps them."""
    wrong = [trial for trial in trials if trial.status is Status.WRONG]
    found = (_nearest(wrong, metric) for metric in metrics)
    return [trial for trial in found if trial is not None]


def _nearest(wrong: Sequence[TrialRecord], metric: Mapping[str, Any]) -> TrialRecord | None:
    name = metric["name"]
    for bound, sign in ((metric.get("at_most"), 1), (metric.get("at_least"), -1)):
        if bound is None:
            continue
        excess = {t.number: sign * (t.metrics[name].value - bound) for t in wrong if name in t.metrics}
        past = [trial for trial in wrong if 0 < excess.get(trial.number, 0.0) < math.inf]
        if len(past) > 1:
            return min(past, key=lambda trial: (excess[trial.number], trial.number))
    return None
