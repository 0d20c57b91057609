"""The bounds that make a metric's value unacceptable. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from autotune.measure.outcome import Estimate
from autotune.space.spec import MetricSpec
from autotune.status import Status


def beyond_bounds(specs: Sequence[MetricSpec], metrics: Mapping[str, Estimate]) -> tuple[Status, str] | None:
    """The status and the sentence for the first metric that is unacceptable, or ``None``.

    NaN and infinity are ``diverged``; a value past ``at_most`` or ``at_least`` is ``wrong``.
    """
    for spec in specs:
        if spec.name not in metrics:
            continue
        value = metrics[spec.name].value
        if not math.isfinite(value):
            return Status.DIVERGED, f"{spec.name} is {value}"
        if spec.at_most is not None and value > spec.at_most:
            return Status.WRONG, f"{spec.name} is {value:g}, allowed is at most {spec.at_most:g}"
        if spec.at_least is not None and value < spec.at_least:
            return Status.WRONG, f"{spec.name} is {value:g}, allowed is at least {spec.at_least:g}"
    return None
