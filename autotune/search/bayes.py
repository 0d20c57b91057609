"""Bayesian optimisation over the feasible set, with a Gaussian process of our own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from autotune.search.acquisition import log_expected_improvement
from autotune.search.contract import Option, Problem, Proposal, Strategy
from autotune.search.features import Features
from autotune.search.gaussian_process import GaussianProcess
from autotune.search.observed import Observed, observed
from autotune.search.pool import Pools
from autotune.search.untried import untried

INCUMBENTS = 4
"""The best configurations, all of whose neighbours are candidates."""
AMBITION = 40.0
"""The improvement asked for falls as this over the number of observations, in standard deviations."""


class Bayes(Strategy):
    """Expected improvement under a Gaussian process, over a sample of the feasible set and around the best.

    The first tries are random. Then each proposal maximises the expected improvement (Jones et al., 1998)
    over ``candidates`` random configurations and all that differ from one of the best in one or two
    knobs. What is asked for is an improvement on the best by :data:`AMBITION` over the number of
    observations: much at first, when the process knows little and is too sure of it, so that the search
    does not polish the first good region it meets; next to nothing after some hundred tries.

    The process sees logarithms of times whose slow side is cut
    (:func:`~autotune.search.loss.flattened`): near the optimum is where it must be right. A failure
    counts there as bad as the worst success, and multiplies the improvement expected nearby by the
    probability of success, the mean that the same process gives to an indicator. Trials in flight are
    taken to end as predicted (kriging believer; Ginsbourger et al., 2010), so that proposals keep apart.
    """

    name: ClassVar[str] = "bayes"
    defaults: ClassVar[dict[str, Option]] = {"initial": 6, "candidates": 1500}

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self.features = Features(problem.space)
        self._pools = Pools(self.features)
        self._process = GaussianProcess(self.features.groups, self.features.categories)
        self._fitted = 0
        """How many observations the hyper-parameters were fitted to."""

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        data = observed(self.problem, self.usable)
        for _ in range(n):
            if data is None or len(self.taken) < int(self.options["initial"]):
                chosen = self._newcomer("initial", rng)
            else:
                chosen = self._modelled(data, rng) or self._newcomer("newcomer", rng)
            if chosen is None:
                return
            yield chosen

    def _newcomer(self, kind: str, rng: np.random.Generator) -> Proposal | None:
        left = next(untried(self.space, rng, self.taken, self.known), None)
        return Proposal(left, {"strategy": self.name, "kind": kind}) if left else None

    # -- with a model

    def _modelled(self, data: Observed, rng: np.random.Generator) -> Proposal | None:
        """The candidate with the largest expected improvement that was not tried; ``None`` without one.

        Also ``None`` where rounding defeats the process, so that a bad model never ends a search.
        """
        try:
            self._condition(data.thinned())
        except np.linalg.LinAlgError:
            return None
        best = [data.configurations[i] for i in data.best_first[:INCUMBENTS]]
        pool = self._pools.around(best, int(self.options["candidates"]), rng, self.taken, self.known)
        if not len(pool):
            return None
        mean, spread = self._process.predict(pool.inputs)
        goal = data.best - AMBITION / len(data.targets)
        success = np.clip(1.0 - data.failed.mean() - mean[:, 1], 0.01, 1.0)
        gain = log_expected_improvement(mean[:, 0], spread, goal) + np.log(success)
        for i in np.argsort(-gain, kind="stable"):
            configuration = pool[int(i)]
            if configuration.hash not in self.taken:
                return Proposal(
                    configuration,
                    {
                        "strategy": self.name,
                        "kind": "expected improvement",
                        "predicted": data.metric(float(mean[i, 0])),
                        "spread": float(spread[i]) * data.scale,
                        "success": float(success[i]),
                        "log_gain": float(gain[i]),
                    },
                )
        return None

    def _condition(self, data: Observed) -> None:
        """Fit the hyper-parameters where it is time; condition on the data and on what is in flight."""
        due = fit_due(len(self.usable))
        if due != self._fitted:
            # To the first ``due`` observations alone, so that a resumed search has the same process.
            first = observed(self.problem, self.usable[:due])
            if first is None:
                self._process.forget()
            else:
                first = first.thinned()
                self._process.fit(self.features.of(first.configurations), first.targets)
            self._fitted = due
        inputs = self.features.of(data.configurations)
        outcomes = np.column_stack([data.targets, data.failed - data.failed.mean()])
        self._process.observe(inputs, outcomes)
        if self.pending:
            flying = self.features.of(list(self.pending.values()))
            believed, _ = self._process.predict(flying)
            self._process.observe(inputs.joined(flying), np.vstack([outcomes, believed]))


def fit_due(count: int) -> int:
    """To how many of ``count`` observations the hyper-parameters are fitted: they may lag by a twentieth."""
    return count - count % max(1, count // 20)
