"""scikit-optimize's surrogates and acquisition over the feasible set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import skopt.space
from skopt.acquisition import gaussian_ei
from skopt.utils import cook_estimator, normalize_dimensions

from autotune.errors import InputError
from autotune.errors import Problem as Fault
from autotune.search.candidates.axes import Axes, Axis
from autotune.search.candidates.sampled import candidates
from autotune.search.contract import Option, Problem, Proposal, Strategy
from autotune.search.loss import failures_as_worst, flattened, losses
from autotune.search.models.arrays import Floats
from autotune.search.quiet import quiet
from autotune.search.threads import one_thread
from autotune.space.configuration import Configuration

INCUMBENTS = 4
"""The neighbourhoods of so many of the best configurations are candidates."""
TREES = ("ET", "RF")
"""Kinds of forest."""


class SkoptStrategy(Strategy):
    """Expected improvement under one of scikit-optimize's surrogates.

    ``skopt.Optimizer`` samples its candidates from the Cartesian product and repeats itself. So the
    surrogate, its transformation of the axes and the expected improvement are scikit-optimize's, and
    the candidates are untried configurations of the feasible set: no proposal is infeasible or a repeat.
    The model is fitted afresh for each proposal, from what was told and for each trial in flight the lie
    that it was as good as the best (CL-min; Ginsbourger et al., 2010), which keeps proposals apart.

    A failure counts as bad as the worst success, not as a large number. An inactive knob stands at its
    default.
    """

    defaults: ClassVar[dict[str, Option]] = {"initial": 10, "candidates": 1000}
    limits: ClassVar[dict[str, tuple[float, float]]] = {"candidates": (1, 1_000_000)}

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self.axes = Axes(problem.space)
        self._dimensions: Any = None
        if self.axes.all:
            self._dimensions = skopt.space.Space(normalize_dimensions([_dimension(a) for a in self.axes.all]))

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        for _ in range(n):
            proposal = self._next(rng)
            if proposal is None:
                return
            yield proposal

    def _next(self, rng: np.random.Generator) -> Proposal | None:
        told = self.usable
        values = self._targets(losses(self.problem, told))
        if len(self.taken) < int(self.options["initial"]) or not len(values) or self._dimensions is None:
            newcomer = next(self.newcomers(rng), None)
            return Proposal(newcomer, {"strategy": self.name, "kind": "initial"}) if newcomer else None
        best = [told[i].configuration for i in np.argsort(values, kind="stable")[:INCUMBENTS]]
        count = int(self.options["candidates"])
        pool = candidates(self.space, rng, self.taken, self.known, best, count)
        if not pool:
            return None
        flying = list(self.pending.values())
        lies = np.full(len(flying), values.min())
        rows = self._rows([*(o.configuration for o in told), *flying])
        with quiet("skopt"), one_thread():
            model = self._estimator(int(rng.integers(2**31)))
            model.fit(rows, np.concatenate([values, lies]))
            gain = gaussian_ei(self._rows(pool), model, y_opt=float(values.min()))
        chosen = int(np.argmax(gain))
        reason = {"strategy": self.name, "kind": "expected improvement", "gain": float(gain[chosen])}
        return Proposal(pool[chosen], reason)

    def _rows(self, configurations: Sequence[Configuration]) -> Floats:
        rows = [self.axes.row(configuration) for configuration in configurations]
        return np.asarray(self._dimensions.transform(rows), dtype=float)

    def _targets(self, values: Floats) -> Floats:
        return failures_as_worst(values)

    def _estimator(self, seed: int) -> Any:
        raise NotImplementedError


class SkoptGp(SkoptStrategy):
    """Gaussian process, Matern 5/2 with a length scale an axis, hyper-parameters by maximum likelihood.

    It sees the losses with the slow side cut (:func:`~autotune.search.loss.flattened`).
    """

    name: ClassVar[str] = "skopt-gp"

    def _targets(self, values: Floats) -> Floats:
        return failures_as_worst(flattened(values))

    def _estimator(self, seed: int) -> Any:
        return cook_estimator("GP", space=self._dimensions, random_state=seed)


class SkoptForest(SkoptStrategy):
    """A hundred trees; their disagreement is the spread. ``trees``: ``ET`` (extremely random) or ``RF``."""

    name: ClassVar[str] = "skopt-forest"
    defaults: ClassVar[dict[str, Option]] = {**SkoptStrategy.defaults, "trees": "ET"}

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        if self.options["trees"] not in TREES:
            message = f"the option 'trees' of {self.name!r} cannot be {self.options['trees']!r:.60}"
            raise InputError(Fault(message, expected=" or ".join(TREES)))

    def _estimator(self, seed: int) -> Any:
        return cook_estimator(str(self.options["trees"]), random_state=seed)


def _dimension(axis: Axis) -> Any:
    prior = "log-uniform" if axis.log else "uniform"
    if axis.kind == "float":
        return skopt.space.Real(axis.low, axis.high, prior=prior)
    if axis.kind == "integer":
        return skopt.space.Integer(int(axis.low), int(axis.high), prior=prior)
    return skopt.space.Categorical(range(int(axis.high) + 1))
