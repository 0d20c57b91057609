"""By how much two runs of the same thing differ, and whether two results differ by more. Pure.

The interval of a trial says how well its own readings determine *its* median. It does not say where the
next run of the same configuration will lie: another process has other memory pages, and at another time the
machine has other work. *Replicates* do: results of the same configuration from different runs. Their pooled
spread, of logarithms if values are above 0, is the standard deviation of reproducibility, and two single
results differ by more than ``t * sqrt(2)`` times that in one case of twenty (ISO 5725-6:1994, 4.1: the
reproducibility limit, 2.8 standard deviations; Student's t takes the place of 1.96 because the spread is
estimated from few).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from autotune.measure.rules.statistics import estimate, student_quantile

Interval: TypeAlias = tuple[float, float, float]
"""Estimate, lower and upper end."""

LEAST_FREEDOM = 4
"""With fewer degrees of freedom from earlier replicates, the runs of the replay count as well: Student's t
would be huge otherwise."""


def interval_of(values: Sequence[float], confidence: float) -> Interval:
    """The median of ``values`` with its confidence interval."""
    return estimate(values, confidence).interval


@dataclass(frozen=True)
class Spread:
    """The standard deviation of one run among runs of the same thing."""

    deviation: float
    """Of logarithms if ``logarithmic``, or else in the metric's own unit."""
    freedom: int
    """Degrees of freedom: the number of replicates, less one for each configuration."""
    logarithmic: bool = True

    def reach(self, confidence: float) -> float:
        """How far a single run may lie from its centre with this confidence."""
        return student_quantile((1 + confidence) / 2, self.freedom) * self.deviation


def spread_of(groups: Iterable[Sequence[float]]) -> Spread | None:
    """The spread within ``groups``, each of which has the results of one configuration.

    Values that are not finite are left out. Logarithms are taken if every value is above 0. ``None`` if no
    group has two values.
    """
    finite = [[value for value in group if math.isfinite(value)] for group in groups]
    several = [group for group in finite if len(group) > 1]
    freedom = sum(len(group) - 1 for group in several)
    if not freedom:
        return None
    logarithmic = all(value > 0 for group in several for value in group)
    if logarithmic:
        several = [[math.log(value) for value in group] for group in several]
    squares = math.fsum((value - math.fsum(group) / len(group)) ** 2 for group in several for value in group)
    return Spread(math.sqrt(squares / freedom), freedom, logarithmic)


def expected_spread(before: Sequence[Sequence[float]], now: Sequence[float]) -> Spread | None:
    """The spread of earlier replicates, together with the runs made ``now`` if those are too few."""
    known = spread_of(before)
    if known is not None and known.freedom >= LEAST_FREEDOM:
        return known
    return spread_of([*before, now])


def widened(interval: Interval, reach: float, logarithmic: bool) -> Interval:
    """``interval`` extended to at least ``reach`` on either side (of the logarithm, if ``logarithmic``)."""
    value, low, high = interval
    if logarithmic and value > 0:
        return value, min(low, value * math.exp(-reach)), max(high, value * math.exp(reach))
    return value, min(low, value - reach), max(high, value + reach)


def apart(one: Interval, other: Interval, precision: float) -> bool:
    """Whether two results differ by more than their intervals and ``precision`` explain.

    The half-widths on the sides that face each other are added as independent errors (in squares), on a
    logarithmic scale if all ends are above 0, since ratios and times scatter that way.
    """
    low, high = sorted((one, other), key=lambda interval: interval[0])
    if min(*low, *high) > 0:
        gap = math.log(high[0] / low[0])  # infinite ends explain any gap
        return gap > math.hypot(math.log(low[2] / low[0]), math.log(high[0] / high[1])) + precision
    scale = max(abs(low[0]), abs(high[0]))
    return high[0] - low[0] > math.hypot(low[2] - low[0], high[0] - high[1]) + precision * scale


def resolution(one: Interval, other: Interval, precision: float) -> float | None:
    """The smallest relative difference that :func:`apart` would notice; ``None`` if there is none."""
    low, high = sorted((one, other), key=lambda interval: interval[0])
    if min(*low, *high) <= 0:
        return None
    gap = math.hypot(math.log(low[2] / low[0]), math.log(high[0] / high[1])) + precision
    return math.expm1(gap) if gap < 100 else None
