"""Optuna's samplers over constrained spaces, without repeats."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from autotune.search.assemble import assemble, completed
from autotune.search.axes import Axes, Axis, Coordinate
from autotune.search.contract import Option, Problem, Proposal, Strategy
from autotune.search.loss import failures_as_worst, flattened, losses, signed
from autotune.search.project import project
from autotune.search.quiet import quiet
from autotune.search.untried import untried
from autotune.space.configuration import Configuration, Value


class OptunaStrategy(Strategy):
    """A strategy that asks a fresh Optuna sampler for each proposal.

    The study is rebuilt in memory at each ask from what was told, in that order, with the trials in flight
    as running ones; the sampler is seeded from the ask. So nothing of Optuna's outlives an ask, and a
    resumed search goes on as if it had never stopped. A proposal that violates a constraint or was tried
    before is asked for again ``attempts`` times and then projected to the nearest untried configuration,
    which the reason says. Knobs are translated by :class:`~autotune.search.axes.Axes`.
    """

    attempts: ClassVar[int] = 4
    defaults: ClassVar[dict[str, Option]] = {"initial": 10}

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self.axes = Axes(problem.space)
        self.distributions = {axis.name: _distribution(axis) for axis in self.axes.all}

    def propose(self, n: int, rng: np.random.Generator) -> list[Proposal]:
        if len(self.taken) < int(self.options["initial"]) or not self.distributions:
            drawn = untried(self.space, rng, self.taken, self.known)
            reason = {"strategy": self.name, "kind": "initial"}
            return [
                Proposal(configuration, reason) for configuration, _ in zip(drawn, range(n), strict=False)
            ]
        with quiet("optuna"):
            study = optuna.create_study(sampler=self._sampler(int(rng.integers(2**31))))
            study.add_trials([*self._finished(), *map(self._running, self.pending.values())])
            return self._sampled(study, n, rng)

    def _sampled(self, study: optuna.Study, n: int, rng: np.random.Generator) -> list[Proposal]:
        taken, known, proposals = set(self.taken), self.known, list[Proposal]()
        for _ in range(n):
            for _ in range(self.attempts):
                wish = self._suggest(study.ask())
                configuration = assemble(self.space, wish)
                kind = "sampled"
                if configuration is not None and configuration.hash not in taken:
                    break
            else:
                configuration, kind = project(self.space, wish, rng, taken, known), "projected"
            if configuration is None:
                break
            proposals.append(Proposal(configuration, {"strategy": self.name, "kind": kind}))
            taken.add(configuration.hash)
            known.append(configuration)
        return proposals

    def _running(self, configuration: Configuration) -> FrozenTrial:
        return self._trial(configuration, state=TrialState.RUNNING)

    def _trial(self, configuration: Configuration, **outcome: Any) -> FrozenTrial:
        point = self._point(configuration)
        distributions = {name: self.distributions[name] for name in point}
        return create_trial(params=point, distributions=distributions, **outcome)

    @abstractmethod
    def _sampler(self, seed: int) -> optuna.samplers.BaseSampler: ...

    @abstractmethod
    def _point(self, configuration: Configuration) -> dict[str, Coordinate]:
        """The parameters of the trial that stands for ``configuration``."""

    @abstractmethod
    def _finished(self) -> Sequence[FrozenTrial]:
        """One trial an observation, in the order told."""

    @abstractmethod
    def _suggest(self, trial: optuna.Trial) -> dict[str, Value]:
        """Ask for the parameters of ``trial``; the values they stand for."""


class OptunaTpe(OptunaStrategy):
    """Tree-structured Parzen estimator (Bergstra et al., NeurIPS 2011) of Optuna.

    A failure is told as an infinite loss. The estimator looks only at the order of losses, so that this
    distorts nothing: it says 'among the bad ones'. Told as FAIL, a trial would be forgotten and its
    neighbours tried again and again. Conditional knobs are suggested as they become active. Trials in
    flight count as bad ones too (constant liar), which keeps them apart.
    """

    name: ClassVar[str] = "optuna-tpe"
    defaults: ClassVar[dict[str, Option]] = {"initial": 10, "multivariate": True}

    def _sampler(self, seed: int) -> optuna.samplers.BaseSampler:
        multivariate = bool(self.options["multivariate"])
        return optuna.samplers.TPESampler(
            seed=seed,
            n_startup_trials=1,
            multivariate=multivariate,
            group=multivariate,
            constant_liar=True,
            warn_independent_sampling=False,
        )

    def _point(self, configuration: Configuration) -> dict[str, Coordinate]:
        return self.axes.point(configuration)

    def _finished(self) -> list[FrozenTrial]:
        observations = self.usable
        values = np.nan_to_num(signed(self.problem, observations), nan=np.inf)
        return [
            self._trial(o.configuration, value=float(value))
            for o, value in zip(observations, values, strict=True)
        ]

    def _suggest(self, trial: optuna.Trial) -> dict[str, Value]:
        """Define by run: the knobs that are active under what was suggested so far, until none is new."""
        point: dict[str, Coordinate] = {}
        settled: set[str] = set()
        while True:
            wish = self.axes.wish(point)
            fresh = [name for name in self.space.active(completed(self.space, wish)) if name not in settled]
            if not fresh:
                return wish
            for axis in self.axes.of(self.space.knob(fresh[0])):
                point[axis.name] = _suggested(trial, axis)
            settled.add(fresh[0])


class OptunaGp(OptunaStrategy):
    """Gaussian process with log expected improvement, of Optuna. Needs torch.

    The process sees logarithms of times with the slow side cut
    (:func:`~autotune.search.loss.flattened`). A failure counts as bad as the worst of those and, beside
    it, violates a constraint of its own, whose probability multiplies the expected improvement (Gardner
    et al., ICML 2014); never as a large number, which would flatten everything else. An inactive knob
    stands at its default, so that every trial has all parameters: the sampler would otherwise draw
    conditional ones at random.
    """

    name: ClassVar[str] = "optuna-gp"
    attempts: ClassVar[int] = 2  # each costs a fit

    def _sampler(self, seed: int) -> optuna.samplers.BaseSampler:
        return optuna.samplers.GPSampler(seed=seed, n_startup_trials=1, warn_independent_sampling=False)

    def _point(self, configuration: Configuration) -> dict[str, Coordinate]:
        return self.axes.point(completed(self.space, configuration))

    def _finished(self) -> list[FrozenTrial]:
        observations = self.usable
        values = flattened(losses(self.problem, observations).values)
        failed = np.isnan(values)
        filled = failures_as_worst(values)
        return [
            self._trial(
                o.configuration,
                value=float(value),
                constraints={"failed": 1.0 if bad else -1.0} if failed.any() else None,
            )
            for o, value, bad in zip(observations, filled, failed, strict=True)
        ]

    def _suggest(self, trial: optuna.Trial) -> dict[str, Value]:
        return self.axes.wish({axis.name: _suggested(trial, axis) for axis in self.axes.all})


def _distribution(axis: Axis) -> BaseDistribution:
    if axis.kind == "float":
        return FloatDistribution(axis.low, axis.high, log=axis.log)
    if axis.kind == "integer":
        return IntDistribution(int(axis.low), int(axis.high), log=axis.log)
    return CategoricalDistribution(range(int(axis.high) + 1))


def _suggested(trial: optuna.Trial, axis: Axis) -> Coordinate:
    if axis.kind == "float":
        return trial.suggest_float(axis.name, axis.low, axis.high, log=axis.log)
    if axis.kind == "integer":
        return trial.suggest_int(axis.name, int(axis.low), int(axis.high), log=axis.log)
    chosen: int = trial.suggest_categorical(axis.name, range(int(axis.high) + 1))
    return chosen
