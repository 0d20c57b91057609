"""The bounds that make a metric's value unacceptable. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from autotune.measure.outcome import Estimate
from autotune.measure.rules.repetition import BeyondDoubt, Goal, NoNoise, Progress
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
            is_, allowed = _told_apart(value, spec.at_most)
            return Status.WRONG, f"{spec.name} is {is_}, allowed is at most {allowed}"
        if spec.at_least is not None and value < spec.at_least:
            is_, allowed = _told_apart(value, spec.at_least)
            return Status.WRONG, f"{spec.name} is {is_}, allowed is at least {allowed}"
    return None


def _told_apart(value: float, bound: float) -> tuple[str, str]:
    """Both in six digits, or as many more as it takes to see that they differ."""
    texts = [(f"{value:.{digits}g}", f"{bound:.{digits}g}") for digits in (6, 9, 12, 15, 17)]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[-1])


def beyond_doubt(specs: Sequence[MetricSpec], readings: Callable[[str], Sequence[float]]) -> str:
    """Why more readings cannot make a metric of ``specs`` acceptable; empty if they may.

    ``readings`` gives those of a metric so far. A NaN among them stays one. A metric without noise is known
    after its first readings; of a noisy one, so many have to be past the bound that its median cannot be
    within it (the test by betting of :class:`~autotune.measure.rules.repetition.BeyondDoubt`).
    """
    for spec in specs:
        values = tuple(readings(spec.name))
        if not all(map(math.isfinite, values)):
            return f"a reading of {spec.name} is not finite"
        bounds: tuple[tuple[float | None, Goal], ...] = (
            (spec.at_most, "minimize"),
            (spec.at_least, "maximize"),
        )
        for bound, goal in bounds:
            if bound is not None and _past(values, bound, goal):
                return f"{spec.name} is past its bound of {bound:g} beyond doubt after {len(values)} readings"
    return ""


_WITHOUT_NOISE = NoNoise()
_OF_THE_MEDIAN = BeyondDoubt(levels=((1.0, 1 / 2),))


def _past(values: tuple[float, ...], bound: float, goal: Goal) -> bool:
    progress = Progress(values, 0.95, Estimate.of_one(bound), goal)
    if _WITHOUT_NOISE.reason(progress):
        return values[0] > bound if goal == "minimize" else values[0] < bound
    return bool(_OF_THE_MEDIAN.reason(progress))
