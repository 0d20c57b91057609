"""What a search uses unless it is told otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from autotune.search.contract import Observation, Problem, Proposal
from autotune.search.strategies.fresh_starts import FreshStarts
from autotune.search.strategies.structured import Structured


class Auto(Structured):
    """What did best in the benchmarks.

    That is :class:`~autotune.search.strategies.bayes.Bayes` over the recorded spaces
    (``benchmarks/results/search_efficiency.md``), and
    :class:`~autotune.search.strategies.structured.Structured` where an assignment is most of what there is to
    choose (``benchmarks/results/constrained_spaces.md``). The latter is the former in all other spaces. Where
    all knobs are ranges it begins anew when it has come to a standstill
    (:mod:`~autotune.search.strategies.fresh_starts`).
    """

    name: ClassVar[str] = "auto"

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self._fresh_starts = FreshStarts(self)

    def learn(self, observations: Sequence[Observation]) -> None:
        super().learn(observations)
        self._fresh_starts.learn(observations)

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        yield from self._fresh_starts.crossed()
        yield from self._fresh_starts.propose(n, rng) or super().propose(n, rng)
