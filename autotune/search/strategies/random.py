"""Uniform random search: the control that every other strategy must beat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from autotune.search.contract import Proposal, Strategy


class Random(Strategy):
    """Draws uniformly from the feasible configurations not tried yet, until none is left."""

    name: ClassVar[str] = "random"

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        for configuration in self.newcomers(rng):
            yield Proposal(configuration, {"strategy": self.name, "kind": "uniform"})
