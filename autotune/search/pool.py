"""Where an acquisition function is evaluated: a sample of the space, and around the best.

A uniform sample alone misses the optimum's neighbourhood in a large space; the neighbourhoods alone would
make the search local. The sample stays for a number of asks, so that what a surrogate knows of it has only
to be updated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from autotune.search.candidates import shifted
from autotune.search.features import Features
from autotune.search.gaussian_process import Inputs, Integers
from autotune.space.configuration import Configuration
from autotune.space.space import Space

LISTED = 100_000
"""Feasible sets up to this size are held as a matrix: whole neighbourhoods are found at once."""
REACH = 2
"""Knobs in which a neighbour there may differ from an incumbent."""
DRAWN = 500
"""Random candidates at most where each has to be made by itself."""
KEPT = 16
"""Configurations whose neighbours are kept, where they have to be made: the incumbents, and some before."""


class Pool(ABC):
    """Candidates in columns that a surrogate watches, and some that are made for one ask only.

    They may hold configurations that were tried already.
    """

    @abstractmethod
    def near(self, incumbents: Sequence[Configuration], rng: np.random.Generator) -> Integers:
        """The columns to choose from: the sample and what is near an incumbent, new columns last.

        Where neighbours have to be made, they are in :attr:`fresh` until the next call.
        """

    @abstractmethod
    def inputs(self, first: int) -> Inputs:
        """The inputs of the columns from ``first`` on."""

    @abstractmethod
    def __len__(self) -> int:
        """How many columns there are."""

    @abstractmethod
    def __getitem__(self, column: int) -> Configuration: ...

    @property
    def fresh(self) -> Sequence[Configuration]:
        return ()

    @property
    def fresh_inputs(self) -> Inputs:
        """Those of :attr:`fresh`."""
        return self.inputs(len(self))


class Neighbourhoods:
    """Of configurations in a feasible set that is held as a ``matrix``: found once, kept."""

    def __init__(self, features: Features, matrix: Integers) -> None:
        self.matrix = matrix
        self._features = features
        self._found: dict[str, Integers] = {}

    def of(self, centre: Configuration) -> Integers:
        """The rows that differ from ``centre`` in at most :data:`REACH` knobs."""
        if centre.hash not in self._found:
            differing = np.count_nonzero(self.matrix != self._features.row(centre), axis=1)
            self._found[centre.hash] = np.flatnonzero(differing <= REACH)
        return self._found[centre.hash]


class Listed(Pool):
    """Over a feasible set that is held as a matrix of cell indices."""

    def __init__(
        self, features: Features, around: Neighbourhoods, rng: np.random.Generator, count: int
    ) -> None:
        self._features = features
        self._around = around
        self._matrix = matrix = around.matrix
        self._column_of = np.full(len(matrix), -1)
        self._numbers = np.zeros(0, dtype=int)
        self._sample = self._columns(np.unique(rng.integers(len(matrix), size=min(count, 2 * len(matrix)))))

    def near(self, incumbents: Sequence[Configuration], rng: np.random.Generator) -> Integers:
        near = [self._columns(self._around.of(incumbent)) for incumbent in incumbents]
        wanted = np.zeros(len(self), dtype=bool)
        for columns in (self._sample, *near):
            wanted[columns] = True
        return np.flatnonzero(wanted)

    def inputs(self, first: int) -> Inputs:
        return self._features.of_cells(self._matrix[self._numbers[first:]])

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, column: int) -> Configuration:
        space = self._features.space
        return space.configuration(space.feasible[int(self._numbers[column])])

    def _columns(self, numbers: Integers) -> Integers:
        """The columns of these rows of the matrix; they get one where they have none."""
        new = numbers[self._column_of[numbers] < 0]
        self._column_of[new] = np.arange(len(new)) + len(self._numbers)
        self._numbers = np.concatenate([self._numbers, new])
        return self._column_of[numbers]


class Neighbours:
    """Of configurations in a space that cannot be listed, by hash: found once, kept for the latest."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self._found: dict[str, dict[str, Configuration]] = {}

    def of(self, centre: Configuration) -> Mapping[str, Configuration]:
        """All that differ from ``centre`` by one step in one knob."""
        found = self._found.pop(centre.hash, None)
        if found is None:
            found = {c.hash: c for c in self._space.neighbours(centre)}
        self._found[centre.hash] = found
        if len(self._found) > KEPT:
            del self._found[next(iter(self._found))]
        return found


class Drawn(Pool):
    """Over a space that cannot be listed: a sample, and neighbours that are made for each ask."""

    def __init__(
        self, features: Features, neighbours: Neighbours, rng: np.random.Generator, count: int
    ) -> None:
        self._features = features
        self._neighbours = neighbours
        self._sample = features.space.sample(rng, min(count, DRAWN))
        self._fresh: list[Configuration] = []
        self._fresh_inputs = features.of([])

    @property
    def fresh(self) -> Sequence[Configuration]:
        return self._fresh

    @property
    def fresh_inputs(self) -> Inputs:
        return self._fresh_inputs

    def near(self, incumbents: Sequence[Configuration], rng: np.random.Generator) -> Integers:
        found: dict[str, Configuration] = {}
        for incumbent in incumbents:
            found |= self._neighbours.of(incumbent)
            found |= {c.hash: c for c in shifted(self._features.space, incumbent, rng)}
        self._fresh = list(found.values())
        self._fresh_inputs = self._features.of(self._fresh)
        return np.arange(len(self._sample))

    def inputs(self, first: int) -> Inputs:
        return self._features.of(self._sample[first:])

    def __len__(self) -> int:
        return len(self._sample)

    def __getitem__(self, column: int) -> Configuration:
        return self._sample[column]


class Pools:
    """Makes a pool whenever a new sample is due."""

    def __init__(self, features: Features) -> None:
        self._features = features
        self._neighbours = Neighbours(features.space)

    def draw(self, features: Features, rng: np.random.Generator, count: int) -> Pool:
        """A new pool with a sample of about ``count``, seen through ``features`` of the same space."""
        if self._listable:
            return Listed(features, self._neighbourhoods, rng, count)
        return Drawn(features, self._neighbours, rng, count)

    @property
    def _listable(self) -> bool:
        size = self._features.space.feasible.size
        return self._features.enumerable and size is not None and 0 < size <= LISTED

    @cached_property
    def _neighbourhoods(self) -> Neighbourhoods:
        matrix = self._features.space.feasible.matrix()
        # Comparing all rows with one is what costs, and small integers cost less.
        small = matrix.size and matrix.max() < 2**15
        return Neighbourhoods(self._features, matrix.astype(np.int16) if small else matrix)
