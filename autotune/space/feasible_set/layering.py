"""Builds a counted decision diagram from rules, all states of a layer at once.

After the first k variables are assigned, a *state* is not their values but what the open rules have to
remember of them (:func:`autotune.space.feasible_set.frontier.frontier`), so that assignments which the other
variables cannot tell apart are one state. The cost is the number of distinct states, not of assignments. For
each variable:

1. the states are crossed with its values, and the rules that it closes are tested;
2. for what is left, only what the open rules remember is computed, and equal rows are merged;
3. bounds over the open variables end states that can no longer satisfy a rule, and *settle* rules
   that nothing can violate any more: what only these remembered is forgotten, and states are merged again.

If a layer, or all of them together, would have too many edges, its states are first merged into fewer ones
that only remember bounds: the diagram becomes a relaxed one, with certain and uncertain edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from autotune.space.feasible_set import bounds
from autotune.space.feasible_set.bounds import Span
from autotune.space.feasible_set.columns import Array, Column
from autotune.space.feasible_set.diagram import Diagram, Layer
from autotune.space.feasible_set.frontier import evaluate, frontier, spans
from autotune.space.feasible_set.grouping import codes, group, hull, pack, ranked
from autotune.space.feasible_set.ordering import arrange
from autotune.space.feasible_set.remembered import (
    Remembered,
    bounded,
    filled,
    flat,
    flat_column,
    take,
    upright,
)
from autotune.space.feasible_set.terms import Term, Terms

LIMIT = 1_000_000
"""With more edges in a layer a diagram is relaxed. So many take tens of megabytes and half a second."""
RELAXED = 0.15
"""The layers of a relaxed diagram have at most this part of the limit: wider ones hardly bound better."""

IN_ALL = 3_000_000
"""The limit of all layers together: those of 200 variables could add up to minutes and gigabytes."""

_AT_ONCE = 1 << 17
"""The bounds of so many states are computed at once, since there are many intermediate results."""


@dataclass(frozen=True, eq=False)
class Puzzle:
    """What a diagram is built from: variables ``0 .. n - 1``, and rules that are true or false.

    ``weights[v]`` has an entry for each class of variable ``v``: how many values that class stands for.
    ``values[v]`` is the term of ``v``, or ``None`` if no rule mentions it.
    """

    terms: Terms
    weights: tuple[Sequence[int], ...]
    values: tuple[Term | None, ...]
    rules: tuple[Term, ...]
    levels: tuple[int | None, ...]
    """For a variable that is a digit of a longer number, its place (0: the most significant)."""

    @property
    def sizes(self) -> list[int]:
        return [len(weight) for weight in self.weights]

    def alone(self, variable: int, rules: Iterable[Term]) -> Mapping[Term, Column]:
        """The parts of these rules that depend on ``variable`` alone, for each of its classes.

        So they are computed once for each class, and not for each state or row that has it.
        """
        assigned = self.values[variable]
        if assigned is None:
            return {}
        values = {assigned: self.terms.columns[variable]}
        found = {term for rule in rules for term in frontier(self.terms, rule, assigned.mask)}
        size = len(self.weights[variable])
        return {term: flat_column(evaluate(term, values, self.terms), size) for term in found} | values


class TooWide(Exception):  # noqa: N818 - an answer
    """States cannot be merged into few, since too many combinations of settled rules keep them apart."""


def build(puzzle: Puzzle, limit: int = LIMIT, *, within: float = math.inf) -> Diagram:
    """The diagram of all assignments that satisfy every rule; relaxed beyond ``limit`` edges in a layer.

    The limit of all layers together is in proportion, as :data:`IN_ALL` is to :data:`LIMIT`. Raises
    :class:`TooWide` if a relaxed layer would have more than ``within`` times the edges it should have.
    """
    order = arrange(puzzle.sizes, puzzle.rules, puzzle.levels)
    states = _States(puzzle)
    layers: list[Layer] = []
    in_all = IN_ALL * limit // LIMIT
    most, left = limit, in_all
    for variable in order:
        size = puzzle.sizes[variable]
        edges = states.count * size
        if edges and edges > min(most, left) and states.remembered:  # else there is nothing to merge
            most = left = min(int(limit * RELAXED), in_all // len(order))
            merged = states.relax(max(most // size, 1))
            if states.count * size > within * max(most, size):
                raise TooWide
            if layers:
                layers[-1] = _redirected(layers[-1], merged)
        layers.append(states.advance(variable))
        if most == limit:
            left -= len(layers[-1].value)
    return Diagram(tuple(layers), puzzle.weights)


def _redirected(layer: Layer, merged: NDArray[np.int64]) -> Layer:
    child = np.where(layer.child >= 0, merged[layer.child], -1).astype(np.int32)
    return Layer(layer.variable, layer.first, layer.value, child, layer.certain)


class _States:
    """The states of one layer: for each what the open rules remember."""

    def __init__(self, puzzle: Puzzle) -> None:
        self.puzzle = puzzle
        self.terms = puzzle.terms
        self.assigned = 0
        self.count = 1
        self.open: list[Term] = list(puzzle.rules)
        self.remembered: dict[Term, Remembered] = {}
        self.settled: dict[Term, NDArray[np.bool_]] = {}
        """For some open rules: in which states nothing can violate them any more."""

    # --- one variable further -------------------------------------------------------------------

    def advance(self, variable: int) -> Layer:
        """Assign ``variable``: this object becomes the next layer's states. Returns the edges to them."""
        size = self.puzzle.sizes[variable]
        after = self.assigned | 1 << variable
        closing = [rule for rule in self.open if not rule.mask & ~after]
        self.open = [rule for rule in self.open if rule.mask & ~after]
        allowed, certain = self._test(closing, variable, after)
        edges = np.flatnonzero(allowed)
        source, value = np.divmod(edges, size)
        first = np.zeros(len(allowed) + 1, dtype=np.int64)
        np.cumsum(np.count_nonzero(allowed, axis=1), out=first[1:])
        self._remember(source, value, variable, after)
        child = self._settle(self._merge(), variable)
        value = value.astype(np.min_scalar_type(size - 1))
        certain = None if certain is None else certain.ravel()[edges]
        return Layer(variable, first, value, child.astype(np.int32), certain)

    def _test(
        self, closing: Sequence[Term], variable: int, after: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_] | None]:
        """Which pairs of state and value satisfy the rules that close now, or may; and which certainly do."""
        size = self.puzzle.sizes[variable]
        allowed = np.ones((self.count, size), dtype=bool)
        certain: NDArray[np.bool_] | None = None
        known = _Lazy(self.remembered, upright)
        term = self.puzzle.values[variable]
        if term is not None:
            known.put(term, self.terms.columns[variable].reshape(1, size))
        for rule in closing:
            result = self._compute(rule, known, after)
            settled = self.settled.pop(rule)[:, None] if rule in self.settled else False
            if isinstance(result, Column):
                allowed &= result.data | settled
            else:
                allowed &= ~bounds.certainly_false(result) | settled
                sure = bounds.certainly_true(result) | settled
                certain = np.broadcast_to(sure, allowed.shape) if certain is None else certain & sure
        return allowed, certain

    def _compute(self, term: Term, known: _Lazy[Remembered], after: int) -> Remembered:
        """The values of ``term`` if all that it needs is known exactly, else its bounds."""
        needed = frontier(self.terms, term, self.assigned)
        if any(isinstance(self.remembered[one], Span) for one in needed):
            return spans(term, _Lazy(known, bounded), self.terms, self.assigned, after, {})
        return evaluate(term, cast("Mapping[Term, Column]", known), self.terms, self.assigned)

    def _remember(self, source: Array, value: Array, variable: int, after: int) -> None:
        """Compute, for each edge, what the rules that stay open need to know of it."""
        known = _Lazy(self.remembered, lambda one: take(one, source))
        for term, column in self.puzzle.alone(variable, self.open).items():
            known.put(term, column.take(value))
        remembered = {
            term: flat(self._compute(term, known, after), len(source)) for term in self._needed(after)
        }
        self.remembered = remembered
        self.settled = {rule: flag[source] for rule, flag in self.settled.items()}
        self.assigned, self.count = after, len(source)

    def _needed(self, assigned: int) -> list[Term]:
        """What the open rules have to remember once these variables are set, in a fixed order."""
        found = {term for rule in self.open for term in frontier(self.terms, rule, assigned)}
        return sorted(found, key=lambda term: term.number)

    # --- merging --------------------------------------------------------------------------------

    def _merge(self) -> NDArray[np.int64]:
        """Merge states that remember the same; the new number of each old one."""
        parts = (codes(one) for one in self.remembered.values())
        flags = ((flag.astype(np.int64), 2) for flag in self.settled.values())
        number, member = group(pack(chain(parts, flags), self.count))
        self._keep(member)
        return number

    def _keep(self, rows: Array) -> None:
        self.remembered = {term: take(one, rows) for term, one in self.remembered.items()}
        self.settled = {rule: flag[rows] for rule, flag in self.settled.items()}
        self.count = len(rows)

    def _settle(self, child: NDArray[np.int64], variable: int) -> NDArray[np.int64]:
        """End states that are lost by ``variable``, forget what no rule needs any more, and merge again.

        ``child`` is the state that each edge leads to; returned is the new one (-1: lost).
        """
        lost, news = self._judge(variable)
        if not lost.any() and not news:
            return child
        self._forget()
        alive = np.flatnonzero(~lost)
        number = np.full(self.count, -1, dtype=np.int64)
        self._keep(alive)
        number[alive] = self._merge()
        return np.asarray(number[child])

    def _judge(self, variable: int) -> tuple[NDArray[np.bool_], bool]:
        """Which states can no longer satisfy some rule; and whether any rule became settled in a state.

        Only the rules that mention ``variable``, which was assigned: no more is known of the others.
        """
        begun = [rule for rule in self.open if rule.mask >> variable & 1]
        lost = np.zeros(self.count, dtype=bool)
        settled = {rule: np.zeros(self.count, dtype=bool) for rule in begun}
        for start in range(0, self.count, _AT_ONCE):
            rows = slice(start, start + _AT_ONCE)
            known = _Lazy(self.remembered, partial(bounded, rows=rows))
            memo: dict[Term, Span] = {}
            for rule in begun:
                span = spans(rule, known, self.terms, self.assigned, self.assigned, memo)
                before = self.settled[rule][rows] if rule in self.settled else False
                lost[rows] |= bounds.certainly_false(span) & ~np.asarray(before)
                settled[rule][rows] = bounds.certainly_true(span) & ~np.asarray(before)
        news = [rule for rule in begun if settled[rule].any()]
        for rule in news:
            self.settled[rule] = self.settled.get(rule, False) | settled[rule]
        return lost, bool(news)

    def _forget(self) -> None:
        """Where only settled rules remember something, give it the same value in all such states."""
        self.open = [rule for rule in self.open if rule not in self.settled or not self.settled[rule].all()]
        self.settled = {rule: flag for rule, flag in self.settled.items() if rule in self.open}
        unneeded = {term: np.ones(self.count, dtype=bool) for term in self._needed(self.assigned)}
        for rule in self.open:
            for term in frontier(self.terms, rule, self.assigned):
                unneeded[term] &= self.settled.get(rule, False)
        self.remembered = {term: filled(self.remembered[term], rows) for term, rows in unneeded.items()}

    def relax(self, width: int) -> NDArray[np.int64]:
        """Merge near states until at most ``width`` are left; the new number of each old one."""
        ranks = [ranked(one) for one in self.remembered.values()]
        flags = [(flag.astype(np.int64), 2) for flag in self.settled.values()]
        bins = max(rank.count for rank in ranks)
        while True:
            number, member = group(pack([rank.coarse(bins) for rank in ranks] + flags, self.count))
            if len(member) <= width or bins == 1:
                break
            bins = max(1, min(bins - 1, int(bins * max(0.25, 0.95 * (width / len(member)) ** 0.5))))
        by_group = np.argsort(number, kind="stable")
        starts = np.flatnonzero(np.diff(number[by_group], prepend=-1))
        remembered = {term: hull(one, by_group, starts) for term, one in self.remembered.items()}
        self._keep(by_group[starts])
        self.remembered = remembered
        return number


S = TypeVar("S")
T = TypeVar("T")


class _Lazy(Mapping[Term, T]):
    """A mapping whose values are converted from another's when they are first asked for."""

    def __init__(self, source: Mapping[Term, S], convert: Callable[[S], T]) -> None:
        self._source: Mapping[Term, Any] = source
        self._convert = convert
        self._found: dict[Term, T] = {}

    def put(self, term: Term, value: T) -> None:
        """Add an entry that the source does not have."""
        self._found[term] = value

    def __getitem__(self, term: Term) -> T:
        if term not in self._found:
            self._found[term] = self._convert(self._source[term])
        return self._found[term]

    def __contains__(self, term: object) -> bool:
        return term in self._found or term in self._source

    def __iter__(self) -> Iterator[Term]:
        return iter({*self._source, *self._found})

    def __len__(self) -> int:
        return len({*self._source, *self._found})
