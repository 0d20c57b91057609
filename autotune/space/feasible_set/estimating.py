"""Estimates of how many states a diagram has once some of its variables are assigned.

An estimate uses only how many values a remembered term can take (by its bounds, and by the variables in it),
not the values themselves. Estimates are asked for very often, with one variable more each time. So what the
terms remember is kept, and only what the new variable touches is looked at again: of a sum of 200 operands
the bounds of those so far, and of one more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from operator import or_
from typing import Any, TypeAlias

from autotune.space.feasible_set import bounds
from autotune.space.feasible_set.terms import Term

_CLOSED = 0.7
"""A guess: each rule that is closed halves the number of assignments left (0.7 is about log 2)."""
_PRODUCTS = 0.8
"""A guess: a product with n combinations of operands takes n**0.8 distinct values."""
_EACH = 0.05
"""What each remembered term costs by itself, so that of otherwise equal orders one with fewer is taken."""

LogCounts: TypeAlias = dict[Hashable, float]
"""What has to be remembered: for the name of each term (which equal terms share) the logarithm of how many
values it takes."""


@dataclass(frozen=True)
class _Part:
    """The closed operands of a folding term, folded. ``numbers`` has a bit for each of them."""

    name: Hashable
    numbers: int
    mask: int
    combinations: float
    span: bounds.Span
    values: float
    """The logarithm of how many values it takes."""


@dataclass(frozen=True)
class _Begun:
    """A term with some variables assigned. If it folds: its ``operands`` that are begun, and the ``part`` of
    those that are closed."""

    remembered: LogCounts
    part: _Part | None = None
    operands: Mapping[Term, LogCounts] = field(default_factory=dict)


_NOTHING = _Begun({})


@dataclass(frozen=True)
class _Kept:
    """What all open rules remember: a term that several of them remember counts once."""

    times: Mapping[Hashable, int]
    """How many of the rules remember a term."""
    values: LogCounts
    total: Sequence[float]
    """A few numbers whose exact sum is that of the values: what is taken away again leaves no rounding."""

    @classmethod
    def of(cls, each: Collection[LogCounts]) -> _Kept:
        values = {name: value for one in each for name, value in one.items()}
        total: list[float] = []
        while rest := math.fsum([*values.values(), *(-part for part in total)]):
            total.append(rest)
        return cls(Counter(chain.from_iterable(each)), values, total)

    def changed(self, before: Sequence[LogCounts], after: LogCounts) -> tuple[float, int]:
        """The sum, and how many it is of, once the rules that remember ``before`` remember ``after`` instead.

        The other rules are not looked at: there may be a thousand.
        """
        times = Counter(chain.from_iterable(before))
        gone = [self.values[n] for n, count in times.items() if count == self.times[n] and n not in after]
        new = [value for name, value in after.items() if name not in self.values]
        total = math.fsum([*self.total, *new, *(-value for value in gone)])
        return total, len(self.values) + len(new) - len(gone)


class Estimates:
    """The logarithm of how many states there are, as one variable after another is assigned."""

    def __init__(self, sizes: Sequence[int], rules: Sequence[Term]) -> None:
        self._logs = [math.log(size) for size in sizes]
        self._rules = [[rule for rule in rules if rule.mask >> v & 1] for v in range(len(sizes))]
        self._constant = sum(not rule.mask for rule in rules)
        self._rule_with: dict[tuple[Term, int], LogCounts] = {}
        """What a rule remembers, by which of its variables are assigned: many orders come to the same."""
        self._wholes: dict[Term, _Part] = {}
        self._parts: dict[Hashable, _Part] = {}
        self._spans: dict[Hashable, bounds.Span] = {}
        self._touched: dict[Term, dict[int, list[Term]]] = {}
        self.restart()

    def restart(self) -> None:
        """Begin again with no variable assigned. What was computed about terms is kept."""
        self._assigned = 0
        self._everything = 0.0
        """The logarithm of how many assignments there are so far, rules aside."""
        self._closed = self._constant
        self._begun: dict[Term, _Begun] = {}
        """All terms of which some variables are assigned."""
        self._open: dict[Term, _Begun] = {}
        """The rules of which some variables are assigned, but not all."""
        self._kept = _Kept.of(())

    def after(self, variable: int) -> float:
        """The estimate with ``variable`` assigned as well.

        It is the smaller one of how many assignments there are, and how many combinations of values are
        remembered.
        """
        bit, found = 1 << variable, dict[Term, _Begun]()
        after, closed = self._assigned | bit, self._closed
        before: list[LogCounts] = []
        remembered: LogCounts = {}
        for rule in self._rules[variable]:
            if rule in self._open:
                before.append(self._open[rule].remembered)
            if not rule.mask & ~after:
                closed += 1
                continue
            key = rule, rule.mask & after
            if key not in self._rule_with:
                self._rule_with[key] = self._with(rule, bit, found).remembered
            remembered |= self._rule_with[key]
        everything = self._everything + self._logs[variable] - _CLOSED * closed
        kept, count = self._kept.changed(before, remembered)
        # Rounded, since the order in which logarithms are added up must not make a difference.
        return round(min(everything, kept) + _EACH * count, 9)

    def assign(self, variable: int) -> None:
        """Assign ``variable``."""
        bit, found = 1 << variable, dict[Term, _Begun]()
        for rule in self._rules[variable]:
            if rule.mask & ~(self._assigned | bit):
                self._open[rule] = self._with(rule, bit, found)
            else:
                self._open.pop(rule, None)
                self._closed += 1
        self._kept = _Kept.of([begun.remembered for begun in self._open.values()])
        self._begun |= found
        self._assigned |= bit
        self._everything += self._logs[variable]

    # --- terms ----------------------------------------------------------------------------------

    def _with(self, term: Term, bit: int, found: dict[Term, _Begun]) -> _Begun:
        """What a term with the variable ``bit`` remembers once that is assigned; kept in ``found``."""
        begun = found.get(term)
        if begun is None:
            if not term.mask & ~(self._assigned | bit):
                whole = self._whole(term)
                begun = _Begun({whole.name: whole.values})
            elif term.folds:
                begun = self._folded(term, bit, found)
            else:
                begun = _Begun(self._operands(term, bit, found))
            found[term] = begun
        return begun

    def _operands(self, term: Term, bit: int, found: dict[Term, _Begun]) -> LogCounts:
        remembered: LogCounts = {}
        for operand in term.arguments:
            if operand.mask & bit:
                remembered |= self._with(operand, bit, found).remembered
            elif operand.mask & self._assigned:
                remembered |= self._begun[operand].remembered
        return remembered

    def _folded(self, term: Term, bit: int, found: dict[Term, _Begun]) -> _Begun:
        before = self._begun.get(term, _NOTHING)
        part, operands = before.part, dict(before.operands)
        for operand in self._with_variable(term)[bit]:
            if operand.mask & ~(self._assigned | bit):
                operands[operand] = self._with(operand, bit, found).remembered
            else:
                operands.pop(operand, None)
                part = self._joined(term, part, operand)
        remembered: LogCounts = {}
        for one in operands.values():
            remembered |= one
        if part is not None:
            remembered[part.name] = part.values
        return _Begun(remembered, part, operands)

    def _with_variable(self, term: Term) -> dict[int, list[Term]]:
        """The operands of a folding term by each (bit of a) variable in them."""
        if term not in self._touched:
            found: dict[int, list[Term]] = {}
            for operand in term.arguments:
                mask = operand.mask
                while mask:
                    found.setdefault(mask & -mask, []).append(operand)
                    mask &= mask - 1
            self._touched[term] = found
        return self._touched[term]

    def _whole(self, term: Term) -> _Part:
        """A term all of whose variables are assigned."""
        if term not in self._wholes:
            numbers = reduce(or_, (1 << one.number for one in term.arguments)) if term.folds else 0
            name = (term.operation, term.data, numbers) if term.folds else term
            combinations = self._combinations(term.mask)
            values = _values(term.operation, term.mask, combinations, term.integral, term.span)
            self._wholes[term] = _Part(name, 1 << term.number, term.mask, combinations, term.span, values)
        return self._wholes[term]

    def _joined(self, term: Term, part: _Part | None, operand: Term) -> _Part:
        """``part`` of a folding term, with one more of its operands."""
        other = self._whole(operand)
        if part is None:
            return other
        key = (term.operation, term.data, part.name, operand)
        joined = self._parts.get(key)
        if joined is None:
            joined = self._parts[key] = self._join(term, part, other)
        return joined

    def _join(self, term: Term, part: _Part, other: _Part) -> _Part:
        numbers, mask = part.numbers | other.numbers, part.mask | other.mask
        combinations = part.combinations + self._combinations(mask & ~part.mask)
        span = self._combined(term.operation, term.data, part.span, other.span)
        values = _values(term.operation, mask, combinations, True, span)
        return _Part((term.operation, term.data, numbers), numbers, mask, combinations, span, values)

    def _combined(self, operation: str, data: Any, one: bounds.Span, other: bounds.Span) -> bounds.Span:
        """The span of both, computed once: of 200 operands to choose from, most have the same span."""
        key = operation, data, float(one.low), float(one.high), float(other.low), float(other.high)
        if key not in self._spans:
            self._spans[key] = bounds.combine(operation, (one, other), data)
        return self._spans[key]

    def _combinations(self, mask: int) -> float:
        """The logarithm of how many combinations of these variables there are."""
        found = 0.0
        while mask:
            found += self._logs[(mask & -mask).bit_length() - 1]
            mask &= mask - 1
        return found


def _values(operation: str, mask: int, combinations: float, integral: bool, span: bounds.Span) -> float:
    """The logarithm of how many values a term takes."""
    if operation in ("*", "*%") and mask.bit_count() > 1:
        combinations *= _PRODUCTS
    if integral:
        combinations = min(combinations, math.log(max(bounds.width(span), 1.0)))
    return combinations
