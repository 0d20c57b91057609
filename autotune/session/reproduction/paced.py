"""Results at the same pace of the machine, to see what differs beyond the speed of the core. Pure.

Beside each reading, the time of a fixed piece of work is recorded (:mod:`autotune.measure.cores.pace`). How
much the metric depends on it is the slope of a straight line through logarithms, fitted by least squares
with a separate level for each group of readings of the same thing: an analysis of covariance (R. A. Fisher,
*Statistical Methods for Research Workers*, 4th ed., 1932, section 49.1). The slope is near 1 for
arithmetic, less for a kernel that waits for memory, and 0 for a loss; configurations of one kernel differ
as well. So the slope of each is estimated from its own readings, and shrunk towards the slope of all the
more, the less they say (C. R. Henderson, *Best linear unbiased estimation and prediction under a selection
model*, Biometrics 31, 1975). The error of a slope, times the change of the pace, widens the intervals.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autotune.measure.outcome import Reading
from autotune.measure.rules.statistics import estimate, student_quantile
from autotune.session.reproduction.replicates import Interval, interval_of, spread_of, widened

BLOCK = 5
"""How many readings of a run are averaged before the fit: noise in single paces would flatten the slope."""

SLOPES_DIFFER = 0.2
"""The standard deviation of slopes among configurations. Matrix products were observed with 0.65 to 1.05."""

FEWEST_BLOCKS = 20
"""With fewer blocks in all (degrees of freedom), a slope is a guess."""

LARGEST_SLOPE = 1.5
"""Slopes are limited to plus or minus this: a larger one is due to chance."""

LARGEST_SHIFT = math.log(1.75)
"""What a busy sibling thread may cost a core; results are not converted over a larger change of the pace."""


@dataclass(frozen=True)
class Series:
    """The readings of one thing in one process that count, in the order taken, as logarithms."""

    values: tuple[float, ...]
    paces: tuple[float, ...]

    def at_pace(self, pace: float, slope: float) -> list[float]:
        """The values, no longer logarithms, as they would have been at ``pace`` (a logarithm)."""
        return [math.exp(v - slope * (p - pace)) for v, p in zip(self.values, self.paces, strict=True)]

    @property
    def middle(self) -> float:
        """The median of the values, not a logarithm."""
        return estimate([math.exp(value) for value in self.values]).value

    @property
    def pace(self) -> float:
        return statistics.median(self.paces)


def series_of(readings: Iterable[Reading], metric: str) -> Series | None:
    """The readings of ``metric``; ``None`` if there is none, or one is not above 0 or has no pace."""
    own = [r for r in readings if r.metric == metric and not r.discarded]
    pairs = [(r.value, r.context.get("pace_us", 0.0)) for r in own]
    if not pairs or not all(0.0 < number < math.inf for pair in pairs for number in pair):
        return None
    return Series(tuple(math.log(v) for v, _ in pairs), tuple(math.log(p) for _, p in pairs))


@dataclass(frozen=True)
class Past:
    """What a study knows of a result that is measured again."""

    then: Series
    """The readings of the result itself."""
    replicates: Sequence[Sequence[Series]]
    """For each other configuration that was measured in several runs: its runs."""


@dataclass(frozen=True)
class SamePace:
    """Two results as they would be at the pace of the first."""

    then: Interval
    now: Interval
    """Both intervals are as wide as runs of the same thing differ."""
    read: Interval
    """The result now, with the interval of its own readings."""
    slower: float
    """The time that a core takes now for the fixed piece of work, relative to then."""


def at_same_pace(
    past: Past, now: Sequence[Series], others: Sequence[Sequence[Series]], confidence: float
) -> SamePace | None:
    """Convert the runs ``now``, and the study's result, to the same pace.

    ``others`` are other things that were read now, with the runs of each. All runs count for the spread,
    including those of now, since moments differ mostly in their pace. ``None`` if there are too few
    readings, or the pace has changed too much.
    """
    own = [[past.then], now]
    apart = [*others, *past.replicates]
    pooled = slope_of([*own, *apart])
    pace = past.then.pace
    shift = statistics.median(series.pace for series in now) - pace
    if pooled is None or pooled.freedom < FEWEST_BLOCKS or abs(shift) > LARGEST_SHIFT:
        return None
    slope = pooled.drawn_by(own)
    slopes = [slope, slope, *(pooled.drawn_by([group]) for group in apart)]
    spread = spread_of(
        [statistics.median(series.at_pace(pace, its.value)) for series in group]
        for its, group in zip(slopes, [*own, *apart], strict=True)
    )
    if spread is None:
        return None
    reach = math.hypot(spread.reach(confidence), slope.reach(confidence) * shift / math.sqrt(2))
    then, read = (
        interval_of([value for series in group for value in series.at_pace(pace, slope.value)], confidence)
        for group in own
    )
    wide_then, wide_now = (widened(one, reach, logarithmic=True) for one in (then, read))
    return SamePace(wide_then, wide_now, read, math.exp(shift))


@dataclass(frozen=True)
class Slope:
    """The power of the pace with which a metric changes."""

    value: float
    error: float
    """Its standard error."""
    freedom: int

    def reach(self, confidence: float) -> float:
        """How far it may be from the truth with this confidence."""
        return student_quantile((1 + confidence) / 2, self.freedom) * self.error

    def drawn_by(self, own: Iterable[Sequence[Series]]) -> Slope:
        """The slope of one configuration: that of its ``own`` readings, shrunk towards this slope of many."""
        alone = slope_of(own)
        if alone is None:
            return Slope(self.value, math.hypot(self.error, SLOPES_DIFFER), self.freedom)
        among, within = self.error**2 + SLOPES_DIFFER**2, alone.error**2
        value = (alone.value * among + self.value * within) / (among + within)
        return Slope(value, math.sqrt(among * within / (among + within)), self.freedom)


def slope_of(groups: Iterable[Sequence[Series]]) -> Slope | None:
    """The slope fitted to groups, each with a level of its own; ``None`` if it cannot be determined."""
    values, paces, levels = [], [], 0
    for group in groups:
        blocks = [block for series in group for block in _blocks(series)]
        if blocks:
            levels += 1
            value, pace = (statistics.fmean(column) for column in zip(*blocks, strict=True))
            values += [v - value for v, _ in blocks]
            paces += [p - pace for _, p in blocks]
    freedom = len(values) - levels - 1
    squares = math.fsum(p * p for p in paces)
    if freedom < 1 or not squares:
        return None
    fitted = math.fsum(v * p for v, p in zip(values, paces, strict=True)) / squares
    slope = min(max(fitted, -LARGEST_SLOPE), LARGEST_SLOPE)
    left = math.fsum((v - slope * p) ** 2 for v, p in zip(values, paces, strict=True))
    return Slope(slope, math.sqrt(left / freedom / squares), freedom)


def _blocks(series: Series) -> list[tuple[float, float]]:
    """Means of value and pace over blocks of consecutive readings; a short run has smaller blocks."""
    size = max(1, min(BLOCK, len(series.values) // 2))
    starts = range(0, len(series.values) - size + 1, size)
    return [
        (statistics.fmean(series.values[i : i + size]), statistics.fmean(series.paces[i : i + size]))
        for i in starts
    ]
