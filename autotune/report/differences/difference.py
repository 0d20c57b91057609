"""Two trials, two studies or two recipes side by side: what differs, and whether their outcomes do.

Outcomes are compared by what was really measured. Where two configurations were read in the same rounds of a
finale, the ratio of those rounds decides (:func:`autotune.measure.rules.significance.speedup`). Otherwise two
results of separate runs stand against each other, each as wide as runs of the same thing differ
(:mod:`autotune.session.reproduction.replicates`). Where a comparison would mean nothing it is not made, and
it is said why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from autotune.session.reproduction.replicates import Interval, Spread, apart, widened
from autotune.store.records import StudyRecord

Pair = tuple[object, object]
"""Of one and of the other; ``None`` on the side that has no such thing."""

Answer = Literal["better", "worse", "no difference shown", "not comparable"]
"""How the other stands to the one."""


@dataclass(frozen=True)
class Contrast:
    """How two outcomes stand to each other in one metric."""

    metric: str
    unit: str
    one: Interval | None
    other: Interval | None
    answer: Answer
    how: str
    """By what they were compared; or why they were not."""
    ratio: Interval | None = None
    """How many times better the other is: above 1 is better, whichever way the goal points."""

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
    """What differs between two things of a kind."""

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
        """Whether nothing differs but perhaps what was measured."""
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
    """The names whose values are not the same, each with both."""
    names = dict.fromkeys([*one, *other])
    return {name: (one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)}


def by_runs(
    metric: str,
    unit: str,
    goal: str,
    one: Interval,
    other: Interval,
    spread: Spread | None = None,
    study: StudyRecord | None = None,
) -> Contrast:
    """Two results of separate runs, each as wide as runs of the same thing differ.

    ``spread``: how much those differ; ``study``: how precisely and surely it is known. ``None``: unknown.
    """
    how = "of separate runs, by their intervals alone: nothing is known of how much runs differ"
    wide = (one, other)
    if spread is not None:
        reach = spread.reach(study.confidence if study is not None else 0.95)
        wide = (widened(one, reach, spread.logarithmic), widened(other, reach, spread.logarithmic))
        how = f"of separate runs; runs of the same thing differ by {_part(spread)} (standard deviation)"
    ratio = _ratio(*wide, goal)
    better = (other[0] < one[0]) == (goal == "minimize")
    answer: Answer = "no difference shown"
    if apart(*wide, study.precision if study is not None else 0.0):
        answer = "better" if better else "worse"
    return Contrast(metric, unit, one, other, answer, how, ratio)


def _part(spread: Spread) -> str:
    return f"{math.expm1(spread.deviation):.1%}" if spread.logarithmic else f"{spread.deviation:.3g}"


def _ratio(one: Interval, other: Interval, goal: str) -> Interval | None:
    """``None`` where a value is not above 0."""
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
    """Two outcomes that say nothing about each other."""
    return Contrast(metric, unit, one, other, "not comparable", why)
