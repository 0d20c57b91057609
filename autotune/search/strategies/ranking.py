"""The trials that have a number, by rank and by age: what a population is drawn from."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from typing import TypeAlias

from autotune.search.contract import Observation, Problem
from autotune.search.loss import signed
from autotune.space.configuration import Configuration

Ranked: TypeAlias = tuple[float, Configuration]
"""A loss, lower is better, and the configuration that had it."""


class Ranking:
    """Trials in the order told and in the order of their losses. Failures are in neither."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._told: list[Observation] = []
        self._in_order: list[Ranked] = []
        self._by_loss: list[Ranked] = []
        self._partial = False

    def learn(self, observations: Sequence[Observation]) -> None:
        """Take in further trials."""
        self._told.extend(observations)
        self._partial |= any(o.fraction < 1.0 for o in observations)
        if self._partial:  # what a stopped trial would have come to is estimated anew with every other
            self._in_order, self._by_loss = [], []
            observations = self._told
        for loss, observation in zip(signed(self._problem, observations), observations, strict=True):
            if not math.isnan(loss):
                ranked = float(loss), observation.configuration
                self._in_order.append(ranked)
                insort(self._by_loss, ranked, key=loss_of)

    def __len__(self) -> int:
        return len(self._in_order)

    def best(self, count: int) -> list[Ranked]:
        """The ``count`` best, best first; of equal ones the earlier first."""
        return self._by_loss[:count]

    def latest(self, count: int) -> list[Ranked]:
        """The ``count`` latest, in the order told."""
        return self._in_order[-count:]


def loss_of(ranked: Ranked) -> float:
    return ranked[0]
