"""Splits the cells of a space into independent factors, and builds each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.space.configuration import Value
from autotune.space.feasible_set.bounds import certainly_false, certainly_true
from autotune.space.feasible_set.factors import Factor, FreeFactor, RowsFactor, RuledFactor
from autotune.space.feasible_set.layering import Puzzle, TooWide, build
from autotune.space.feasible_set.lowering import Lowering, cells_of
from autotune.space.feasible_set.parts import (
    DIGITS_FROM,
    DIGITS_MAY_FROM,
    CellPart,
    DigitsPart,
    OrderPart,
    Part,
    PositionPart,
    RestPart,
    split,
)
from autotune.space.feasible_set.terms import Term, Terms
from autotune.space.knobs.knob import Knob
from autotune.space.language.rule import Rule

WITHIN = 4.0
"""A relaxed diagram with more digits is given up if it is so many times as wide as it should be. With twenty
knobs of a thousand values, tied to each other in a chain, one would grow from layer to layer for an hour."""

CellName = tuple[str, int]
"""A knob's name and the position of the cell in it."""


def factorise(knobs: Sequence[Knob], rules: Sequence[Rule], limit: int) -> list[Factor]:
    """The factors of the set that these discrete knobs, their conditions and these rules describe.

    ``rules`` and conditions mention these knobs only.
    """
    single = [k for k in knobs if k.when is None and [len(c.values) for c in k.cells] == [1]]
    cells = _Cells.of(knobs, rules, fixed={knob.name: knob.cells[0].values[0] for knob in single})
    whole = {knob.name: knob.join([0]) for knob in single}  # ('i',), where the cell's value is 'i'
    if not all(rule.holds(whole) for rule in rules if not cells.read_by[rule]):
        return [RowsFactor((), np.empty((0, 0), np.int64))]
    ruled = [rule for rule in rules if cells.read_by[rule]]
    factors = []
    for group in _groups(_names(knobs), _ties(cells, ruled)):
        mine = [rule for rule in ruled if cells.read_by[rule] <= group]
        factors.append(_tightest(cells, group, mine, limit))
    return sorted(factors, key=lambda factor: min(factor.cells))


@dataclass(frozen=True)
class _Cells:
    """What all groups share."""

    knobs: Mapping[str, Knob]
    fixed: Mapping[str, Value]
    """The value of the cell of each knob that has only one value, and so needs no variable."""
    read_by: Mapping[Rule, set[CellName]]
    """Which cells, save those with a fixed value, each rule and condition mentions."""
    read: set[CellName]
    """The cells that any of them mentions."""
    numbers: Mapping[CellName, int]

    @classmethod
    def of(cls, knobs: Sequence[Knob], rules: Sequence[Rule], fixed: Mapping[str, Value]) -> _Cells:
        by_name = {knob.name: knob for knob in knobs}
        conditions = [knob.when for knob in knobs if knob.when is not None]
        read_by = {
            rule: {cell for cell in cells_of(rule.tree, by_name) if cell[0] not in fixed}
            for rule in (*rules, *conditions)
        }
        numbers = {name: number for number, name in enumerate(_names(knobs))}
        return cls(by_name, fixed, read_by, set().union(*read_by.values()), numbers)


def _names(knobs: Iterable[Knob]) -> list[CellName]:
    return [(knob.name, place) for knob in knobs for place in range(len(knob.cells))]


# -- groups -----------------------------------------------------------------------------------------


def _ties(cells: _Cells, rules: Sequence[Rule]) -> Iterator[set[CellName]]:
    """Sets of cells that belong together: by a rule or condition, as they must all differ, or since no rule
    reads any of them."""
    yield from (cells.read_by[rule] for rule in rules)
    for knob in cells.knobs.values():
        own = set(_names([knob]))
        yield own - cells.read
        if knob.distinct:
            yield own
        if knob.when is not None:
            yield own | cells.read_by[knob.when]


def _groups(names: Sequence[CellName], ties: Iterable[set[CellName]]) -> list[set[CellName]]:
    """All cells in the smallest groups such that each tie lies within one group."""
    group_of = {cell: {cell} for cell in names}
    for tie in ties:
        merged = set().union(*(group_of[cell] for cell in tie))
        for cell in merged:
            group_of[cell] = merged
    return list({id(group): group for group in group_of.values()}.values())


# -- the factor of a group --------------------------------------------------------------------------


def _tightest(cells: _Cells, group: set[CellName], rules: Sequence[Rule], limit: int) -> Factor:
    """The factor of a group, with long cells split into digits if it cannot be counted without that."""
    factor = _factor(cells, group, rules, DIGITS_FROM, limit)
    lengths = [len(cells.knobs[name].cells[place].values) for name, place in group & cells.read]
    if factor.size is not None or not any(DIGITS_MAY_FROM < length <= DIGITS_FROM for length in lengths):
        return factor
    try:
        finer = _factor(cells, group, rules, DIGITS_MAY_FROM, limit, within=WITHIN)
    except TooWide:
        return factor
    return min(factor, finer, key=lambda one: (one.size is None, one.bounds[1]))


def _factor(
    cells: _Cells,
    group: set[CellName],
    rules: Sequence[Rule],
    most: int,
    limit: int,
    within: float = math.inf,
) -> Factor:
    """The factor of a group: its cells become parts, what ties these becomes terms, and these a diagram.

    ``most``: a cell with more values is split into digits.
    """
    of_knob = _divided(cells, group, most)
    parts = [part for own in of_knob.values() for part in own]
    if not rules and len(parts) == 1 and not parts[0].optional and len(parts[0].variables) == 1:
        return FreeFactor(parts[0])
    stated = _Statements(cells, of_knob)
    tying = stated.of_rules(rules) + [term for knob in of_knob for term in stated.of_knob(cells.knobs[knob])]
    tying = [term for term in dict.fromkeys(tying) if not certainly_true(term.span)]
    if any(certainly_false(term.span) for term in tying):
        numbers = tuple(number for part in parts for number in part.cells)
        return RowsFactor(numbers, np.empty((0, len(numbers)), np.int64))
    weights = tuple(weight for part in parts for weight in part.weights)
    levels = tuple(level for part in parts for level in part.levels)
    puzzle = Puzzle(stated.terms, weights, stated.variables(len(weights)), tuple(tying), levels)
    return RuledFactor(parts, puzzle, build(puzzle, limit, within=within))


def _divided(cells: _Cells, group: set[CellName], most: int) -> dict[str, list[Part]]:
    """The parts of each knob in a group: one for each cell that is read, and one for all its other cells.

    Their variables are numbered in this order.
    """
    divided: dict[str, list[Part]] = {}
    variables = 0
    for knob in cells.knobs.values():
        mine = [cell for cell in _names([knob]) if cell in group]
        read = [cell for cell in mine if cell in cells.read]
        for cell in read:
            part = _part_of(cells, knob, cell, variables, most)
            divided.setdefault(knob.name, []).append(part)
            variables += len(part.variables)
        if len(mine) > len(read):
            rest = [cell for cell in mine if cell not in cells.read]
            divided.setdefault(knob.name, []).append(_part_of_rest(cells, knob, read, rest, variables))
            variables += 1
    return divided


def _part_of(cells: _Cells, knob: Knob, cell: CellName, variable: int, most: int) -> CellPart | DigitsPart:
    """The part of a cell that is read, with variables from ``variable`` on."""
    number, values, optional = cells.numbers[cell], knob.cells[cell[1]].values, knob.when is not None
    if knob.distinct:
        return PositionPart((number,), (variable,), optional, values)
    return split(number, variable, values, optional, most)


def _part_of_rest(
    cells: _Cells, knob: Knob, read: Sequence[CellName], rest: Sequence[CellName], variable: int
) -> Part:
    """The part of those cells of a knob that nothing reads, with the single ``variable``."""
    numbers, optional = tuple(cells.numbers[cell] for cell in rest), knob.when is not None
    values = [knob.cells[place].values for _, place in rest]
    if len(rest) == 1 and not optional and not knob.distinct:
        return CellPart(numbers, (variable,), optional, values[0])
    sizes = tuple(map(len, values))
    if knob.distinct:
        fixed = tuple(cells.numbers[cell] for cell in read)
        return OrderPart(numbers, (variable,), optional, sizes, fixed)
    return RestPart(numbers, (variable,), optional, sizes)


class _Statements:
    """What ties the parts of a group, stated as terms."""

    def __init__(self, cells: _Cells, parts: Mapping[str, Sequence[Part]]) -> None:
        self.terms = Terms()
        self._cells = cells
        self._parts = parts
        self._lowering = Lowering(cells.knobs, self._cell, self.terms)
        self._part_of = {part.cells[0]: part for own in parts.values() for part in own}

    def of_rules(self, rules: Iterable[Rule]) -> list[Term]:
        return [term for rule in rules for term in self._lowering.rule(rule)]

    def of_knob(self, knob: Knob) -> list[Term]:
        """Terms that say: its digits name a value, its items all differ, and it exists if it should."""
        terms, parts, found = self.terms, self._parts[knob.name], []
        for part in parts:
            if isinstance(part, DigitsPart):
                found += part.limits(terms)
        bits = [part.bit(terms) for part in parts if isinstance(part, PositionPart)]
        if len(bits) > 1:
            clash = terms.make("!=", (terms.make("distinct", bits), terms.literal(-1)))
            found.append(terms.make("holds", (clash,)))
        if knob.when is None:
            return found
        present = [term for part in parts for term in self._presence(part)]
        whens = self._lowering.rule(knob.when)
        active = whens[0] if len(whens) == 1 else terms.make("and", whens)
        return found + [terms.make("==", (active, here)) for here in present]

    def variables(self, count: int) -> tuple[Term | None, ...]:
        """The term of each variable; ``None`` for those that no term mentions."""
        columns = self.terms.columns
        return tuple(self.terms.variable(v, columns[v]) if v in columns else None for v in range(count))

    def _cell(self, name: str, place: int) -> Term:
        if name in self._cells.fixed:
            return self.terms.literal(self._cells.fixed[name])
        part = self._part_of[self._cells.numbers[name, place]]
        assert isinstance(part, (CellPart, DigitsPart))
        return part.term(self.terms)

    def _presence(self, part: Part) -> list[Term]:
        """For each variable of an optional part, whether it is present."""
        assert isinstance(part, (CellPart, DigitsPart, RestPart))
        part.term(self.terms)  # makes its variables known
        terms = self.terms
        return [terms.make("present", (terms.variable(v, terms.columns[v]),)) for v in part.variables]
