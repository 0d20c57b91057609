"""Which range a parameter has, where the trials of a study asked for it with several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution

RECENT = 10
"""So many askings for a parameter show whether its range moves."""


def moves(asked: Sequence[BaseDistribution]) -> bool:
    """Whether the range, as it was ``asked`` for one trial after the other, follows from the trial.

    One change among the last :data:`RECENT` is an edit of the study's code, which may be all that
    there will be; a second one so soon is not.
    """
    return sum(one != other for one, other in pairwise(asked[-RECENT:])) > 1


def current(asked: Sequence[BaseDistribution]) -> BaseDistribution:
    """The range to search: the newest, or of one that :func:`moves` what holds all that were asked for.

    ``ValueError`` where these have nothing in common.
    """
    return reduce(hull, dict.fromkeys(asked)) if moves(asked) else asked[-1]


def hull(one: BaseDistribution, other: BaseDistribution) -> BaseDistribution:
    """The smallest range that holds two; ``ValueError`` for two of different kinds or scales."""
    if isinstance(one, IntDistribution) and isinstance(other, IntDistribution) and one.log == other.log:
        low, high = min(one.low, other.low), max(one.high, other.high)
        apart = math.gcd(one.step, other.step, one.low - other.low)
        return IntDistribution(low, high, log=one.log, step=apart)
    if isinstance(one, FloatDistribution) and isinstance(other, FloatDistribution) and one.log == other.log:
        low_, high_ = min(one.low, other.low), max(one.high, other.high)
        same = one.step == other.step and (one.step is None or _whole((one.low - other.low) / one.step))
        return FloatDistribution(low_, high_, log=one.log, step=one.step if same else None)
    if one == other:
        return one
    raise ValueError(f"{one} and {other} have no range in common")


def nearest(value: float, allowed: BaseDistribution) -> float:
    """What is nearest to ``value`` in a range; ``ValueError`` where it is none of numbers."""
    if not isinstance(allowed, (IntDistribution, FloatDistribution)):
        raise ValueError(f"{allowed} is no range")
    within = min(max(value, allowed.low), allowed.high)
    if allowed.step is None:
        return within
    return min(allowed.low + round((within - allowed.low) / allowed.step) * allowed.step, allowed.high)


def _whole(number: float) -> bool:
    return abs(number - round(number)) < 1e-8
