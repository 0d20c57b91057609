"""The differences between two trials, studies or recipes, and whether their outcomes differ.

If two configurations were read in the same rounds of a finale, the ratio in those rounds decides
(:func:`autotune.measure.rules.significance.speedup`). Otherwise two results of separate runs are compared,
with intervals at least as wide as runs of the same thing differ
(:mod:`autotune.session.reproduction.replicates`). If a comparison would mean nothing, the reason is given
instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from autotune.report.knob_views import same_value
from autotune.report.numbers import say_value
from autotune.session.reproduction.replicates import Interval, Spread, apart, widened
from autotune.space.spec import TIMES
from autotune.space.units import BYTES
from autotune.store.records import StudyRecord

SAME = 1e-5
"""A relative difference below this is none: a file of recipes keeps six digits of a number."""

Pair = tuple[object, object]
"""The values on the two sides; ``None`` on a side that has none."""

Answer = Literal["better", "worse", "no difference shown", "not comparable"]
"""How the other side compares with the one."""


@dataclass(frozen=True)
class Contrast:
    """How two outcomes compare in one metric."""

    metric: str
    unit: str
    one: Interval | None
    other: Interval | None
    answer: Answer
    how: str
    """How they were compared, or why they were not."""
    ratio: Interval | None = None
    """How many times better the other is; above 1 is better for both goals."""

    def to_document(self) -> dict[str, Any]:
        sides = {"one": self.one, "other": self.other, "ratio": self.ratio}
        intervals = {
            name: None if i is None else dict(zip(_ENDS, i, strict=True)) for name, i in sides.items()
        }
        return {
            "metric": self.metric,
            "unit": self.unit,
            **intervals,
            "answer": self.answer,
            "how": self.how,
        }


_ENDS = ("value", "low", "high")


@dataclass(frozen=True)
class Differences:
    """The differences between two things of one kind."""

    kind: Literal["trials", "studies", "recipes"]
    one: str
    other: str
    parts: Mapping[str, Mapping[str, Pair]] = field(default_factory=dict)
    """``{part: {name: (of one, of other)}}``: configuration, workload, code, environment ..."""
    contrasts: Sequence[Contrast] = ()
    remarks: Sequence[str] = ()
    """What is not comparable, and why."""

    @property
    def alike(self) -> bool:
        """Whether nothing differs, except perhaps the measurements."""
        return not any(self.parts.values())

    def to_document(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "one": self.one,
            "other": self.other,
            "parts": {
                part: {name: {"one": one, "other": other} for name, (one, other) in found.items()}
                for part, found in self.parts.items()
            },
            "outcomes": [contrast.to_document() for contrast in self.contrasts],
            "remarks": list(self.remarks),
        }


def pairs_of(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Pair]:
    """The names whose values differ, with both values; 1 and ``true`` are different."""
    pairs = {name: (one.get(name), other.get(name)) for name in dict.fromkeys([*one, *other])}
    return {name: pair for name, pair in pairs.items() if not same_value(*pair)}


def by_runs(
    metric: str,
    unit: str,
    goal: str,
    one: Interval,
    other: Interval,
    spread: Spread | None = None,
    study: StudyRecord | None = None,
) -> Contrast:
    """Compare two results of separate runs, with intervals as wide as runs of the same thing differ.

    ``spread`` is how much such runs differ, ``None`` if unknown. ``study`` gives the confidence and the
    precision.
    """
    how = "of separate runs, by their intervals alone: it is not known how much runs differ"
    wide = (one, other)
    if spread is not None:
        reach = spread.reach(study.confidence if study is not None else 0.95)
        wide = (widened(one, reach, spread.logarithmic), widened(other, reach, spread.logarithmic))
        how = f"of separate runs; runs of the same thing differ by {_part(spread, unit)} (standard deviation)"
    ratio = _ratio(*wide, goal)
    better = (other[0] < one[0]) == (goal == "minimize")
    answer: Answer = "no difference shown"
    if apart(*wide, max(study.precision if study is not None else 0.0, SAME)):
        answer = "better" if better else "worse"
    return Contrast(metric, unit, one, other, answer, how, ratio)


def _part(spread: Spread, unit: str) -> str:
    if spread.logarithmic:
        return f"{math.expm1(spread.deviation):.1%}"
    return say_value(spread.deviation, unit)


def _ratio(one: Interval, other: Interval, goal: str) -> Interval | None:
    """How many times better ``other`` is, with an interval; ``None`` unless all is finite and above 0."""
    if min(*one, *other) <= 0 or not all(map(math.isfinite, (*one, *other))):
        return None
    worse, best = (one, other) if goal == "minimize" else (other, one)
    ratio = worse[0] / best[0]
    below = math.hypot(math.log(worse[0] / worse[1]), math.log(best[2] / best[0]))
    above = math.hypot(math.log(worse[2] / worse[0]), math.log(best[0] / best[1]))
    return ratio, ratio * math.exp(-below), ratio * math.exp(above)


def incomparable(
    metric: str, unit: str, why: str, one: Interval | None = None, other: Interval | None = None
) -> Contrast:
    """A contrast that is not made, and why."""
    return Contrast(metric, unit, one, other, "not comparable", why)


def in_unit_of(one: str, other: str) -> float | None:
    """The factor that turns values in the unit ``other`` into ones in ``one``; ``None`` if there is none.

    It is 1 where a unit is not known.
    """
    if not (one and other):
        return 1.0
    (into, kind), (size, its) = _measure(one), _measure(other)
    return size / into if kind == its else None


def _measure(unit: str) -> tuple[float, str]:
    """How large a unit is, and in what: ms is 0.001 s, GB/s 1e9 B/s, and any other unit 1 of itself."""
    if unit in TIMES:
        return TIMES[unit], "s"
    amount, per, rest = unit.partition("/")
    return (BYTES[amount], f"B{per}{rest}") if amount in BYTES else (1.0, unit)


def scaled(interval: Interval, factor: float) -> Interval:
    """The interval in another unit."""
    return interval[0] * factor, interval[1] * factor, interval[2] * factor


def say_other_units(one: str, other: str) -> str:
    """Why values in these units are not compared."""
    return f"one is in {one}, the other in {other}"
