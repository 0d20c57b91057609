"""What each constraint removes: by itself, and on top of all the others. Exact where it can be counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from autotune.space.feasible import FeasibleSet
from autotune.space.rule import Rule
from autotune.space.space import Space


@dataclass(frozen=True)
class Removal:
    """The effect of one constraint, in configurations; ``None`` where it cannot be counted."""

    rule: Rule
    removes: int | None
    """How many of all combinations it refuses."""
    only: int | None
    """How many more would be feasible without it: those that no other constraint refuses."""


def combinations(space: Space) -> int | None:
    """How many combinations of the discrete knobs there are before any constraint, conditions kept."""
    return _count(space, ())


def removed_by_each(space: Space) -> tuple[Removal, ...]:
    """The effect of each constraint over the discrete knobs, in the order of the space.

    A constraint that mentions a continuous knob removes a share and not a number: both are ``None``.
    """
    discrete = space.feasible.constraints
    everything, feasible = combinations(space), _count(space, discrete)
    removals = []
    for rule in space.constraints:
        if rule not in discrete:
            removals.append(Removal(rule, None, None))
            continue
        others = tuple(other for other in discrete if other is not rule)
        alone, without = _count(space, (rule,)), _count(space, others)
        removals.append(Removal(rule, _less(everything, alone), _less(without, feasible)))
    return tuple(removals)


def _count(space: Space, constraints: Sequence[Rule]) -> int | None:
    return FeasibleSet(space.feasible.knobs, constraints, rows=space.rows).size


def _less(whole: int | None, part: int | None) -> int | None:
    return None if whole is None or part is None else whole - part
