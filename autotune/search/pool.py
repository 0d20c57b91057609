"""Candidates as whole matrices, where the feasible set can be listed."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.search.candidates import candidates
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


@dataclass(frozen=True)
class Pool:
    """Some configurations and their inputs; ``numbers`` are indices in a feasible set that is listed."""

    space: Space
    inputs: Inputs
    numbers: Integers | None = None
    made: Sequence[Configuration] = ()

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, row: int) -> Configuration:
        if self.numbers is None:
            return self.made[row]
        return self.space.configuration(self.space.feasible[int(self.numbers[row])])


class Pools:
    """Makes pools. Small feasible sets are listed once; they may hold configurations that were tried."""

    def __init__(self, features: Features) -> None:
        self.features = features
        self.space = features.space
        self._matrix: Integers | None = None

    def around(
        self,
        incumbents: Sequence[Configuration],
        count: int,
        rng: np.random.Generator,
        taken: Container[str],
        known: Iterable[Configuration],
    ) -> Pool:
        """``count`` random configurations, and those near an incumbent."""
        if not self._listable:
            made = candidates(self.space, rng, taken, known, incumbents, min(count, DRAWN))
            return Pool(self.space, self.features.of(made), made=made)
        if self._matrix is None:
            self._matrix = self.space.feasible.matrix()
        chosen = np.zeros(len(self._matrix), dtype=bool)
        chosen[rng.integers(len(chosen), size=count)] = True
        for incumbent in incumbents:
            differing = np.count_nonzero(self._matrix != np.array(self.features.row(incumbent)), axis=1)
            chosen |= differing <= REACH
        numbers = np.flatnonzero(chosen)
        return Pool(self.space, self.features.of_cells(self._matrix[numbers]), numbers)

    @property
    def _listable(self) -> bool:
        size = self.space.feasible.size
        return self.features.enumerable and size is not None and 0 < size <= LISTED
