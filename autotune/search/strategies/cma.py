"""CMA-ES over constrained mixed spaces, with the package behind Optuna's sampler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import cmaes
import numpy as np

from autotune.search.candidates.assemble import assemble
from autotune.search.candidates.axes import Axes, Axis, from_unit, to_unit
from autotune.search.candidates.projection import project
from autotune.search.contract import Observation, Option, Problem, Proposal, Strategy
from autotune.search.loss import failures_as_worst, signed
from autotune.search.models.arrays import Floats
from autotune.space.configuration import Configuration

MOST_STEPS = 2**20
"""An integer axis of more values counts as continuous. The optimiser keeps neighbouring integers in reach;
with some thousand million of them rounding defeats that, and it stays where it began."""


class OptunaCmaEs(Strategy):
    """Covariance matrix adaptation with margin (Hansen, 2016; for integers Hamano et al., GECCO 2022).

    It uses ``cmaes``, the package of Optuna's authors on which their ``CmaEsSampler`` is built, but not that
    sampler: it keeps its state in attributes of its own trials, so that it never learns of what was tried
    elsewhere. Here every ``population`` trials, in the order told, are a generation, so that the state
    follows from them alone. The optimiser is told where a trial was in fact, not what was sampled (injected
    solutions; Hansen, 2011): the two differ where a sample had to be projected to the nearest feasible
    untried configuration.

    Every axis is scaled to [0, 1]; choices are numbered, in the order of the space file. Failures rank
    last in their generation; only ranks count. A generation that has converged starts a new search
    around the best configuration so far.
    """

    name: ClassVar[str] = "optuna-cmaes"
    defaults: ClassVar[dict[str, Option]] = {"initial": 1, "sigma": 0.25, "attempts": 4}
    limits: ClassVar[dict[str, tuple[float, float]]] = {"sigma": (1e-3, 1), "attempts": (1, 1000)}

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self.axes = Axes(problem.space)
        self._heard: list[Observation] = []
        """What was learned from: all generations so far, and the beginning of the next."""
        self._optimizer = self._start(self._unit(problem.space.configuration({}))) if self.axes.all else None

    def learn(self, observations: Sequence[Observation]) -> None:
        for observation in observations:  # one by one: a resumed search is told all at once
            self._heard.append(observation)
            self._evolve()

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        for _ in range(n):
            if self._optimizer is None or len(self.taken) < int(self.options["initial"]):
                configuration, kind = next(self.newcomers(rng), None), "initial"
            else:
                configuration, kind = self._sample(self._optimizer, rng)
            if configuration is None:
                return
            yield Proposal(configuration, {"strategy": self.name, "kind": kind})

    def _sample(self, optimizer: cmaes.CMAwM, rng: np.random.Generator) -> tuple[Configuration | None, str]:
        """A configuration that was not tried, and how it was found; ``None`` where none is left."""
        optimizer.reseed_rng(int(rng.integers(2**31)))
        for _ in range(int(self.options["attempts"])):
            drawn, _ = optimizer.ask()
            point = {
                axis.name: from_unit(axis, float(x)) for axis, x in zip(self.axes.all, drawn, strict=True)
            }
            wish = self.axes.wish(point)
            configuration = assemble(self.space, wish)
            if configuration is not None and configuration.hash not in self.taken:
                return configuration, "sampled"
        return project(self.space, wish, rng, self.taken, self.known), "projected"

    def _evolve(self) -> None:
        """Learn from the latest generation, once it is complete."""
        if self._optimizer is None or len(self._heard) % (size := self._optimizer.population_size):
            return
        losses = signed(self.problem, self._heard)
        latest = losses[-size:]
        points = [self._unit(observation.configuration) for observation in self._heard[-size:]]
        ranks = np.lexsort((failures_as_worst(latest), np.isnan(latest))).argsort()
        self._optimizer.tell([(point, float(rank)) for point, rank in zip(points, ranks, strict=True)])
        if self._optimizer.should_stop():
            best = None if np.isnan(losses).all() else self._heard[int(np.nanargmin(losses))].configuration
            self._optimizer = self._start(points[-1] if best is None else self._unit(best))

    def _start(self, mean: Floats) -> cmaes.CMAwM:
        return cmaes.CMAwM(
            mean=np.clip(mean, 0.01, 0.99),
            sigma=float(self.options["sigma"]),
            bounds=np.tile([0.0, 1.0], (len(mean), 1)),
            steps=np.array([_step(axis) for axis in self.axes.all]),
            seed=0,  # reseeded before each sample
        )

    def _unit(self, configuration: Configuration) -> Floats:
        row = self.axes.row(configuration)
        return np.array([to_unit(axis, x) for axis, x in zip(self.axes.all, row, strict=True)])


def _step(axis: Axis) -> float:
    """The distance between neighbouring integers; 0 on a log scale, and if the axis counts as continuous."""
    many = axis.kind == "float" or axis.log or axis.high - axis.low > MOST_STEPS
    return 0.0 if many else 1.0 / (axis.high - axis.low)
