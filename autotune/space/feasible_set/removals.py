"""What each constraint removes: by itself, and on top of all the others. Counted, else estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.space.feasible_set.factors import Estimate
from autotune.space.feasible_set.feasible import FeasibleSet
from autotune.space.feasible_set.layering import LIMIT
from autotune.space.language.rule import Rule
from autotune.space.space import Space

MOST = 20_000
"""With more constraints times knobs nothing is counted: for each constraint the whole set is made anew
without it, which takes minutes in all. A tenth of this if the set is estimated: each time takes seconds."""
DRAWS = 5_000
"""How many random configurations tell which share a constraint on a continuous knob refuses."""


@dataclass(frozen=True)
class Removal:
    """The effect of one constraint, in configurations, or as a share where continuous knobs are concerned."""

    rule: Rule
    removes: Estimate | None
    """How many of all combinations it refuses."""
    only: Estimate | None
    """How many more would be feasible without it: those that no other constraint refuses."""
    share: float | None = None
    """Which share of random draws it refuses, where it has no number; ``None`` if nothing can be drawn."""


def combinations(space: Space) -> Estimate:
    """How many combinations of the discrete knobs there are before any constraint, conditions kept."""
    return _count(space, ())


def removed_by_each(space: Space) -> tuple[Removal, ...] | None:
    """The effect of each constraint over the discrete knobs, in the order of the space.

    A constraint that mentions a continuous knob removes a share, not a number: ``removes`` and ``only`` are
    ``None`` then. Shares are those of :data:`DRAWS` draws, the same at each call. The result is ``None`` if
    it would take too long (:data:`MOST`).
    """
    work = len(space.constraints) * len(space.knobs)
    if work > MOST:
        return None
    discrete = space.feasible.constraints
    everything, feasible = combinations(space), space.feasible.estimate
    if feasible.confidence < 1 and work > MOST // 10:
        return None
    # If the set itself was not counted, differences from it are rough, and not worth as much effort.
    limit = LIMIT if feasible.confidence == 1 else LIMIT // 10
    shares = space.refused(np.random.default_rng(0), DRAWS) if space.feasible else {}
    removals = []
    for rule in space.constraints:
        if rule not in discrete:
            removals.append(Removal(rule, None, None, shares.get(rule)))
            continue
        others = tuple(other for other in discrete if other is not rule)
        alone, without = _count(space, (rule,)), _count(space, others, limit)
        removes = _less(everything, alone)
        removals.append(Removal(rule, removes, _within(_less(without, feasible), removes)))
    return tuple(removals)


def _count(space: Space, constraints: Sequence[Rule], limit: int = LIMIT) -> Estimate:
    return FeasibleSet(space.feasible.knobs, constraints, rows=space.rows, limit=limit).estimate


def _less(whole: Estimate, part: Estimate) -> Estimate:
    """How many are in ``whole`` but not in its subset ``part``."""
    low, high = max(whole.low - part.high, 0), max(whole.high - part.low, 0)
    confidence = max(whole.confidence + part.confidence - 1.0, 0.0)  # both hold (Bonferroni)
    return Estimate(max(whole.value - part.value, 0), low, high, confidence)


def _within(part: Estimate, whole: Estimate) -> Estimate:
    """``part``, given that it is a subset of ``whole``."""
    low, high = min(part.low, whole.high), min(part.high, whole.high)
    confidence = part.confidence if high == part.high else max(part.confidence + whole.confidence - 1.0, 0.0)
    return Estimate(min(max(part.value, low), high), low, high, confidence)
