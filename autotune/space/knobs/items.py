"""Knobs made of items: a permutation orders them, an assignment gives each of them a place."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from autotune.space.configuration import FrozenMap, Value, plain
from autotune.space.knobs.knob import Cell, Knob
from autotune.space.knobs.values import distinct, key, listing, scalars

Places = NDArray[np.int64]
"""The indices of cells, as :meth:`Knob.split` has them; or rows of them."""


class Items(Knob):
    """A knob of several cells. With many items it has too many neighbours to make them all."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """How many :meth:`neighbours` each value has."""

    @abstractmethod
    def stepped(self, places: Places, count: int, rng: np.random.Generator) -> Places:
        """``count`` of the neighbours of the value at ``places`` (cells,), with repeats.

        Shape (count, cells). Each neighbour is about as likely as any other.
        """


@dataclass(frozen=True)
class Permutation(Items):
    """The ``items`` in some order: a loop nest, a schedule. A rule may speak of ``order[0]``."""

    items: tuple[Value, ...]

    def _check(self) -> None:
        object.__setattr__(self, "items", scalars("items", self.items))

    def _first(self) -> Value:
        return self.items

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        return {key(item): place for place, item in enumerate(self.items)}

    @property
    def expected(self) -> str:
        return f"{listing(self.items)} in some order"

    @property
    def domain(self) -> dict[str, object]:
        return {"permutation": plain(self.items)}

    @property
    def cardinality(self) -> int:
        return math.factorial(len(self.items))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(Cell(f"{self.name}[{place}]", self.items) for place in range(len(self.items)))

    @property
    def distinct(self) -> bool:
        return True

    def join(self, indices: Sequence[int]) -> Value:
        return tuple(self.items[index] for index in indices)

    def split(self, value: Value) -> tuple[int, ...]:
        if not isinstance(value, tuple):
            raise self._refuse(value)
        places = tuple(self._places.get(key(item), -1) for item in value)
        if sorted(places) != list(range(len(self.items))):
            raise self._refuse(value)
        return places

    def sample(self, rng: np.random.Generator) -> Value:
        return self.join([int(place) for place in rng.permutation(len(self.items))])

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        """Every swap of two items, and every move of one item to another position."""
        places = self.split(value)
        found: dict[tuple[int, ...], None] = {}
        for i, j in combinations(range(len(places)), 2):
            between = places[i + 1 : j]
            head, tail, one, other = places[:i], places[j + 1 :], (places[i],), (places[j],)
            found[head + other + between + one + tail] = None
            found[head + between + other + one + tail] = None
            found[head + other + one + between + tail] = None
        return tuple(self.join(places) for places in found)

    @property
    def steps(self) -> int:
        count = len(self.items)
        # A swap and two moves for each pair, which are the same where the two stand side by side.
        return 3 * math.comb(count, 2) - 2 * max(count - 1, 0)

    def stepped(self, places: Places, count: int, rng: np.random.Generator) -> Places:
        if len(places) < 2:
            return np.zeros((0, len(places)), dtype=np.int64)
        here = np.arange(len(places))
        first = rng.integers(len(places), size=(count, 1))
        second = (first + rng.integers(1, len(places), size=(count, 1))) % len(places)
        swapped = np.where(here == first, second, np.where(here == second, first, here))
        # What stands between the two makes room for the first, towards where that was.
        between = (here - first) * (here - second) <= 0
        shifted = np.where(between, here + np.sign(second - first), here)
        moved = np.where(here == second, first, shifted)
        return places[np.where(rng.random((count, 1)) < 1 / 3, swapped, moved)]

    def distance(self, one: Value, other: Value) -> float:
        """The share of pairs that stand the other way round (Kendall's tau distance)."""
        ranks = np.argsort(self.split(other))[list(self.split(one))]
        crossed = int(np.triu(ranks[:, None] > ranks).sum())
        return crossed / max(math.comb(len(ranks), 2), 1)


@dataclass(frozen=True)
class Assignment(Items):
    """Each of ``items`` goes to one of ``options``: layers to devices, say.

    The value is a map. A rule may speak of ``place['embed']`` and ``count(place, 'cuda:0')``.
    """

    items: tuple[str, ...]
    options: tuple[Value, ...]

    def _check(self) -> None:
        items = distinct("items", self.items)
        for item in items:
            if not isinstance(item, str):
                raise ValueError(f"items must be texts, but one is {item!r}")
        object.__setattr__(self, "items", items)
        object.__setattr__(self, "options", scalars("options", self.options))

    def _first(self) -> Value:
        return FrozenMap(dict.fromkeys(self.items, self.options[0]))

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        return {key(option): place for place, option in enumerate(self.options)}

    @property
    def expected(self) -> str:
        return f"a map of {listing(self.items)}, each to one of {listing(self.options)}"

    @property
    def domain(self) -> dict[str, object]:
        return {"assign": list(self.items), "to": plain(self.options)}

    @property
    def cardinality(self) -> int:
        return int(len(self.options) ** len(self.items))

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(Cell(f"{self.name}[{item!r}]", self.options) for item in self.items)

    def join(self, indices: Sequence[int]) -> Value:
        return FrozenMap({item: self.options[i] for item, i in zip(self.items, indices, strict=True)})

    def split(self, value: Value) -> tuple[int, ...]:
        if not isinstance(value, FrozenMap) or set(value) != set(self.items):
            raise self._refuse(value)
        places = tuple(self._places.get(key(value[item]), -1) for item in self.items)
        if -1 in places:
            raise self._refuse(value)
        return places

    def sample(self, rng: np.random.Generator) -> Value:
        return self.join([int(i) for i in rng.integers(len(self.options), size=len(self.items))])

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        """Every move of one item to another option."""
        places = self.split(value)
        return tuple(
            self.join((*places[:item], option, *places[item + 1 :]))
            for item, place in enumerate(places)
            for option in range(len(self.options))
            if option != place
        )

    @property
    def steps(self) -> int:
        return len(self.items) * (len(self.options) - 1)

    def stepped(self, places: Places, count: int, rng: np.random.Generator) -> Places:
        rows = np.tile(places, (count if len(self.options) > 1 else 0, 1))
        line, item = np.arange(len(rows)), rng.integers(len(places), size=len(rows))
        further = rng.integers(1, max(len(self.options), 2), size=len(rows))
        rows[line, item] = (rows[line, item] + further) % len(self.options)
        return rows

    def distance(self, one: Value, other: Value) -> float:
        """The share of items that are assigned elsewhere."""
        moved = [a != b for a, b in zip(self.split(one), self.split(other), strict=True)]
        return sum(moved) / len(moved)
