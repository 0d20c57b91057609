"""In which order the variables of a factor are assigned, so that little has to be remembered.

Greedy: from several first variables, always add the variable after which the estimated number of
distinct states is smallest; the order with the fewest estimated edges wins. The estimates use only
how many values a remembered term can take (its bounds, the variables in it), not the variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from autotune.space import bounds
from autotune.space.terms import Term, Terms, frontier

MOST_STARTS = 6
_CLOSED = 0.7
"""Guess: a rule that is closed halves the assignments that are left (as a logarithm)."""
_PRODUCTS = 0.8
"""Guess: products of n values in all take n**0.8 distinct values."""

_EACH = 0.05
"""What each term that is remembered costs by itself: of equal orders, the one with fewer columns."""


class _Estimate:
    """Logarithms of how many states there are once a set of variables is assigned."""

    def __init__(self, terms: Terms, sizes: Sequence[int], rules: Sequence[Term]) -> None:
        self.terms = terms
        self.logs = [math.log(size) for size in sizes]
        self.rules = rules
        self._frontiers: dict[tuple[int, int], frozenset[Term]] = {}
        self._values: dict[Term, float] = {}

    def states(self, assigned: int) -> float:
        """The smaller of two bounds: all assignments so far, and all values of what is remembered."""
        everything = sum(self.logs[variable] for variable in _bits(assigned))
        remembered: set[Term] = set()
        closed = 0
        for rule in self.rules:
            if rule.mask & ~assigned:
                if rule.mask & assigned:
                    remembered |= self._frontier(rule, rule.mask & assigned)
            else:
                closed += 1
        kept = math.fsum(self._log_values(term) for term in remembered)  # whatever the set's order
        return min(everything - _CLOSED * closed, kept) + _EACH * len(remembered)

    def _frontier(self, rule: Term, assigned: int) -> frozenset[Term]:
        key = (rule.number, assigned)
        if key not in self._frontiers:
            self._frontiers[key] = frontier(self.terms, rule, assigned)
        return self._frontiers[key]

    def _log_values(self, term: Term) -> float:
        if term not in self._values:
            combinations = sum(self.logs[variable] for variable in _bits(term.mask))
            if term.operation in ("*", "*%") and term.mask.bit_count() > 1:
                combinations *= _PRODUCTS
            if term.integral:
                combinations = min(combinations, math.log(max(bounds.width(term.span), 1.0)))
            self._values[term] = combinations
        return self._values[term]


def arrange(
    terms: Terms, sizes: Sequence[int], rules: Sequence[Term], levels: Sequence[int | None]
) -> list[int]:
    """The variables ``0 .. len(sizes) - 1`` in the order in which they are to be assigned.

    A variable with a level (the place of a digit, 0 the most significant) comes after all those of
    smaller levels, so that bounds over the open digits are narrow.
    """
    estimate = _Estimate(terms, sizes, rules)
    mentions = [sum(rule.mask >> variable & 1 for rule in rules) for variable in range(len(sizes))]
    starts = sorted(range(len(sizes)), key=lambda variable: (-mentions[variable], sizes[variable]))
    best: list[int] = []
    least = math.inf
    for start in [start for start in starts if not levels[start]][:MOST_STARTS]:
        order, edges = _greedy(estimate, start, sizes, levels, least)
        if edges < least:
            best, least = order, edges
    return best


def _greedy(
    estimate: _Estimate, start: int, sizes: Sequence[int], levels: Sequence[int | None], most: float
) -> tuple[list[int], float]:
    """An order from ``start`` on and its estimated edges; given up where these are ``most`` or more."""
    order, left, assigned = [start], set(range(len(sizes))) - {start}, 1 << start
    edges = float(sizes[start])
    while left and edges < most:
        level = min((one for one in (levels[variable] for variable in left) if one is not None), default=0)
        free = [variable for variable in sorted(left) if (levels[variable] or 0) <= level]
        after = {variable: estimate.states(assigned | 1 << variable) for variable in free}
        chosen = min(free, key=lambda variable: (after[variable], estimate.logs[variable], variable))
        edges += math.exp(min(estimate.states(assigned) + estimate.logs[chosen], 600.0))
        order.append(chosen)
        left.remove(chosen)
        assigned |= 1 << chosen
    return order, edges


def _bits(mask: int) -> Iterable[int]:
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
