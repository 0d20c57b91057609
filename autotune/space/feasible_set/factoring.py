"""Splits the cells of a space into independent factors, and builds each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

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
"""How many times as wide as it is to be a relaxed diagram with more digits may be. Of twenty knobs of a
thousand values that tie each other in a chain, one would grow from layer to layer for an hour."""

CellName = tuple[str, int]
"""A knob's name and the position of the cell in it."""


def factorise(knobs: Sequence[Knob], rules: Sequence[Rule], limit: int) -> list[Factor]:
    """The factors of the set that these discrete knobs, their conditions and these rules describe.

    ``rules`` and conditions speak of these knobs only.
    """
    by_name = {knob.name: knob for knob in knobs}
    conditions = [knob.when for knob in knobs if knob.when is not None]
    single = [k for k in knobs if k.when is None and [len(c.values) for c in k.cells] == [1]]
    fixed = {knob.name: knob.cells[0].values[0] for knob in single}
    read_by = {
        rule: {cell for cell in cells_of(rule.tree, by_name) if cell[0] not in fixed}
        for rule in (*rules, *conditions)
    }
    whole = {knob.name: knob.join([0]) for knob in single}  # ('i',), where the cell's value is 'i'
    if not all(rule.holds(whole) for rule in rules if not read_by[rule]):
        return [RowsFactor((), np.empty((0, 0), np.int64))]
    ruled = [rule for rule in rules if read_by[rule]]
    read = set().union(*read_by.values())
    cells = _Cells(by_name, fixed, read, {name: number for number, name in enumerate(_cells(knobs))})
    factors = []
    for group in _groups(knobs, [read_by[rule] for rule in ruled], read_by, read):
        mine = [rule for rule in ruled if read_by[rule] <= group]
        factors.append(_tightest(cells, group, mine, limit))
    return sorted(factors, key=lambda factor: min(factor.cells))


@dataclass(frozen=True)
class _Cells:
    """What all groups share. ``fixed``: the cell's value for knobs that have only one, hence no variable."""

    knobs: Mapping[str, Knob]
    fixed: Mapping[str, Value]
    read: set[CellName]
    """The cells that some rule mentions."""
    numbers: Mapping[CellName, int]


def _tightest(cells: _Cells, group: set[CellName], rules: Sequence[Rule], limit: int) -> Factor:
    """The factor of a group, with digits for long cells where it cannot be counted without."""
    factor = _Maker(cells, group, DIGITS_FROM).factor(rules, limit)
    lengths = [len(cells.knobs[name].cells[place].values) for name, place in group & cells.read]
    if factor.size is not None or not any(DIGITS_MAY_FROM < length <= DIGITS_FROM for length in lengths):
        return factor
    try:
        finer = _Maker(cells, group, DIGITS_MAY_FROM).factor(rules, limit, within=WITHIN)
    except TooWide:
        return factor
    return min(factor, finer, key=lambda one: (one.size is None, one.bounds[1]))


def _cells(knobs: Iterable[Knob]) -> list[CellName]:
    return [(knob.name, place) for knob in knobs for place in range(len(knob.cells))]


def _groups(
    knobs: Sequence[Knob],
    tied: list[set[CellName]],
    read_by: Mapping[Rule, set[CellName]],
    read: set[CellName],
) -> list[set[CellName]]:
    """The cells in groups, so that each set in ``tied``, condition and 'all different' is within one."""
    for knob in knobs:
        own = set(_cells([knob]))
        tied.append(own - read)
        if knob.distinct:
            tied.append(own)
        if knob.when is not None:
            tied.append(own | read_by[knob.when])
    group_of = {cell: {cell} for cell in _cells(knobs)}
    for cells in tied:
        merged = set().union(*(group_of[cell] for cell in cells))
        for cell in merged:
            group_of[cell] = merged
    return list({id(group): group for group in group_of.values()}.values())


@dataclass
class _Maker:
    """Makes the factor of one group of cells."""

    cells: _Cells
    group: set[CellName]
    most: int
    """Values of a cell beyond which it is split into digits."""
    terms: Terms = field(default_factory=Terms)
    parts: dict[str, list[Part]] = field(default_factory=dict)
    of_cell: dict[CellName, Part] = field(default_factory=dict)
    variables: int = 0

    def factor(self, rules: Sequence[Rule], limit: int, within: float = math.inf) -> Factor:
        mine = [
            knob for name, knob in self.cells.knobs.items() if any(name == cell[0] for cell in self.group)
        ]
        for knob in mine:
            self.parts[knob.name] = self._divide(knob)
        parts = [part for parts in self.parts.values() for part in parts]
        if not rules and len(parts) == 1 and not parts[0].optional and len(parts[0].variables) == 1:
            return FreeFactor(parts[0])
        lowered = [term for rule in rules for term in self._lowering.rule(rule)]
        for knob in mine:
            lowered += self._own_rules(knob)
        weights = tuple(weight for part in parts for weight in part.weights)
        values = tuple(
            self.terms.variable(v, self.terms.columns[v]) if v in self.terms.columns else None
            for v in range(self.variables)
        )
        lowered = [term for term in dict.fromkeys(lowered) if not certainly_true(term.span)]
        if any(certainly_false(term.span) for term in lowered):
            return RowsFactor(self._all_cells(parts), np.empty((0, len(self.group)), np.int64))
        levels = tuple(level for part in parts for level in part.levels)
        puzzle = Puzzle(self.terms, weights, values, tuple(lowered), levels)
        return RuledFactor(parts, puzzle, build(puzzle, limit, within=within))

    def _all_cells(self, parts: Iterable[Part]) -> tuple[int, ...]:
        return tuple(cell for part in parts for cell in part.cells)

    def _divide(self, knob: Knob) -> list[Part]:
        """The parts of a knob's cells in this group."""
        mine = [cell for cell in _cells([knob]) if cell in self.group]
        asked = [cell for cell in mine if cell in self.cells.read]
        rest = [cell for cell in mine if cell not in self.cells.read]
        optional = knob.when is not None
        parts: list[Part] = []
        for cell in asked:
            values = knob.cells[cell[1]].values
            part: Part = split(self.cells.numbers[cell], self.variables, values, optional, self.most)
            if knob.distinct:
                part = PositionPart(part.cells, part.variables[:1], optional, values)
            self._add(parts, part, [cell])
        if rest:
            cells = tuple(self.cells.numbers[cell] for cell in rest)
            sizes = tuple(len(knob.cells[place].values) for _, place in rest)
            variable = (self.variables,)
            if knob.distinct:
                fixed = tuple(self.cells.numbers[cell] for cell in asked)
                part = OrderPart(cells, variable, optional, sizes, fixed)
            elif len(rest) == 1 and not optional:
                part = CellPart(cells, variable, optional, knob.cells[rest[0][1]].values)
            else:
                part = RestPart(cells, variable, optional, sizes)
            self._add(parts, part, rest)
        return parts

    def _add(self, parts: list[Part], part: Part, cells: Iterable[CellName]) -> None:
        parts.append(part)
        self.variables += len(part.variables)
        self.of_cell.update(dict.fromkeys(cells, part))

    @cached_property
    def _lowering(self) -> Lowering:
        return Lowering(self.cells.knobs, self._term, self.terms)

    def _term(self, name: str, place: int) -> Term:
        if name in self.cells.fixed:
            return self.terms.literal(self.cells.fixed[name])
        part = self.of_cell[name, place]
        assert isinstance(part, (CellPart, DigitsPart))
        return part.term(self.terms)

    def _own_rules(self, knob: Knob) -> list[Term]:
        """That the knob exists when it should, that its digits name a value, that its items differ."""
        terms, parts, found = self.terms, self.parts[knob.name], []
        for part in parts:
            if isinstance(part, DigitsPart):
                found += part.limits(terms)
        if knob.distinct:
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

    def _presence(self, part: Part) -> list[Term]:
        """For each variable of an optional part, whether it is present."""
        assert isinstance(part, (CellPart, DigitsPart, RestPart))
        part.term(self.terms)  # makes its variables known
        terms = self.terms
        return [terms.make("present", (terms.variable(v, terms.columns[v]),)) for v in part.variables]
