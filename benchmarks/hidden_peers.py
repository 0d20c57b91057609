"""Other tuners on a space with a hidden limit, each told of a failure as its documentation says.

==================== =================================================================================
name                 how a failure is told
==================== =================================================================================
optuna-tpe-fail      as ``TrialState.FAIL``, which the sampler leaves out
optuna-tpe-penalty   as twice the slowest success
optuna-tpe-limit     ``constraints_func``: what is left of the memory where it is measured, else -1 or 1
optuna-gp-fail       as above
optuna-gp-penalty    as above
optuna-gp-limit      as above
skopt-gp             as twice the slowest success
baco-rule            to a random forest whose probability of success multiplies the expected improvement
==================== =================================================================================

``baco-rule`` is the rule of BaCO (Hellsten et al., ASPLOS 2023) on scikit-learn, over all that was not tried:
ten random tries first, then a Gaussian process on log time and a forest on success.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.hidden_spaces import Limited

RANDOM = 10
"""Random tries of the rule of BaCO before its models."""


class Peer(ABC):
    """Asks for values of the knobs; is told what became of them."""

    def __init__(self, problem: Limited, measured: bool, seed: int) -> None:
        self.problem = problem
        self.measured = measured
        self.seed = seed
        self.slowest = 0.0

    @abstractmethod
    def ask(self) -> dict[str, Any]: ...

    @abstractmethod
    def tell(self, values: Mapping[str, Any], seconds: float | None) -> None:
        """``seconds`` is ``None`` where it ran out of memory."""

    def value(self, seconds: float | None) -> float:
        """The time, and for a failure twice the slowest so far."""
        self.slowest = max(self.slowest, seconds or 0.0)
        return 2.0 * self.slowest if seconds is None else seconds


def ordered_values(problem: Limited) -> dict[str, tuple[Any, ...]]:
    return {knob.name: tuple(knob.cells[0].values) for knob in problem.space.knobs}


def is_ordered(values: tuple[Any, ...]) -> bool:
    return all(isinstance(v, int) and not isinstance(v, bool) for v in values)


class Optuna(Peer):
    """Ordered knobs are integers: the value's place in its list; others are categorical."""

    def __init__(self, problem: Limited, measured: bool, seed: int, sampler: str, told: str) -> None:
        super().__init__(problem, measured, seed)
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")
        self.optuna, self.told = optuna, told
        limits = self._limits if told == "limit" else None
        kind = {"tpe": optuna.samplers.TPESampler, "gp": optuna.samplers.GPSampler}[sampler]
        self.study = optuna.create_study(sampler=kind(seed=seed, constraints_func=limits))
        default = problem.space.configuration({})
        self.values = ordered_values(problem)
        self.study.enqueue_trial({name: self._place(name, default[name]) for name in self.values})

    def ask(self) -> dict[str, Any]:
        self.trial = self.study.ask()
        return {
            name: values[self.trial.suggest_int(name, 0, len(values) - 1)]
            if is_ordered(values)
            else self.trial.suggest_categorical(name, values)
            for name, values in self.values.items()
        }

    def tell(self, values: Mapping[str, Any], seconds: float | None) -> None:
        if seconds is None and self.told == "fail":
            self.study.tell(self.trial, state=self.optuna.trial.TrialState.FAIL)
            return
        # With constraints the value of what violates one is not looked at, but there has to be one.
        value = self.value(seconds) if self.told == "penalty" else seconds or max(self.slowest, 1e-9)
        self.slowest = max(self.slowest, seconds or 0.0)
        over = math.log(self.problem.shape.memory(values) / self.problem.limit)
        slack = (over if self.measured else -1.0) if seconds else (1e-3 if self.measured else 1.0)
        self.trial.set_user_attr("over", slack)
        self.study.tell(self.trial, value)

    @staticmethod
    def _limits(trial: Any) -> tuple[float, ...]:
        return (trial.user_attrs["over"],)

    def _place(self, name: str, value: Any) -> Any:
        return self.values[name].index(value) if is_ordered(self.values[name]) else value


class Skopt(Peer):
    """scikit-optimize's Gaussian process with its defaults, ten random tries first."""

    def __init__(self, problem: Limited, measured: bool, seed: int) -> None:
        super().__init__(problem, measured, seed)
        from skopt import Optimizer
        from skopt.space import Categorical, Integer

        warnings.simplefilter("ignore")
        self.values = ordered_values(problem)
        axes = [
            Integer(0, len(values) - 1) if is_ordered(values) else Categorical(range(len(values)))
            for values in self.values.values()
        ]
        self.optimizer = Optimizer(axes, base_estimator="GP", random_state=seed)
        self.first: dict[str, Any] | None = dict(problem.space.configuration({}))

    def ask(self) -> dict[str, Any]:
        if self.first is not None:
            first, self.first = self.first, None
            return first
        point = self.optimizer.ask()
        return {name: values[int(i)] for (name, values), i in zip(self.values.items(), point, strict=True)}

    def tell(self, values: Mapping[str, Any], seconds: float | None) -> None:
        point = [known.index(values[name]) for name, known in self.values.items()]
        self.optimizer.tell(point, self.value(seconds))


class BacoRule(Peer):
    """Expected improvement times the probability of success by a forest, over all that was not tried."""

    def __init__(self, problem: Limited, measured: bool, seed: int) -> None:
        super().__init__(problem, measured, seed)
        from autotune.search.models.features import Features

        self.all = [problem.space.configuration(values) for values in problem.space.feasible]
        self.rows = {configuration.hash: i for i, configuration in enumerate(self.all)}
        self.points = Features(problem.space).of(self.all).smooth
        self.rng = np.random.default_rng(seed)
        self.tried: list[int] = []
        self.seconds: list[float] = []

    def ask(self) -> dict[str, Any]:
        if not self.tried:
            return dict(self.problem.space.configuration({}))
        left = np.setdiff1d(np.arange(len(self.all)), self.tried)
        seconds = np.array(self.seconds)
        if len(self.tried) < RANDOM or np.isnan(seconds).all():
            return dict(self.all[int(self.rng.choice(left))])
        return dict(self.all[int(left[np.argmax(self._gain(left, seconds))])])

    def _gain(self, left: Any, seconds: Any) -> Any:
        from scipy.stats import norm
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        warnings.simplefilter("ignore")
        points, ok = self.points[self.tried], ~np.isnan(seconds)
        kernel = ConstantKernel() * Matern(np.ones(points.shape[1]), nu=2.5) + WhiteKernel(1e-3)
        process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=self.seed)
        losses = np.log(seconds[ok])
        process.fit(points[ok], losses)
        mean, spread = process.predict(self.points[left], return_std=True)
        z = (losses.min() - mean) / np.maximum(spread, 1e-9)
        gain = spread * (z * norm.cdf(z) + norm.pdf(z))
        if ok.all():
            return gain
        forest = RandomForestClassifier(100, random_state=self.seed).fit(points, ok)
        return gain * forest.predict_proba(self.points[left])[:, list(forest.classes_).index(True)]

    def tell(self, values: Mapping[str, Any], seconds: float | None) -> None:
        self.tried.append(self.rows[self.problem.space.configuration(values).hash])
        self.seconds.append(math.nan if seconds is None else seconds)


PEERS = (
    *(f"optuna-{sampler}-{told}" for sampler in ("tpe", "gp") for told in ("fail", "penalty", "limit")),
    "skopt-gp",
    "baco-rule",
)


def make_peer(name: str, problem: Limited, measured: bool, seed: int) -> Peer:
    if name.startswith("optuna-"):
        _, sampler, told = name.split("-")
        return Optuna(problem, measured, seed, sampler, told)
    return {"skopt-gp": Skopt, "baco-rule": BacoRule}[name](problem, measured, seed)
