"""Uniform random search: the control that every other strategy must beat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from autotune.search.candidates.untried import untried
from autotune.search.contract import Proposal, Strategy
from autotune.space.configuration import Configuration


class Random(Strategy):
    """Draws uniformly from the feasible configurations not tried yet, until none is left."""

    name: ClassVar[str] = "random"

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        for configuration in untried(self.space, rng, self.taken, self._known_when_asked()):
            yield Proposal(configuration, {"strategy": self.name, "kind": "uniform"})

    def _known_when_asked(self) -> Iterator[Configuration]:
        """:attr:`known`, listed only once it is needed: late in a small space, and never in a large one."""
        yield from self.known
