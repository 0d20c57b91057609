"""What was observed, as a surrogate learns it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.search.contract import Observation, Problem
from autotune.search.gaussian_process import Floats, Integers
from autotune.search.loss import Losses, failures_as_worst, flattened, losses
from autotune.space.configuration import Configuration

MOST = 300
"""Configurations that a surrogate learns from: beyond them the best half, and an even part of the rest."""


@dataclass(frozen=True)
class Observed:
    """A row a configuration, replicates averaged, in the order in which they were first told."""

    configurations: list[Configuration]
    targets: Floats
    """Losses with the slow side cut and failures as bad as the worst, scaled to mean 0 and variance 1."""
    failed: Floats
    """1 where the configuration failed (or had no number), else 0."""
    middle: float
    scale: float
    losses: Losses

    @property
    def best_first(self) -> Integers:
        """The rows from the best to the worst, failures last."""
        return np.lexsort((self.targets, self.failed))

    @property
    def best(self) -> float:
        """The lowest target of a success."""
        return float(self.targets[self.failed == 0.0].min())

    def metric(self, target: float) -> float:
        """The metric that a target stands for, in its own unit."""
        return self.losses.metric(self.middle + self.scale * target)

    def thinned(self, most: int = MOST) -> Observed:
        """At most ``most`` rows: the best half of that many, and rows spread evenly over the others."""
        if len(self.configurations) <= most:
            return self
        order = self.best_first
        half = most // 2
        spread = np.linspace(half, len(order) - 1, most - half).astype(int)
        rows = np.sort(np.concatenate([order[:half], order[spread]]))
        chosen = [self.configurations[i] for i in rows]
        return Observed(chosen, self.targets[rows], self.failed[rows], self.middle, self.scale, self.losses)


def observed(problem: Problem, observations: Sequence[Observation]) -> Observed | None:
    """What ``observations`` teach; ``None`` where none of them succeeded."""
    told = losses(problem, observations)
    by_hash: dict[str, list[int]] = {}
    for number, observation in enumerate(observations):
        by_hash.setdefault(observation.configuration.hash, []).append(number)
    values = np.array([_mean(told.values[numbers]) for numbers in by_hash.values()])
    failed = np.isnan(values)
    if failed.all():
        return None
    targets = failures_as_worst(flattened(values))
    middle, scale = float(targets.mean()), float(targets.std())
    if scale <= 1e-12 * max(1.0, abs(middle)):
        scale = 1.0
    configurations = [observations[numbers[0]].configuration for numbers in by_hash.values()]
    return Observed(configurations, (targets - middle) / scale, failed.astype(float), middle, scale, told)


def _mean(values: Floats) -> float:
    """The mean of the replicates that succeeded; NaN where none did."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
