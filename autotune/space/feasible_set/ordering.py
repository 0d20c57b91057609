"""In which order the variables of a factor are assigned, so that little has to be remembered.

The search is greedy: beginning with each of several variables, always add the variable after which the
estimated number of distinct states is smallest (:mod:`autotune.space.feasible_set.estimating`); the order
with the fewest estimated edges wins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from autotune.space.feasible_set.estimating import Estimates
from autotune.space.feasible_set.terms import Term

MOST_STARTS = 6
"""The most variables to begin with."""
_LOOKS = 40_000
"""How often a variable may be looked at in all. One order of 200 variables takes half as many."""


def arrange(sizes: Sequence[int], rules: Sequence[Term], levels: Sequence[int | None]) -> list[int]:
    """The variables ``0 .. len(sizes) - 1`` in the order in which they are to be assigned.

    A variable with a level (the place of a digit, 0 for the most significant) comes after all those of
    smaller levels, so that the bounds of what is left open are narrow.
    """
    mentions = [sum(rule.mask >> variable & 1 for rule in rules) for variable in range(len(sizes))]
    starts = sorted(range(len(sizes)), key=lambda variable: (-mentions[variable], sizes[variable]))
    tries = max(min(MOST_STARTS, _LOOKS // max(len(sizes), 1) ** 2), 1)
    estimates = Estimates(sizes, rules)
    best: list[int] = []
    least = math.inf
    for start in [start for start in starts if not levels[start]][:tries]:
        order, edges = _greedy(estimates, start, sizes, levels, least)
        if edges < least:
            best, least = order, edges
    return best


def _greedy(
    estimates: Estimates, start: int, sizes: Sequence[int], levels: Sequence[int | None], most: float
) -> tuple[list[int], float]:
    """An order that begins with ``start``, and its estimated edges; given up once they are ``most``."""
    estimates.restart()
    order, left = [start], set(range(len(sizes))) - {start}
    edges, states = float(sizes[start]), estimates.after(start)
    estimates.assign(start)
    while left and edges < most:
        level = min((one for one in (levels[variable] for variable in left) if one is not None), default=0)
        free = [variable for variable in sorted(left) if (levels[variable] or 0) <= level]
        after = {variable: estimates.after(variable) for variable in free}
        chosen = min(free, key=lambda variable: (after[variable], sizes[variable], variable))
        edges += math.exp(min(states + math.log(sizes[chosen]), 600.0))
        order.append(chosen)
        left.remove(chosen)
        states = after[chosen]
        estimates.assign(chosen)
    return order, edges
