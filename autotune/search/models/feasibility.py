"""The probability that a configuration does not fail, learned from those that did.

For each cause of failure a configuration has a *demand*, and there is a limit to it. The demand is modelled
by a Gaussian process: a success says that it is below the limit, a failure that it is above
(:mod:`~autotune.search.models.censored`). Where memory was measured, that is the demand: then the successes
say how it grows, and a few failures place the limit. Demands are mostly made of sizes, so that their
logarithm is expected to follow a linear trend (:mod:`~autotune.search.models.trend`), and what is left to
have long length scales.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from autotune.search.candidates.pool import Pool
from autotune.search.contract import Observation
from autotune.search.models.arrays import Floats, Integers
from autotune.search.models.censored import CensoredProcess, Known
from autotune.search.models.demand import Fitted, Scale, likelier
from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import GaussianProcess, Inputs, Prior
from autotune.search.models.rules import Rules
from autotune.search.models.thinning import thinned
from autotune.search.models.trend import OF_SIZES, Trend
from autotune.status import Status

DEMAND = Prior(smooth_weight=0.1, code_weight=0.2, smooth_variance=2.0, code_variance=0.05, noise=1e-3)
"""For the logarithm of a demand, beside its trend: bends over the whole range, and hardly any noise."""
MEMORY = "memory"
"""The resource that a trial with the status :attr:`~autotune.status.Status.OUT_OF_MEMORY` has run out of."""
BEYOND = 0.5
"""The probability that there is more memory than the most that a trial which ran out of it had; its square if
there were two such trials, and so on. A trial killed at a cap had all of it; one that was refused a large
block had less."""
CERTAIN = 20
"""A cap that is known beforehand counts as so many trials that ran out of memory at it."""
HALF = 0.5
"""A trial that ran out with less than this part of the cap ran out of something else, such as the device's
memory."""
MEASURED = 3
"""Memory is learned as a number once it is known of so many successes."""
ALIKE_MEMORY = 1.1
"""If no trial, failed ones included, had so many times the memory of another, they ran out of something else:
of a GPU's memory, where the host's was measured."""
ALIKE = 3
"""So many failures of one status have a model of their own; those of rarer ones share one."""
MISSED = 0.5
"""A model of memory is not believed if, by it, more than this part of those that ran out should succeed."""
FACTORS = 3
"""Where memory is a sum, its summands are products of so many knobs at most: the batch of a training times
what is kept of a sample times the width of a number."""
REACH = 2.0
"""How far a limit may be above what is known to fit: the logarithm of a factor, about seven."""
NODES = 24
"""The distribution of an unknown limit is evaluated at so many places."""
TINY = 1e-9
"""The least probability."""
LOG_TINY = math.log(TINY)


class Cause(ABC):
    """What one kind of failure depends on: a process over the logarithm of the demand."""

    measured: ClassVar[bool] = False
    """Whether successes say how much they demanded, so that the limit can be foreseen."""

    def __init__(
        self, features: Features, statuses: frozenset[Status], observations: Sequence[Observation]
    ) -> None:
        """Learn from those of ``observations`` that concern the cause.

        Raises ``numpy.linalg.LinAlgError`` where rounding defeats the process.
        """
        self.statuses = statuses
        self.features = features
        rows = thinned([o for o in observations if self.concerns(o)])
        process = self.model(rows)
        expected = process.trend.expected if isinstance(process.trend, Trend) else None
        self.process = CensoredProcess(process, self._inputs(rows), self.known(rows), expected)

    def concerns(self, observation: Observation) -> bool:
        """Whether the observation says anything about this cause: a failure of another kind does not."""
        return not observation.status.failed or observation.status in self.statuses

    def learn(self, observation: Observation) -> None:
        """Learn from one observation more."""
        if self.concerns(observation):
            self.process.add(self._inputs([observation]), self.known([observation]))

    @abstractmethod
    def model(self, observations: Sequence[Observation]) -> GaussianProcess:
        """A process over the demand, on a scale that is chosen here."""

    @abstractmethod
    def known(self, observations: Sequence[Observation]) -> Known:
        """What each of them says of its demand."""

    @abstractmethod
    def log_success(self, demand: Floats, spread: Floats) -> Floats:
        """The logarithm of the probability that demands with these means and spreads are within the limit."""

    def _powers(self) -> GaussianProcess:
        """A process over the logarithm of the demand."""
        # Other failures have no reason as simple: on recorded kernels a trend did not help to predict them.
        trend = Trend(self.features, OF_SIZES) if self.statuses == {Status.OUT_OF_MEMORY} else None
        # A learning rate fails at both ends of its range, so that bends are expected; memory only grows.
        prior = replace(DEMAND, wide=trend is None)
        return GaussianProcess(self.features.columns, prior, trend)

    def _inputs(self, observations: Sequence[Observation]) -> Inputs:
        return self.features.of([o.configuration for o in observations])


class Hidden(Cause):
    """A cause of which nothing is measured. The demand has no unit then, and the limit is chosen here."""

    def model(self, observations: Sequence[Observation]) -> GaussianProcess:
        process = self._powers()
        prior = process.variances(process.view(self._inputs(observations)))
        failures = sum(o.status.failed for o in observations)
        share = (failures + 1.0) / (len(observations) + 2.0)
        self._limit = -math.sqrt(float(prior.mean())) * float(ndtri(share))
        return process

    def known(self, observations: Sequence[Observation]) -> Known:
        sides = [1 if o.status.failed else -1 for o in observations]
        return Known(np.full(len(sides), self._limit), np.array(sides))

    def log_success(self, demand: Floats, spread: Floats) -> Floats:
        return np.asarray(log_ndtr((self._limit - demand) / spread))


class Memory(Cause):
    """Memory that ran out, where successes say how much they used.

    Its logarithm is modelled, since it is made of factors, or the plain number where it is a sum. A trial
    that ran out is censored: it needed more than any trial is known to have had. The limit is between that
    and the smallest demand of the failures; how probable each place is follows from what the successes say of
    those demands. If the trial that had the most ran out, that was probably all there is (:data:`BEYOND`). A
    ``cap`` that is known beforehand counts as many trials that ran out at it.
    """

    measured: ClassVar[bool] = True

    def __init__(self, features: Features, observations: Sequence[Observation], cap: float | None) -> None:
        self._cap = cap
        super().__init__(features, frozenset([Status.OUT_OF_MEMORY]), observations)

    @classmethod
    def is_measured(cls, observations: Sequence[Observation], cap: float | None) -> bool:
        """Whether enough successes, not all alike, say what they used; one is enough with a ``cap``."""
        used = {_used(o) for o in observations if not o.status.failed} - {0.0}
        if cap is not None or not used:
            return bool(used)
        ran_out = max((_used(o) for o in observations if o.status is Status.OUT_OF_MEMORY), default=0.0)
        if max(ran_out, *used) < ALIKE_MEMORY * min(used):
            return False
        return len(used) >= MEASURED or ran_out > max(used)

    def concerns(self, observation: Observation) -> bool:
        ran_out = observation.status in self.statuses
        return ran_out or (not observation.status.failed and _used(observation) > 0.0)

    def model(self, observations: Sequence[Observation]) -> GaussianProcess:
        self._had, self._stopped = (0.0, 0) if self._cap is None else (self._cap, CERTAIN)
        self._hear(observations)
        known = [o for o in observations if not o.status.failed]
        used, inputs = np.array([_used(o) for o in known]), self._inputs(known)
        powers, ahead = self._powers(), Trend(self.features, OF_SIZES).expected(inputs)
        scale = Scale(True, float((np.log(used) - ahead).mean()))
        found = Fitted(powers, scale, inputs, used, ahead)
        if self.limit_known:
            # While the limit itself is a guess, knowing the demand better does not help.
            plain = Scale(False, float(used.mean()), float(used.std()) or 1.0)
            # A knob that had the same value in everything that fitted may be what makes others fail.
            unseen = max(1.0, float(plain(self._had)))
            found = likelier(found, self.features, plain, unseen, FACTORS)
        self._scale = found.scale
        found.process.forget()
        return found.process

    def known(self, observations: Sequence[Observation]) -> Known:
        failed = np.array([o.status.failed for o in observations])
        numbers = self._scale([self._had if o.status.failed else _used(o) for o in observations])
        return Known(numbers, failed.astype(int))

    @property
    def knows_cap(self) -> bool:
        """Whether the limit was known before any trial."""
        return self._cap is not None

    @property
    def limit_known(self) -> bool:
        """Whether the limit is known: as a cap, or since the trial that had the most ran out."""
        return self._stopped > 0

    def contradicted(self, observations: Sequence[Observation]) -> bool:
        """Whether it expects most of those that ran out to succeed, though it has learned from them.

        Where only some values of a knob leak memory, what the successes use says nothing about the others.
        """
        ran_out = [o for o in observations if o.status in self.statuses]
        if not ran_out:
            return False
        expected = self.log_success(*self.process.predict_at(self._inputs(ran_out)))
        return float(np.exp(expected).mean()) > MISSED

    def learn(self, observation: Observation) -> None:
        if self.concerns(observation):
            self._hear([observation])
        super().learn(observation)

    def log_success(self, demand: Floats, spread: Floats) -> Floats:
        ran_out = self.process.known.sides > 0
        others, doubt = self.process.from_others()
        limits = self._scale(self._had * np.exp(np.linspace(0.0, REACH, NODES)))
        short = (others[ran_out, None] - limits) / doubt[ran_out, None]
        weights = log_ndtr(short).sum(axis=0)
        weights = np.exp(weights - weights.max())
        if self.limit_known:
            beyond = BEYOND**self._stopped
            weights[1:] *= beyond / (1.0 - beyond) / (NODES - 1)
        within = ndtr((limits - demand[:, None]) / spread[:, None])
        return np.asarray(np.log(np.maximum(within @ (weights / weights.sum()), TINY)))

    def _hear(self, observations: Sequence[Observation]) -> None:
        """Note the most memory that any of them had, in bytes, and how many of those ran out."""
        for observation in observations:
            used = _used(observation)
            if used > self._had:
                self._had, self._stopped = used, 0
            self._stopped += observation.status.failed and used == self._had


class Feasibility:
    """The probability of success over a pool, as it follows from the first trials and all since."""

    def __init__(
        self, features: Features, pool: Pool, first: Sequence[Observation], cap: float | None = None
    ) -> None:
        """Learn from the observations ``first``. ``cap``: that of memory in bytes, where it is known.

        A cause that none of them shows is never modelled here, but by the next object of this class. Raises
        ``numpy.linalg.LinAlgError`` where rounding defeats a process.
        """
        self._pool = pool
        self._rules = Rules(features, first)
        self._log_kept = np.zeros(0)
        """For the columns that are watched, the logarithm of the probability that they keep all rules."""
        first = [o for o in first if not self._rules.explains(o)]
        self._causes = list(_causes(features, first, cap))
        self._watched = 0

    @property
    def measured(self) -> bool:
        """Whether a cause is modelled of which successes say how much they used."""
        return any(cause.measured for cause in self._causes)

    @property
    def knows_cap(self) -> bool:
        """Whether the cap of memory was known beforehand, and may be what trials run out of."""
        return any(isinstance(cause, Memory) and cause.knows_cap for cause in self._causes)

    def learn(self, new: Sequence[Observation]) -> None:
        """Learn the observations that came since."""
        for observation in new:
            if self._rules.learn(observation):
                self._log_kept = np.zeros(0)
            if self._rules.explains(observation):
                continue
            for cause in self._causes:
                cause.learn(observation)

    def log_success(self, columns: Integers) -> tuple[Floats, Floats]:
        """Logarithms of probabilities at columns of the pool, followed by its fresh candidates.

        First the probability of success; second the part of it that nothing measured runs out.
        """
        total = np.zeros(len(columns) + len(self._pool.fresh))
        measured = np.zeros(len(total))
        if self._causes and self._watched < len(self._pool):
            new = self._pool.inputs(self._watched)
            for cause in self._causes:
                cause.process.watch(new)
            self._watched = len(self._pool)
        fresh = self._pool.fresh.inputs if self._pool.fresh and self._causes else None
        for cause in self._causes:
            found = cause.log_success(*cause.process.predict(columns))
            if fresh is not None:
                there = cause.log_success(*cause.process.predict_at(fresh))
                found = np.concatenate([found, there])
            total += found
            if cause.measured:
                measured += found
        if self._rules:
            total += self._rules_at(columns)
        return np.maximum(total, LOG_TINY), np.maximum(measured, LOG_TINY)

    def _rules_at(self, columns: Integers) -> Floats:
        """The logarithm of the probability that rules are kept, as :meth:`log_success` has its rows."""
        if len(self._log_kept) < len(self._pool):
            new = self._rules.log_kept(self._pool.inputs(len(self._log_kept)).codes)
            self._log_kept = np.concatenate([self._log_kept, new])
        there = self._log_kept[columns]
        if not self._pool.fresh:
            return there
        return np.concatenate([there, self._rules.log_kept(self._pool.fresh.inputs.codes)])

    def success_at(self, inputs: Inputs) -> Floats:
        """The probability at any ``inputs``."""
        total = np.zeros(len(inputs))
        for cause in self._causes:
            total += cause.log_success(*cause.process.predict_at(inputs))
        if self._rules:
            total += self._rules.log_kept(inputs.codes)
        return np.maximum(np.exp(total), TINY)


def _causes(features: Features, observations: Sequence[Observation], cap: float | None) -> Iterator[Cause]:
    """The kinds of failure to tell apart: those seen often enough, and all others together."""
    counts = Counter(o.status for o in observations if o.status.failed)
    cap = cap if cap is not None and _holds(cap, observations) else None
    if (cap is not None or counts[Status.OUT_OF_MEMORY]) and Memory.is_measured(observations, cap):
        memory = Memory(features, observations, cap)
        if not memory.contradicted(observations):
            yield memory
            del counts[Status.OUT_OF_MEMORY]
    often = [status for status, count in counts.items() if count >= ALIKE]
    for status in sorted(often):
        yield Hidden(features, frozenset([status]), observations)
    rest = frozenset(counts) - frozenset(often)
    if any(counts[status] for status in rest):
        yield Hidden(features, rest, observations)


def _holds(cap: float, observations: Sequence[Observation]) -> bool:
    """Whether ``cap`` may be the limit: no trial had more, and those that ran out had at least half of it."""
    ran_out = [_used(o) for o in observations if o.status is Status.OUT_OF_MEMORY]
    return all(_used(o) <= cap for o in observations) and all(used > HALF * cap for used in ran_out if used)


def _used(observation: Observation) -> float:
    """How much memory the trial is known to have had, in bytes; 0 where nothing is known."""
    used = float(observation.resources.get(MEMORY, 0.0))
    return used if math.isfinite(used) and used > 0.0 else 0.0
