"""Optuna's samplers over constrained spaces, without repeats."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState, create_trial

from autotune.search.candidates.assemble import assemble, completed
from autotune.search.candidates.axes import Axes, Axis, Coordinate
from autotune.search.candidates.projection import project
from autotune.search.contract import Observation, Option, Problem, Proposal, Strategy
from autotune.search.loss import failures_as_worst, flattened, losses, signed
from autotune.search.quiet import quiet
from autotune.space.configuration import Configuration, Value
from autotune.space.spec import MetricSpec
from autotune.status import Status


class OptunaStrategy(Strategy):
    """A strategy that asks a fresh Optuna sampler for each proposal.

    The study is rebuilt in memory at each ask from what was told, in that order, with the trials in flight
    as running ones; the sampler is seeded from the ask. So nothing of Optuna's outlives an ask, and a
    resumed search goes on as if it had never stopped. A proposal that violates a constraint or was tried
    before is asked for again ``attempts`` times and then projected to the nearest untried configuration,
    which the reason says. Knobs are translated by :class:`~autotune.search.candidates.axes.Axes`.
    """

    attempts: ClassVar[int] = 4
    defaults: ClassVar[dict[str, Option]] = {"initial": 10}

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self.axes = Axes(problem.space)
        self.distributions = {axis.name: _distribution(axis) for axis in self.axes.all}

    def propose(self, n: int, rng: np.random.Generator) -> list[Proposal]:
        if len(self.taken) < int(self.options["initial"]) or not self.distributions:
            drawn = self.newcomers(rng)
            reason = {"strategy": self.name, "kind": "initial"}
            return [
                Proposal(configuration, reason) for configuration, _ in zip(drawn, range(n), strict=False)
            ]
        with quiet("optuna"):
            sampler = self._sampler(int(rng.integers(2**31)))
            study = optuna.create_study(directions=self._directions(), sampler=sampler)
            running = [self._trial(c, state=TrialState.RUNNING) for c in self.pending.values()]
            study.add_trials([*self._finished(), *running])
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

    def _trial(self, configuration: Configuration, **outcome: Any) -> FrozenTrial:
        point = self._point(configuration)
        distributions = {name: self.distributions[name] for name in point}
        return create_trial(params=point, distributions=distributions, **outcome)

    def _directions(self) -> list[StudyDirection]:
        """One for each value of a trial of :meth:`_finished`."""
        return [StudyDirection.MINIMIZE]

    @abstractmethod
    def _sampler(self, seed: int) -> optuna.samplers.BaseSampler: ...

    def _point(self, configuration: Configuration) -> dict[str, Coordinate]:
        """The parameters of the trial that stands for ``configuration``.

        An inactive knob stands at its default, so that every trial has all of them.
        """
        return self.axes.point(completed(self.space, configuration))

    @abstractmethod
    def _finished(self) -> Sequence[FrozenTrial]:
        """One trial for each observation, in the order told."""

    def _suggest(self, trial: optuna.Trial) -> dict[str, Value]:
        """Ask for the parameters of ``trial``; returns the values that they stand for."""
        return self.axes.wish({axis.name: _suggested(trial, axis) for axis in self.axes.all})


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
        return parzen_estimator(seed, bool(self.options["multivariate"]))

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

    def _sampled(self, study: optuna.Study, n: int, rng: np.random.Generator) -> list[Proposal]:
        with _one_torch_thread():
            return super()._sampled(study, n, rng)

    def _sampler(self, seed: int) -> optuna.samplers.BaseSampler:
        return optuna.samplers.GPSampler(seed=seed, n_startup_trials=1, warn_independent_sampling=False)

    def _finished(self) -> list[FrozenTrial]:
        observations = self.usable
        values = flattened(losses(self.problem, observations))
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


class OptunaOfSeveralGoals(OptunaStrategy):
    """A sampler that searches for every metric with a goal at once.

    The bounds of metrics are constraints (:func:`constraints_of`); the violation is how far a trial is past
    them. A failed trial, which has no metrics, violates a constraint of its own.
    """

    def _directions(self) -> list[StudyDirection]:
        found = [_DIRECTION[goal.goal] for goal in self.problem.goals if goal.goal]
        return found or super()._directions()

    def _finished(self) -> list[FrozenTrial]:
        return [self._told(observation) for observation in self.usable]

    def _told(self, observation: Observation) -> FrozenTrial:
        numbers = [_finite(observation, goal.name) for goal in self.problem.goals]
        good = observation.status in (Status.OK, Status.PRUNED) and None not in numbers
        excess = [_excess(observation, metric) for metric in self.problem.metrics]
        # The values of a failure are never compared: a constraint comes before them.
        values = [0.0 if number is None else number for number in numbers] or [0.0]
        constraints = [0.0 if good or sum(excess) > 0.0 else 1.0, *excess]
        return self._trial(observation.configuration, values=values, system_attrs={_CONSTRAINTS: constraints})


class OptunaNsga2(OptunaOfSeveralGoals):
    """Elitist non-dominated sorting genetic algorithm (Deb et al., IEEE TEC 6(2), 2002) of Optuna.

    Of two trials that violate constraints, the sampler prefers the smaller violation (section VI of the
    paper). Every ``population`` trials told, in that order, are a generation. Crossover finds all parameters
    in both parents.
    """

    name: ClassVar[str] = "optuna-nsga2"
    defaults: ClassVar[dict[str, Option]] = {"initial": 10, "population": 50}
    limits: ClassVar[dict[str, tuple[float, float]]] = {"population": (2, math.inf)}

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self._parents: dict[int, list[int]] = {}

    def _sampler(self, seed: int) -> optuna.samplers.BaseSampler:
        return _Nsga2InOrder(int(self.options["population"]), seed, self._parents)


class _Nsga2InOrder(optuna.samplers.NSGAIISampler):
    """The sampler, with generations that follow from the order of the finished trials alone.

    It would otherwise mark each of its trials with a generation, and trials from elsewhere have no mark.
    ``parents`` keeps what was chosen for earlier generations, by number.
    """

    def __init__(self, population: int, seed: int, parents: dict[int, list[int]]) -> None:
        super().__init__(population_size=population, seed=seed, constraints_func=constraints_of)
        self._size = population
        self._parents_of = parents

    def get_trial_generation(self, study: optuna.Study, trial: FrozenTrial) -> int:
        return len(_complete(study)) // self._size

    def get_population(self, study: optuna.Study, generation: int) -> list[FrozenTrial]:
        return _complete(study)[generation * self._size :][: self._size]

    def get_parent_population(self, study: optuna.Study, generation: int) -> list[FrozenTrial]:
        if generation == 0:
            return []
        if generation not in self._parents_of:
            chosen = self.select_parent(study, generation)
            self._parents_of[generation] = [trial.number for trial in chosen]
        trials = study.get_trials(deepcopy=False)
        return [trials[number] for number in self._parents_of[generation]]


_DIRECTION = {"minimize": StudyDirection.MINIMIZE, "maximize": StudyDirection.MAXIMIZE}
_CONSTRAINTS = "constraints"
"""The attribute of a trial where Optuna looks for its constraints, whatever its version."""


def parzen_estimator(
    seed: int,
    multivariate: bool = True,
    constraints: Callable[[FrozenTrial], Sequence[float]] | None = None,
) -> optuna.samplers.TPESampler:
    """Optuna's estimator, which finds random trials in the history and counts trials in flight as bad."""
    return optuna.samplers.TPESampler(
        seed=seed,
        n_startup_trials=1,
        multivariate=multivariate,
        group=multivariate,
        constant_liar=True,
        warn_independent_sampling=False,
        constraints_func=constraints,
    )


def constraints_of(trial: FrozenTrial) -> Sequence[float]:
    """What :class:`OptunaOfSeveralGoals` told of a trial: each is violated where it is above 0."""
    found: Sequence[float] = trial.system_attrs[_CONSTRAINTS]
    return found


def _complete(study: optuna.Study) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))


def _finite(observation: Observation, metric: str) -> float | None:
    value = observation.metrics.get(metric)
    return value if value is not None and math.isfinite(value) else None


def _excess(observation: Observation, metric: MetricSpec) -> float:
    """By how much the metric is past its bounds; 0 where it is inside or was not measured."""
    value = observation.metrics.get(metric.name, observation.bounded.get(metric.name, math.nan))
    if not math.isfinite(value):
        return 0.0
    over = 0.0 if metric.at_most is None else value - metric.at_most
    under = 0.0 if metric.at_least is None else metric.at_least - value
    return max(over, under, 0.0)


@contextmanager
def _one_torch_thread() -> Iterator[None]:
    """Torch uses one thread inside the block.

    The matrices of the process are small: several threads mostly wait for each other, above all on a machine
    that is busy measuring (it takes 8 times as long there); and their number could change a proposal.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
