"""A Gaussian process over what was told, kept from ask to ask and updated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.search.candidates.pool import Pool
from autotune.search.contract import Observation, Problem
from autotune.search.models.arrays import Floats, Integers
from autotune.search.models.bounds import Bounds, as_run
from autotune.search.models.feasibility import Feasibility
from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import GaussianProcess, Inputs, Prior
from autotune.search.models.history import History, Targets, chosen
from autotune.search.models.posterior import TINY, Points, Posterior
from autotune.search.models.power_law import law_of
from autotune.space.configuration import Configuration

REFITS = 10
"""The hyper-parameters may lag behind by one in so many observations."""

LEADERS = 20
"""The configuration that is expected to be best is looked for among so many with the best readings."""


def fit_due(count: int) -> int:
    """To how many of ``count`` observations the hyper-parameters are fitted."""
    return count - count % max(1, count // REFITS)


def fitted_next(problems: Sequence[Problem], told: Sequence[Observation], fitted: int) -> int:
    """To how many of those ``told`` surrogates are fitted next, one for each problem; ``fitted``: so far.

    To all, where the first ones lack a number: a process that was fitted to failures alone would take the
    numbers that stand for them as values.
    """
    count = fit_due(len(told))
    if count == fitted or all(History.of(one, told[:count]).targets() for one in problems):
        return count
    return len(told)


@dataclass(frozen=True)
class Leader:
    """The configuration that is expected to be the best of all that succeeded."""

    level: float
    """Its expected noiseless target."""
    inputs: Inputs
    """Its inputs, one row."""


@dataclass(frozen=True)
class Prediction:
    """What is expected of some candidates, in standardised targets (lower is better); each of shape (n,)."""

    mean: Floats
    spread: Floats
    apart: Floats
    """The standard deviation of the difference from the leader: almost 0 where both are alike, however little
    is known of how good they are. Without a leader it is ``spread``."""
    log_success: Floats
    """The logarithm of the probability that the configuration does not fail."""
    log_room: Floats
    """The part of it that is due to a limit of measured memory."""

    @property
    def success(self) -> Floats:
        """The probability that the configuration does not fail."""
        return np.exp(self.log_success)


@dataclass(frozen=True)
class _Fit:
    """A process with hyper-parameters, and what it is to be conditioned on."""

    process: GaussianProcess
    rows: Integers
    """The rows of the history."""
    inputs: Inputs
    known: Floats
    """Shape (rows,): the variances of their targets."""
    lawful: bool
    """Whether it is a law of the knobs (:mod:`~autotune.search.models.power_law`), which also holds for
    values that are otherwise cut off."""


def _fitted(history: History, features: Features, at_a_limit: bool) -> _Fit:
    """The process that explains a history best. It may be a law of the knobs only if ``at_a_limit``."""
    process = GaussianProcess(features.columns, Prior(wide=True, linear=True))
    targets = history.targets()
    assert targets is not None, "nothing has a number yet"
    rows = np.intersect1d(chosen(targets), targets.instructive)
    inputs = features.of([history.configurations[i] for i in rows])
    known, values = targets.known[rows], targets.values[rows]
    middle, scale, beforehand = values.mean(), values.std() or 1.0, _centred(inputs.expected)
    values = (values - middle) / scale - beforehand
    process.fit(inputs, values, known)
    if at_a_limit:
        uncut = (targets.uncut[rows] - middle) / scale - beforehand
        law = law_of(process, features, inputs, values, uncut, known)
        if law is not None:
            return _Fit(law, rows, inputs, known, lawful=True)
    return _Fit(process, rows, inputs, known, lawful=False)


class Surrogate:
    """The process as it was fitted to the first ``due`` observations, conditioned on all since.

    Failures say nothing about the goal: :class:`~autotune.search.models.feasibility.Feasibility` learns from
    them how probable success is. Whatever is kept follows from the observations alone, so that a resumed
    search predicts the same.
    """

    def __init__(
        self,
        problem: Problem,
        features: Features,
        first: Sequence[Observation],
        pool: Pool,
        *,
        success: bool = True,
    ) -> None:
        """Fit to the observations ``first`` and watch the pool's columns.

        Without ``success``, whether a configuration fails or is past a bound is not modelled.

        Raises ``numpy.linalg.LinAlgError`` where rounding defeats the process.
        """
        self.features = features
        self._problem = problem
        self.pool = pool
        judged = first if success else []
        self._feasibility = Feasibility(features, pool, as_run(problem, judged), problem.memory)
        self._bounds = Bounds(problem, features, pool, judged)
        self._heard = len(first)
        """How many observations these two have learned from."""
        history = History.of(problem, first, past_bounds=True)
        fit = _fitted(history, features, self._at_a_limit)
        self.lawful = fit.lawful
        """Whether the goal follows a law, so that what can be gained is known."""
        self._first = len(history)
        self._rows, self._inputs = fit.rows, fit.inputs
        self._posterior = Posterior(fit.process, fit.inputs, fit.known)
        self._later = 0
        """How many rows came since the fit; they are the last ones."""
        self._expected = np.zeros(0)
        """What is expected beforehand of the columns that are watched."""

    def learn(self, history: History, targets: Targets, shares: Floats | None = None) -> None:
        """Condition on the configurations of ``history`` that came since; ``targets`` are of all its rows.

        Where nothing is known, the mean of the rows is expected, weighted by their ``shares``.
        """
        self._condition(history, targets)
        since = history.told[self._heard :]
        self._feasibility.learn(as_run(self._problem, since))
        self._bounds.learn(since)
        self._heard += len(since)
        told = targets.uncut if self.lawful else targets.values
        values = told[self._rows] - _centred(self._inputs.expected)
        middle = (
            0.0 if shares is None else float(np.average(values, weights=shares[self._rows]) - values.mean())
        )
        self._values = values[:, None] - middle
        self._shift = float(self._inputs.expected.mean()) - middle

    def _condition(self, history: History, targets: Targets) -> None:
        """Take in all rows since the fit anew, which are few.

        How sure a row is changes as others are told. If each were kept as it was when it came, a resumed
        search, which is told everything at once, would predict something else.
        """
        rows = targets.instructive[targets.instructive >= self._first]
        inputs = self.features.of([history.configurations[i] for i in rows])
        self._posterior.drop(self._later)
        if len(rows):
            self._posterior.add(inputs, targets.known[rows])
        before = len(self._rows) - self._later
        self._rows = np.concatenate([self._rows[:before], rows])
        self._inputs = self._inputs.taken(np.arange(before)).joined(inputs)
        self._later = len(rows)

    def predict(
        self, columns: Integers, pending: Sequence[Configuration], leader: Leader | None = None
    ) -> Prediction:
        """What is expected at these columns of the pool, followed by its fresh candidates.

        What is ``pending`` is assumed to end as predicted (kriging believer; Ginsbourger et al., 2010), so
        that proposals keep apart.
        """
        if len(self._expected) < len(self.pool):
            new = self.pool.inputs(len(self._expected))
            self._posterior.watch(new)
            self._expected = np.concatenate([self._expected, new.expected])
        values = self._values
        if pending:
            flying = self.features.of(list(pending))
            believed, _ = self._posterior.predict_at(values, flying)
            self._posterior.add(flying)
            values = np.vstack([values, believed])
        try:
            fresh = self._posterior.at(self.pool.fresh.inputs) if self.pool.fresh else None
            mean, spread = self._predicted(values, columns, fresh)
            apart = self._apart(leader, values, columns, fresh, spread) if leader else spread
        finally:
            self._posterior.drop(len(pending))
        log_success, log_room = self._feasibility.log_success(columns)
        log_success += self._bounds.log_probability(columns)
        return Prediction(mean, spread, apart, log_success, log_room)

    def leader(self, history: History, targets: Targets) -> Leader:
        """Of the successes with the best readings, the one with the lowest expected noiseless target."""
        rows = self.leading(targets)
        inputs = self.features.of([history.configurations[i] for i in rows])
        expected = self.expected(inputs)
        first = int(expected.argmin())
        return Leader(float(expected[first]), inputs.taken(np.array([first])))

    def leading(self, targets: Targets) -> list[int]:
        """The rows that succeeded and have the best readings."""
        return [int(i) for i in targets.best_first[:LEADERS] if not targets.failed[i]]

    def expected(self, inputs: Inputs) -> Floats:
        """The noiseless target at any ``inputs``; shape (n,)."""
        mean, _ = self._posterior.predict_at(self._values, inputs)
        return np.asarray(mean[:, 0] + inputs.expected - self._shift)

    def success_at(self, inputs: Inputs) -> Floats:
        """The probability that nothing fails, and that all bounds hold, at any ``inputs``."""
        return self._feasibility.success_at(inputs) * np.exp(self._bounds.log_probability_at(inputs))

    @property
    def foresees_memory(self) -> bool:
        """Whether there is a limit to memory, and successes tell how much they used."""
        return self._feasibility.measured

    @property
    def knows_cap(self) -> bool:
        """Whether that limit was known beforehand."""
        return self._feasibility.knows_cap

    @property
    def bounded(self) -> bool:
        """Whether there is a bound of a metric that was measured often enough for a model."""
        return self._bounds.modelled

    @property
    def _at_a_limit(self) -> bool:
        """Whether there is a single goal, and a limit of something measured may stand in its way."""
        return len(self._problem.goals) == 1 and (self.bounded or self.foresees_memory)

    def _predicted(self, values: Floats, columns: Integers, fresh: Points | None) -> tuple[Floats, Floats]:
        mean, spread = self._posterior.predict(values, columns)
        mean = mean[:, 0] + self._expected[columns] - self._shift
        if fresh is None:
            return mean, spread
        there, doubt = self._posterior.moments(values, fresh)
        there = there[:, 0] + self.pool.fresh.inputs.expected - self._shift
        return np.concatenate([mean, there]), np.concatenate([spread, doubt])

    def _apart(
        self, leader: Leader, values: Floats, columns: Integers, fresh: Points | None, spread: Floats
    ) -> Floats:
        best = self._posterior.at(leader.inputs)
        _, own = self._posterior.moments(values, best)
        shared = self._posterior.shared(best, columns)
        if fresh is not None:
            shared = np.concatenate([shared, self._posterior.shared_at(best, fresh)])
        return np.sqrt(np.maximum(spread**2 + own**2 - 2.0 * shared, TINY))


def _centred(expected: Floats) -> Floats:
    return np.asarray(expected - expected.mean())
