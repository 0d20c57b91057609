"""Configurations as numbers for a surrogate, whole matrices at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Self

import numpy as np

from autotune.search.models.arrays import Floats, Integers
from autotune.search.models.gaussian_process import Columns, Inputs
from autotune.search.models.roundness import round_ranges
from autotune.space.configuration import Value
from autotune.space.knobs import FloatRange, IntegerRange
from autotune.space.knobs.knob import Knob
from autotune.space.knobs.values import key
from autotune.space.space import Space

GONE = -1
"""The cell index of a knob that does not exist, as in :meth:`FeasibleSet.matrix`."""
IRREGULAR = 0.4
"""By so many standard deviations a configuration is expected to be worse for each number that is no power of
two but might be one. Addresses, vectors, warps, cache lines and most workloads are made of powers of two, so
that other numbers leave remainders; an expert tries powers of two first. Measurements soon overrule this."""
LONG = 32
"""A range of more values counts as continuous. (In a list, somebody has written down each of them.)"""
PAIRED = 16
"""Of up to so many items in an order each pair has a feature: of more there would be too many."""
SMALL_TABLE = 4096
"""The positions of a knob with up to this many values are looked up rather than computed."""


class Features:
    """What a knob looks like to a Gaussian process.

    ============== ==================================================== =======================
    knob           smooth features                                      codes
    ============== ==================================================== =======================
    ordered list   its position: half its rank, half its value's place  its index
    of integers    beside its position: whether it is a power of two
    range          its position on its scale                            its index
    continuous     its position on its scale                            none
    choice, flag   one-hot, scaled so that two choices are 1 apart      its index
    assignment     as a choice for each item                            an index an item
    permutation    the place of each item, all under one weight;        an item per place
                   for each pair which comes first, under another
    ============== ==================================================== =======================

    Orders that agree on which of two items comes first, for most pairs, are alike (Deshwal, Belakaria, Doppa
    and Kim, Bayesian optimization over permutation spaces, AAAI 2022): what matters of a loop nest is
    which loop is inside which.

    A knob that does not exist has its default's smooth features, and a code of its own.

    A range of more than :data:`LONG` values is as good as continuous. Its index is not compared: any two
    configurations differ in it, which would say that nothing is alike.

    Powers of two have a feature since so much of a machine and of its workloads comes in them: 64 divides
    what 48 and 80 do not, and behaves like 32 and 128 rather than like its neighbours. Where that does not
    matter the weight of the feature is learned to be small. In a range the feature is how round a number is
    (:mod:`~autotune.search.models.roundness`), on which a target may depend linearly.
    """

    def __init__(self, space: Space) -> None:
        self.space = space
        self.discrete = tuple(knob for knob in space.knobs if knob.cells)
        self.floating = tuple(k for k in space.knobs if isinstance(k, FloatRange) and not k.cells)
        self._split: list[dict[Hashable, tuple[int, ...]]] = [{} for _ in self.discrete]
        """For each knob the cells of the values seen so far: it is fastest to look them up."""
        ends = np.cumsum([len(knob.cells) for knob in self.discrete], dtype=int).tolist()
        self.placed = tuple(
            (knob, slice(end - len(knob.cells), end)) for knob, end in zip(self.discrete, ends, strict=True)
        )
        """Each discrete knob, and in which columns of a row it has its cell indices."""
        self.deciding = {name for knob in space.knobs if knob.when for name in knob.when.knobs}
        """The knobs on which the existence of others depends."""
        self._tables = [_table(knob) for knob in self.discrete]
        self.cell_sizes: Integers = np.array(
            [len(c.values) for k in self.discrete for c in k.cells], dtype=int
        )
        """How many values each code has."""
        self._regular = {
            columns.start: np.append(_is_power_of_two(knob, np.arange(len(knob.cells[0].values))), 1.0)
            for knob, columns in self.placed
            if _has_powers_of_two(knob)
        }
        """By column, for each value: 1 if it is a power of two. The last entry is for a knob that does not
        exist, which counts as one."""
        self._round = round_ranges(self.placed)
        self.columns = self._described()
        self._prior: Callable[[Inputs], Floats] | None = None

    def _described(self) -> Columns:
        """What a process has to know about the columns of its inputs."""
        knobs = (*self.discrete, *self.floating)
        sizes = [_sizes(knob) for knob in knobs]
        ranges = [
            is_long_range(knob) and place == 0
            for knob, own in zip(knobs, sizes, strict=True)
            for place in range(len(own))
        ]
        return Columns(
            np.repeat(np.arange(len(ranges)), np.array([n for own in sizes for n in own], dtype=int)),
            self.cell_sizes,
            np.array(ranges, dtype=bool),
            np.array([not is_long_range(k) for k in self.discrete for _ in k.cells], dtype=bool),
            self.knobs_at_once,
            len(self._round),
        )

    @property
    def knobs_at_once(self) -> int:
        """How many knobs with more than one value exist in the default; with conditions a space has more."""
        active = self.space.active({knob.name: knob.default for knob in self.space.knobs})
        return sum(self.space.knob(name).cardinality != 1 for name in active)

    def informed(self, prior: Callable[[Inputs], Floats]) -> Self:
        """The same features, with ``prior`` for what is expected before any trial."""
        informed = copy(self)
        informed._prior = prior
        return informed

    @property
    def enumerable(self) -> bool:
        """Whether a row of the feasible set's matrix is a whole configuration."""
        return len(self.space.feasible.knobs) == len(self.space.knobs)

    def of(self, configurations: Sequence[Mapping[str, Value]]) -> Inputs:
        """The inputs of any configurations of the space."""
        return self.of_cells(*self.arrays(configurations))

    def arrays(self, configurations: Sequence[Mapping[str, Value]]) -> tuple[Integers, Floats]:
        """Cell indices (n, cells), and positions of the continuous knobs (n, :attr:`floating`)."""
        cells = np.array([self.row(c) for c in configurations], dtype=np.int64)
        floats = np.empty((len(configurations), len(self.floating)))
        for column, knob in enumerate(self.floating):
            floats[:, column] = knob.positions([c.get(knob.name, knob.default) for c in configurations])
        return cells.reshape(len(configurations), len(self.cell_sizes)), floats

    def row(self, configuration: Mapping[str, Value]) -> list[int]:
        """The cell indices of a configuration, as a row of the feasible set's matrix."""
        found: list[int] = []
        for knob, known in zip(self.discrete, self._split, strict=True):
            value = configuration.get(knob.name)
            if value is None:  # which is never the value of a knob
                found += [GONE] * len(knob.cells)
                continue
            cells = known.get(key(value))
            if cells is None:
                cells = known[key(value)] = knob.split(value)
            found += cells
        return found

    def of_cells(self, cells: Integers, floats: Floats | None = None) -> Inputs:
        """The inputs of rows of cell indices (n, cells), and positions of the continuous knobs."""
        parts = [
            table[cells[:, columns.start]]
            if table is not None
            else _smooth(knob, _there(knob, cells[:, columns]))
            for (knob, columns), table in zip(self.placed, self._tables, strict=True)
        ]
        if floats is not None:
            parts.append(floats)
        smooth = np.hstack(parts) if parts else np.zeros((len(cells), 0))
        linear = np.zeros((len(cells), len(self._round)))
        for term, knob_range in enumerate(self._round):
            linear[:, term] = knob_range.roundness(cells)
        inputs = Inputs(smooth, cells, linear, IRREGULAR * self.irregular(cells))
        return inputs if self._prior is None else replace(inputs, expected=self._prior(inputs))

    def irregular(self, cells: Integers) -> Floats:
        """In how many lists that also have powers of two each row has another number; shape (n,)."""
        counts = np.zeros(len(cells))
        for column, regular in self._regular.items():
            counts += 1.0 - regular[cells[:, column]]
        return counts


def is_long_range(knob: Knob) -> bool:
    """Whether it is continuous, or a range of so many values that it is as good as that."""
    if not isinstance(knob, (FloatRange, IntegerRange)):
        return False
    return not knob.cells or len(knob.cells[0].values) > LONG


def only_ranges(space: Space) -> bool:
    """Whether every knob that has more than one value is a long range: the goal is mostly smooth then."""
    varying = [knob for knob in space.knobs if knob.cardinality != 1]
    return bool(varying) and all(map(is_long_range, varying))


def _sizes(knob: Knob) -> list[int]:
    """How many smooth features there are under each of the knob's weights."""
    if not knob.cells:
        return [1]
    if knob.distinct:
        items = len(knob.cells)
        return [items, items * (items - 1) // 2] if 1 < items <= PAIRED else [items]
    if _has_powers_of_two(knob):
        return [1, 1]
    return [1 if knob.ordered or len(cell.values) == 2 else len(cell.values) for cell in knob.cells]


def _there(knob: Knob, cells: Integers) -> Integers:
    """The cells, with the default for a knob that does not exist."""
    gone = cells[:, 0] == GONE
    return np.where(gone[:, None], np.array(knob.split(knob.default)), cells) if gone.any() else cells


def _table(knob: Knob) -> Floats | None:
    """The smooth features of each value of a one-cell knob; at the end (index -1) those of no value."""
    if len(knob.cells) != 1 or len(knob.cells[0].values) > SMALL_TABLE:
        return None
    last = knob.split(knob.default)[0]
    return _smooth(knob, np.append(np.arange(len(knob.cells[0].values)), last)[:, None])


def _smooth(knob: Knob, cells: Integers) -> Floats:
    """The smooth features (n, ...) of one knob."""
    if knob.distinct:
        return _order(np.argsort(cells, axis=1))
    if knob.ordered:
        position = _position(knob, cells[:, 0])
        if _has_powers_of_two(knob):
            return np.column_stack([position, _is_power_of_two(knob, cells[:, 0])])
        return position[:, None]
    parts = [_one_hot(cells[:, column], len(cell.values)) for column, cell in enumerate(knob.cells)]
    return np.hstack(parts)


def _order(places: Integers) -> Floats:
    """The smooth features of orders, from the place of each item (n, items)."""
    items = places.shape[1]
    scaled = places / max(items - 1, 1)
    if not 1 < items <= PAIRED:
        return np.asarray(scaled)
    one, other = np.triu_indices(items, 1)
    first = places[:, one] < places[:, other]
    # Two orders that have nothing in common are 1 apart, as two choices are.
    return np.hstack([scaled, first / math.sqrt(len(one) / 2)])


def _one_hot(cells: Integers, count: int) -> Floats:
    if count == 2:
        return cells[:, None].astype(float)
    return np.asarray((cells[:, None] == np.arange(count)) / math.sqrt(2.0))


def _position(knob: Knob, cells: Integers) -> Floats:
    """Where an ordered knob's values stand, from 0 to 1."""
    last = max(len(knob.cells[0].values) - 1, 1)
    if isinstance(knob, IntegerRange) and knob.scale != "log":
        return np.asarray(cells / last)
    if isinstance(knob, (IntegerRange, FloatRange)):
        if last < SMALL_TABLE:
            return np.array([knob.position(value) for value in knob.cells[0].values])[cells]
        return np.array([knob.position(knob.join([int(cell)])) for cell in cells])
    rank = np.arange(last + 1) / last
    return (0.5 * rank + 0.5 * _places(knob.cells[0].values, rank))[cells]


def _has_powers_of_two(knob: Knob) -> bool:
    """Whether a list has integers of which some, but not all, are powers of two."""
    if not knob.ordered or len(knob.cells) != 1 or isinstance(knob, IntegerRange):
        return False
    values = knob.cells[0].values[:SMALL_TABLE]
    whole = [
        value for value in values if isinstance(value, int) and not isinstance(value, bool) and value > 0
    ]
    powers = sum(value & (value - 1) == 0 for value in whole)
    return len(whole) == len(values) and 0 < powers < len(values)


def _is_power_of_two(knob: Knob, cells: Integers) -> Floats:
    """1 where the value is a power of two, else 0; shape (n,)."""
    values = (knob.cells[0].values[cell] for cell in cells.tolist())
    return np.array([value & (value - 1) == 0 for value in values], dtype=float)  # of any length


def _places(values: Sequence[Value], rank: Floats) -> Floats:
    """Where the values of an ordered list stand as numbers, from 0 to 1: on a log scale if all are positive.

    Their ranks, if they are no numbers, or too near to each other or too far apart for floats.
    """
    numbers = [float(value) for value in values if isinstance(value, (int, float))]
    if len(numbers) < len(values):
        return rank
    scaled = np.log(numbers) if min(numbers) > 0.0 else np.array(numbers)
    width = float(scaled.max()) - float(scaled.min())
    return np.asarray((scaled - scaled.min()) / width) if 0.0 < width < math.inf else rank
