"""Where an acquisition function is evaluated: on a sample of the space, and around the best.

A uniform sample alone misses the optimum's neighbourhood in a large space; the neighbourhoods alone would
make the search local. The sample is kept for a number of asks, so that a surrogate's predictions for it only
have to be updated.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from autotune.search.candidates.assemble import assemble
from autotune.search.candidates.mutants import Changes, Mutants
from autotune.search.candidates.neighbourhood import Nearby, Scales, Surroundings
from autotune.search.models.arrays import Integers
from autotune.search.models.features import Features, is_long_range
from autotune.search.models.gaussian_process import Inputs
from autotune.space.configuration import Configuration
from autotune.space.knobs import Assignment
from autotune.space.space import Space

LISTED = 100_000
"""Feasible sets up to this size are held as a matrix, in which whole neighbourhoods are found at once."""
REACH = 2
"""In how many cells a neighbour in such a matrix may differ from its centre."""
DRAWN = 500
"""In a larger space random candidates are made one by one: at most so many. They are kept ..."""
GROWN = 1.25
"""... until there are so many times as many observations."""
KEPT = 16
"""There, the surroundings of so many configurations are kept: the best, and some that were so before."""


class Fresh(Protocol):
    """Candidates as rows of numbers. Only those that are asked for are made into configurations."""

    @property
    def inputs(self) -> Inputs: ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Configuration | None:
        """``None`` where it turns out not to be feasible."""


class Pool(ABC):
    """Candidates in columns that a surrogate watches, and *fresh* ones that are made for one ask only.

    They may hold configurations that were tried already.
    """

    fresh: Fresh
    """Those that were made for this ask only."""

    @abstractmethod
    def near(self, incumbents: Sequence[Configuration], rng: np.random.Generator) -> Integers:
        """The columns to choose from: the sample and what is near an incumbent, new columns last.

        Where neighbours have to be made they get no columns, but are in :attr:`fresh` until the next call.
        """

    def beside(self, centres: Sequence[Configuration], step: float, rng: np.random.Generator) -> Integers:
        """Put what is about a ``step`` from the ``centres`` along the scales into :attr:`fresh`.

        Returns the columns to choose from, which are none. Only for a pool that :attr:`can_climb`. Where
        there are :attr:`many` knobs or items, what has no scale changes as well.
        """
        raise NotImplementedError

    @property
    def can_climb(self) -> bool:
        """Whether :meth:`beside` has ranges to move along."""
        return False

    @property
    def many(self) -> bool:
        """Whether the space cannot be listed and has so many knobs that a step in one leads nowhere."""
        return False

    @property
    def assigns(self) -> bool:
        """Whether the space cannot be listed and most of it is an assignment.

        Where each place has only room for so much, items change places together or not at all.
        """
        return False

    def inputs(self, first: int) -> Inputs:
        """The inputs of the columns from ``first`` on."""
        return self.inputs_at(np.arange(first, len(self)))

    @abstractmethod
    def inputs_at(self, columns: Integers) -> Inputs:
        """The inputs of these columns."""

    @abstractmethod
    def __len__(self) -> int:
        """How many columns there are."""

    @abstractmethod
    def __getitem__(self, column: int) -> Configuration: ...

    def candidate(self, columns: Integers, index: int) -> Configuration | None:
        """The one at ``index`` of the ``columns`` and then the fresh ones; ``None`` where not feasible."""
        return self[columns[index]] if index < len(columns) else self.fresh[index - len(columns)]


class Neighbourhoods:
    """Neighbours in a feasible set that is held as a ``matrix``: found once for each centre, and kept."""

    def __init__(self, features: Features, matrix: Integers) -> None:
        self.matrix = matrix
        self._features = features
        self._found: dict[str, Integers] = {}

    def of(self, centre: Configuration) -> Integers:
        """The rows that differ from ``centre`` in at most :data:`REACH` cells."""
        if centre.hash not in self._found:
            differing = np.count_nonzero(self.matrix != self._features.row(centre), axis=1)
            self._found[centre.hash] = np.flatnonzero(differing <= REACH)
        return self._found[centre.hash]


class Listed(Pool):
    """Over a feasible set that is held as a matrix of cell indices."""

    def __init__(
        self,
        features: Features,
        scales: Scales,
        around: Neighbourhoods,
        rng: np.random.Generator,
        count: int,
    ) -> None:
        self._features = features
        self._around = around
        self._matrix = matrix = around.matrix
        self._column_of = np.full(len(matrix), -1)
        self._numbers = np.zeros(0, dtype=int)
        self.fresh = Nearby(scales, features.of([]))
        self._sample = self._columns(np.unique(rng.integers(len(matrix), size=min(count, 2 * len(matrix)))))

    def near(self, incumbents: Sequence[Configuration], rng: np.random.Generator) -> Integers:
        near = [self._columns(self._around.of(incumbent)) for incumbent in incumbents]
        wanted = np.zeros(len(self), dtype=bool)
        for columns in (self._sample, *near):
            wanted[columns] = True
        return np.flatnonzero(wanted)

    def inputs_at(self, columns: Integers) -> Inputs:
        return self._features.of_cells(self._matrix[self._numbers[columns]])

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, column: int) -> Configuration:
        space, number = self._features.space, self._numbers[column]
        (values,) = space.feasible.configurations(self._matrix[[number]])
        return space.configuration(values)

    def _columns(self, numbers: Integers) -> Integers:
        """The columns of these rows of the matrix; rows without a column get one."""
        new = numbers[self._column_of[numbers] < 0]
        self._column_of[new] = np.arange(len(new)) + len(self._numbers)
        self._numbers = np.concatenate([self._numbers, new])
        return self._column_of[numbers]


class Drawn(Pool):
    """Over a space that cannot be listed: a sample, and what is near the best, made for each ask."""

    def __init__(
        self,
        features: Features,
        scales: Scales,
        known: dict[str, Surroundings],
        sample: Sequence[Configuration],
    ) -> None:
        """``known``: the surroundings found so far, by the hash of their centre; new ones are added to it."""
        self._features = features
        self._scales = scales
        self._known = known
        self._sample = sample
        self.fresh = Nearby(scales, features.of([]))

    def near(self, incumbents: Sequence[Configuration], rng: np.random.Generator) -> Integers:
        around = [self._around(incumbent) for incumbent in incumbents]
        self.fresh = Nearby.around(self._features, self._scales, around, rng)
        return np.arange(len(self._sample))

    def beside(self, centres: Sequence[Configuration], step: float, rng: np.random.Generator) -> Integers:
        if self.many or self.assigns:
            self.fresh = Mutants.of(self._changes, centres, step, rng)
        else:
            self.fresh = Nearby.beside(self._features, self._scales, centres, step, rng)
        return np.zeros(0, dtype=int)

    @property
    def can_climb(self) -> bool:
        return self.many or self.assigns or any(map(is_long_range, self._scales.knobs))

    @property
    def many(self) -> bool:
        return self._features.columns.many

    @cached_property
    def assigns(self) -> bool:
        knobs = self._features.space.knobs
        items = [len(knob.items) for knob in knobs if isinstance(knob, Assignment)]
        return sum(items) >= max(2, len(knobs))

    @cached_property
    def _changes(self) -> Changes:
        return Changes(self._features)

    def inputs_at(self, columns: Integers) -> Inputs:
        return self._inputs.taken(columns)

    @cached_property
    def _inputs(self) -> Inputs:
        return self._features.of(self._sample)

    def __len__(self) -> int:
        return len(self._sample)

    def __getitem__(self, column: int) -> Configuration:
        return self._sample[column]

    def _around(self, centre: Configuration) -> Surroundings:
        """Found once, and kept for the latest centres."""
        found = self._known.pop(centre.hash, None) or Surroundings.of(self._features, self._scales, centre)
        self._known[centre.hash] = found
        if len(self._known) > KEPT:
            del self._known[next(iter(self._known))]
        return found


def towards_default(space: Space, drawn: Configuration, rng: np.random.Generator) -> Configuration:
    """The default with some of its knobs set as in ``drawn``: from one of them to nearly all.

    If somebody chose a hundred settings, half of them are seldom wrong. ``drawn`` itself where constraints
    forbid the mixture.
    """
    share = len(drawn) ** -rng.random()
    changed = {name: value for name, value in drawn.items() if rng.random() < share}
    return assemble(space, changed) or drawn


class Pools:
    """Makes a pool whenever the surrogate is fitted anew."""

    def __init__(self, features: Features, seed: int, count: int) -> None:
        """With samples of about ``count``."""
        self._features = features
        self._seed = seed
        self._count = count
        self._surroundings: dict[str, Surroundings] = {}
        self._sample: tuple[int, list[Configuration]] = (-1, [])

    def draw(self, features: Features, due: int) -> Pool:
        """The pool of a surrogate fitted to ``due`` observations, which sees it through ``features``."""
        if self._listable:
            rng = np.random.default_rng((self._seed, due))
            return Listed(features, self._scales, self._neighbourhoods, rng, self._count)
        return Drawn(features, self._scales, self._surroundings, self._drawn(due))

    def _drawn(self, due: int) -> list[Configuration]:
        """The sample, made anew when there are :data:`GROWN` times as many observations: it takes longer than
        a fit."""
        age = int(math.log(due + 1) / math.log(GROWN))
        if self._sample[0] != age:
            rng = np.random.default_rng((self._seed, age))
            drawn = self._features.space.sample(rng, min(self._count, DRAWN))
            if self._features.columns.many:
                drawn = [towards_default(self._features.space, one, rng) for one in drawn]
            self._sample = age, drawn
        return self._sample[1]

    @property
    def _listable(self) -> bool:
        size = self._features.space.feasible.size
        return self._features.enumerable and size is not None and 0 < size <= LISTED

    @cached_property
    def _scales(self) -> Scales:
        return Scales(self._features)

    @cached_property
    def _neighbourhoods(self) -> Neighbourhoods:
        matrix = self._features.space.feasible.matrix()
        # What takes time is to compare all rows with one, and less of it with small integers.
        small = matrix.size and matrix.max() < 2**15
        return Neighbourhoods(self._features, matrix.astype(np.int16) if small else matrix)
