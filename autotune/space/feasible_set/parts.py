"""How the cells of a knob become variables of a decision diagram, and back.

Most cells are one variable each. A cell that a rule reads and that has very many values is several
variables: the digits of its index. Cells that no rule reads are one variable together, with a single class
that stands for all their combinations; and so is the rest of a permutation, once the positions that rules
read are set. If a knob need not exist there is one more class, the last one: absent.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.space.configuration import Value
from autotune.space.feasible_set.bounds import Table
from autotune.space.feasible_set.columns import ABSENT, SAFE_INT, Array, Column, column
from autotune.space.feasible_set.diagram import Rows
from autotune.space.feasible_set.terms import Term, Terms

GONE = -1
"""The index of a cell whose knob does not exist."""

DIGITS_FROM = 4096
"""A cell with more values that rules read is always split into digits."""
DIGITS_MAY_FROM = 128
"""One with more values than this is split if that gives tighter bounds: in sums and products, seldom in
remainders."""
_RADIX = 32
"""About the largest radix of the digits."""


@dataclass(frozen=True)
class Part(ABC):
    """Some cells (numbered over the whole space) and the variables that stand for them.

    ``optional``: the cells' knob need not exist.
    """

    cells: tuple[int, ...]
    variables: tuple[int, ...]
    optional: bool

    @property
    @abstractmethod
    def weights(self) -> list[list[int]]:
        """For each variable, how many values each of its classes stands for."""

    @property
    def levels(self) -> Sequence[int | None]:
        """For each variable, its place among the digits; ``None`` if it is no digit."""
        return [None] * len(self.variables)

    @abstractmethod
    def decode(self, rows: Rows, members: Array, cells: Rows) -> None:
        """Write the cell indices that the classes of the variables, and the members of these, stand for."""

    @abstractmethod
    def encode(self, cells: Rows, rows: Rows, members: Array) -> None:
        """The inverse of :meth:`decode`."""


@dataclass(frozen=True)
class CellPart(Part):
    """One cell, one variable."""

    values: Sequence[Value]

    @property
    def weights(self) -> list[list[int]]:
        return [[1] * (len(self.values) + self.optional)]

    def decode(self, rows: Rows, members: Array, cells: Rows) -> None:
        index = rows[:, self.variables[0]]
        cells[:, self.cells[0]] = np.where(index < len(self.values), index, GONE)

    def encode(self, cells: Rows, rows: Rows, members: Array) -> None:
        index = cells[:, self.cells[0]]
        rows[:, self.variables[0]] = np.where(index == GONE, len(self.values), index)

    def term(self, terms: Terms) -> Term:
        """The term of the cell's value."""
        return terms.variable(self.variables[0], with_absent(column(self.values), self.optional))


@dataclass(frozen=True)
class PositionPart(CellPart):
    """A position of a permutation: rules ask which item is there, other positions whether one is taken."""

    def _index(self, terms: Terms) -> Term:
        numbers = Column(np.arange(len(self.values), dtype=np.int64))
        return terms.variable(self.variables[0], with_absent(numbers, self.optional))

    def term(self, terms: Terms) -> Term:
        return terms.make("lookup", (self._index(terms),), Table(column(self.values).data, False))

    def bit(self, terms: Terms) -> Term:
        """The set of the item alone, as a bit."""
        bits = column([1 << place for place in range(len(self.values))]).data
        return terms.make("lookup", (self._index(terms),), Table(bits, True))


@dataclass(frozen=True)
class DigitsPart(Part):
    """One cell with many values as the digits of its index, the most significant first."""

    values: Sequence[Value]
    radix: int

    @property
    def weights(self) -> list[list[int]]:
        top = -(-len(self.values) // self.radix ** (len(self.variables) - 1))
        return [
            [1] * ((self.radix if place else top) + self.optional) for place in range(len(self.variables))
        ]

    @property
    def levels(self) -> Sequence[int | None]:
        return range(len(self.variables))

    def decode(self, rows: Rows, members: Array, cells: Rows) -> None:
        index = np.zeros(len(rows), dtype=np.int64)
        for variable in self.variables:
            index = index * self.radix + rows[:, variable]
        gone = rows[:, self.variables[-1]] >= self.radix
        cells[:, self.cells[0]] = np.where(gone, GONE, index)

    def encode(self, cells: Rows, rows: Rows, members: Array) -> None:
        index = cells[:, self.cells[0]]
        for variable, weight in zip(self.variables[::-1], self.weights[::-1], strict=True):
            rows[:, variable] = np.where(index == GONE, len(weight) - 1, index % self.radix)
            index = np.where(index == GONE, GONE, index // self.radix)

    def index(self, terms: Terms) -> Term:
        """The index of the value among :attr:`values`. The digits can also make an index past the last."""
        digits = []
        for place, weight in enumerate(self.weights):
            numbers = Column(np.arange(len(weight) - self.optional, dtype=np.int64))
            digit = terms.variable(self.variables[place], with_absent(numbers, self.optional))
            scale = terms.literal(self.radix ** (len(self.variables) - 1 - place))
            digits.append(terms.make("*", (scale, digit)))
        return terms.make("+", digits)

    def term(self, terms: Terms) -> Term:
        index = self.index(terms)
        if isinstance(self.values, range):
            scaled = terms.make("*", (terms.literal(self.values.step), index))
            return terms.make("+", (terms.literal(self.values.start), scaled))
        values = column(self.values).data
        ascending = values.dtype != object and bool((np.diff(values) >= 0).all())
        return terms.make("lookup", (index,), Table(values, ascending))

    def limits(self, terms: Terms) -> list[Term]:
        """The rule that the digits are the index of one of the values."""
        last = terms.literal(len(self.values) - 1)
        return [terms.make("holds", (terms.make("<=", (self.index(terms), last)),))]


@dataclass(frozen=True)
class RestPart(Part):
    """Cells that no rule reads, all in one variable of one class."""

    sizes: tuple[int, ...]

    @property
    def combinations(self) -> int:
        return math.prod(self.sizes)

    @property
    def weights(self) -> list[list[int]]:
        return [[self.combinations] + [1] * self.optional]

    def decode(self, rows: Rows, members: Array, cells: Rows) -> None:
        cells[:, list(self.cells)] = digits(members[:, self.variables[0]], self.sizes)
        self._erase(rows, cells)

    def encode(self, cells: Rows, rows: Rows, members: Array) -> None:
        gone = self._write_class(cells, rows)
        member = members[:, self.variables[0]] * 0
        for cell, size in zip(self.cells, self.sizes, strict=True):
            member = member * size + cells[:, cell]
        members[:, self.variables[0]] = np.where(gone, 0, member)

    def term(self, terms: Terms) -> Term:
        """A term that only says whether the cells exist."""
        zero = Column(np.zeros(1, dtype=np.int64))
        return terms.variable(self.variables[0], with_absent(zero, self.optional))

    def _erase(self, rows: Rows, cells: Rows) -> None:
        gone = np.flatnonzero(rows[:, self.variables[0]] == 1)
        cells[np.ix_(gone, np.array(self.cells))] = GONE

    def _write_class(self, cells: Rows, rows: Rows) -> Array:
        gone = cells[:, self.cells[0]] == GONE
        rows[:, self.variables[0]] = gone
        return np.asarray(gone)


@dataclass(frozen=True)
class OrderPart(RestPart):
    """The positions of a permutation that no rule reads: its other items, in any order.

    ``fixed`` are the cells of the other positions. The order is numbered by its Lehmer code.
    """

    fixed: tuple[int, ...]

    @property
    def combinations(self) -> int:
        return math.factorial(len(self.cells))

    def decode(self, rows: Rows, members: Array, cells: Rows) -> None:
        left = self._left(cells)
        # Each digit of the code counts among the items that are still left at its place. Counted among all,
        # an item is one further on for each earlier one that does not come after it.
        order = digits(members[:, self.variables[0]], range(len(self.cells), 0, -1))
        for place in range(len(self.cells) - 2, -1, -1):
            order[:, place + 1 :] += order[:, place + 1 :] >= order[:, [place]]
        cells[:, list(self.cells)] = np.take_along_axis(left, order, axis=1)
        self._erase(rows, cells)

    def encode(self, cells: Rows, rows: Rows, members: Array) -> None:
        gone = self._write_class(cells, rows)
        order = cells[:, list(self.cells)]
        code = members[:, self.variables[0]] * 0
        for place in range(len(self.cells)):
            smaller = (order[:, place + 1 :] < order[:, [place]]).sum(axis=1)
            code = code * (len(self.cells) - place) + smaller
        members[:, self.variables[0]] = np.where(gone, 0, code)

    def _left(self, cells: Rows) -> Rows:
        """For each row the items that the fixed positions do not hold, in order."""
        items = len(self.cells) + len(self.fixed)
        free = np.ones((len(cells), items), dtype=bool)
        for cell in self.fixed:  # an absent knob is erased afterwards, whatever is computed here
            held = np.where(cells[:, cell] == GONE, self.fixed.index(cell), cells[:, cell])
            free[np.arange(len(cells)), held] = False
        return np.nonzero(free)[1].reshape(len(cells), len(self.cells))


def split(
    cell: int, variable: int, values: Sequence[Value], optional: bool, most: int
) -> CellPart | DigitsPart:
    """The part for a cell that rules read; digits where it has more than ``most`` values.

    Its first variable is ``variable``.
    """
    if len(values) <= most:
        return CellPart((cell,), (variable,), optional, values)
    digits = math.ceil(math.log(len(values), _RADIX) - 1e-9)
    radix = round(len(values) ** (1 / digits))
    while radix**digits < len(values):
        radix += 1
    return DigitsPart((cell,), tuple(range(variable, variable + digits)), optional, values, radix)


def digits(numbers: Array, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Numbers in the digits of a mixed radix, the most significant first: shape (numbers, sizes).

    Numbers beyond 64 bits are first cut into smaller ones, since an operation on a single one of them takes
    as long as one on a whole column of machine integers.
    """
    found = np.empty((len(numbers), len(sizes)), dtype=np.int64)
    left, end = numbers, len(sizes)
    while end:
        start, below = end - 1, sizes[end - 1]
        while start and below * sizes[start - 1] < SAFE_INT:
            start, below = start - 1, below * sizes[start - 1]
        part, left = (left % below).astype(np.int64), left // below
        for place in range(end - 1, start - 1, -1):
            found[:, place] = part % sizes[place]
            part //= sizes[place]
        end = start
    return found


def with_absent(values: Column, optional: bool) -> Column:
    """The column of a variable's classes: its values and, where it is optional, 'absent'."""
    if not optional:
        return values
    data = np.append(values.data, values.data[:1])
    undefined = np.zeros(len(data), dtype=np.int8)
    undefined[-1] = ABSENT
    return Column(data, undefined)
