"""The probability that the bounds of metrics hold: ``error: {at_most: 1e-5}``.

A bounded metric is measured whether its bound holds or not, and the bound is known. So it is the plain case
of a constraint (Schonlau, Welch and Jones, 1998; Gardner et al., ICML 2014): a Gaussian process over the
metric, and the probability that it is on the right side of a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from scipy.special import log_ndtr

from autotune.search.candidates.pool import Pool
from autotune.search.contract import Observation, Problem
from autotune.search.models.arrays import Floats, Integers
from autotune.search.models.demand import Fitted, Scale, likelier
from autotune.search.models.features import Features
from autotune.search.models.fidelity import HUGE
from autotune.search.models.gaussian_process import GaussianProcess, Inputs, Prior
from autotune.search.models.posterior import Posterior
from autotune.space.spec import MetricSpec
from autotune.status import Status

FEWEST = 2
"""How many different values of a metric it takes for a model."""
MOST = 200
"""A model is fitted to at most so many trials, spread evenly over all."""
FAR = 3.0
"""Values beyond a bound are cut at so many times the distance of the farthest value inside it, or the median
distance of all values if that is more: where few are inside, those outside show where more may be."""
LEAST = -1e100
"""The smallest logarithm of a probability. So small that there is still an order among the hopeless."""


def is_bounded(metric: MetricSpec) -> bool:
    return metric.at_most is not None or metric.at_least is not None


def past_bound(problem: Problem, observation: Observation) -> bool:
    """Whether the trial failed because a metric was measured past its bound."""
    return observation.status is Status.WRONG and any(
        _excess(metric, value) > 0.0
        for metric in problem.metrics
        if is_bounded(metric) and (value := _value(observation, metric.name)) is not None
    )


def as_run(problem: Problem, observations: Sequence[Observation]) -> list[Observation]:
    """The observations as a model of failures learns them: a trial past a bound counts as a success.

    It ran, after all. That it is past the bound is for the model of the bounds to learn.
    """
    return [replace(o, status=Status.OK) if past_bound(problem, o) else o for o in observations]


class Bounds:
    """The bounds of all metrics over a pool, as they follow from the first trials and all since."""

    def __init__(
        self, problem: Problem, features: Features, pool: Pool, first: Sequence[Observation]
    ) -> None:
        """Learn from the observations ``first``.

        A metric with fewer than :data:`FEWEST` different values is taken to be within its bounds. Raises
        ``numpy.linalg.LinAlgError`` where rounding defeats a process.
        """
        self._pool = pool
        self._watched = 0
        self._metrics = []
        for metric in filter(is_bounded, problem.metrics):
            known = _known(metric, first)
            if len({_value(o, metric.name) for o in known}) >= FEWEST:
                self._metrics.append(_Bounded(metric, features, known))

    @property
    def modelled(self) -> bool:
        """Whether any metric has a model."""
        return bool(self._metrics)

    def learn(self, new: Sequence[Observation]) -> None:
        """Learn the observations that came since."""
        for metric in self._metrics:
            metric.learn(new)

    @contextmanager
    def supposing(self, inputs: Inputs) -> Iterator[None]:
        """Inside the block it is as if what is predicted at ``inputs`` had been measured there."""
        for metric in self._metrics:
            metric.suppose(inputs)
        try:
            yield
        finally:
            for metric in self._metrics:
                metric.drop(len(inputs))

    def log_probability(self, columns: Integers) -> Floats:
        """That all bounds hold, at columns of the pool, followed by its fresh candidates."""
        total = np.zeros(len(columns) + len(self._pool.fresh))
        if not self._metrics:
            return total
        if self._watched < len(self._pool):
            new = self._pool.inputs(self._watched)
            for metric in self._metrics:
                metric.posterior.watch(new)
            self._watched = len(self._pool)
        for metric in self._metrics:
            total[: len(columns)] += metric.log_probability(columns)
        if self._pool.fresh:
            total[len(columns) :] = self.log_probability_at(self._pool.fresh.inputs)
        return total

    def log_probability_at(self, inputs: Inputs) -> Floats:
        """The same at any ``inputs``."""
        total = np.zeros(len(inputs))
        for metric in self._metrics:
            total += metric.log_probability_at(inputs)
        return total


class _Bounded:
    """A process over one metric: over its logarithm where it is positive, as errors and sizes are.

    Or over the plain value, as a sum, where that predicts it better (:mod:`~autotune.search.models.demand`).
    """

    def __init__(self, metric: MetricSpec, features: Features, first: Sequence[Observation]) -> None:
        self.metric = metric
        self._features = features
        if len(first) > MOST:
            first = [first[i] for i in np.linspace(0, len(first) - 1, MOST).astype(int)]
        values = self._values(first)
        inputs = features.of([o.configuration for o in first])
        fitted = self._fitted(values, inputs)
        self._scale, self._process = fitted.scale, fitted.process
        self._targets = self._scale(values)
        self.posterior = Posterior(self._process, inputs)

    def learn(self, observations: Sequence[Observation]) -> None:
        known = _known(self.metric, observations)
        if not known:
            return
        values = self._values(known)
        inputs = self._features.of([o.configuration for o in known])
        self.posterior.add(inputs)
        self._targets = np.concatenate([self._targets, self._scale(values)])

    def suppose(self, inputs: Inputs) -> None:
        """Take what is predicted at ``inputs`` as measured, until it is dropped."""
        believed, _ = self.posterior.predict_at(self._targets[:, None], inputs)
        self.posterior.add(inputs)
        self._targets = np.concatenate([self._targets, believed[:, 0]])

    def drop(self, count: int) -> None:
        """Forget the last ``count`` values."""
        self.posterior.drop(count)
        self._targets = self._targets[: len(self._targets) - count]

    def _values(self, observations: Sequence[Observation]) -> Floats:
        """What was measured in each; numbers whose squares overflow are cut."""
        found = np.array([_value(o, self.metric.name) for o in observations], dtype=float)
        return np.asarray(np.clip(found, -HUGE, HUGE))

    def log_probability(self, columns: Integers) -> Floats:
        return self._within(*self.posterior.predict(self._targets[:, None], columns))

    def log_probability_at(self, inputs: Inputs) -> Floats:
        return self._within(*self.posterior.predict_at(self._targets[:, None], inputs))

    def _within(self, mean: Floats, spread: Floats) -> Floats:
        spread = np.sqrt(np.square(spread) + self._process.noise)
        high, low = self.metric.at_most, self.metric.at_least
        below = np.full(len(spread), np.inf) if high is None else (self._scale(high) - mean[:, 0]) / spread
        under = np.full(len(spread), -np.inf) if low is None else (self._scale(low) - mean[:, 0]) / spread
        return np.maximum(log_between(under, below), LEAST)

    def _fitted(self, values: Floats, inputs: Inputs) -> Fitted:
        """The model under which the values are more probable; the usual one if both are equal."""
        limits = [limit for limit in (self.metric.at_most, self.metric.at_least) if limit is not None]
        # A bound may hold in a thin slice of a range only.
        usual = GaussianProcess(self._features.columns, Prior(wide=True))
        scale = self._scale_of(values, min(float(values.min()), *limits))
        plain = self._scale_of(values, -math.inf)
        return likelier(Fitted(usual, scale, inputs, values), self._features, plain)

    def _scale_of(self, values: Floats, least: float) -> Scale:
        """Of logarithms where even the ``least`` is positive, else of plain values."""
        raw = Scale(least > 0.0, least=least)
        low, high = self._between(raw, values)
        cut = np.clip(raw.raw(values), low, high)
        return replace(raw, centre=float(cut.mean()), divisor=float(cut.std()) or 1.0, low=low, high=high)

    def _between(self, scale: Scale, values: Floats) -> tuple[float, float]:
        """Where values are cut, so that one absurd error does not flatten the others.

        Nowhere, while none is inside the bounds.
        """
        low = -math.inf if self.metric.at_least is None else float(scale.raw(self.metric.at_least))
        high = math.inf if self.metric.at_most is None else float(scale.raw(self.metric.at_most))
        raw = scale.raw(values)
        inside = raw[(raw >= low) & (raw <= high)]
        ends = [end for end in (low, high) if math.isfinite(end)]
        reach = FAR * max(
            (
                max(float(np.abs(inside - end).max()), float(np.median(np.abs(raw - end))))
                for end in ends
                if inside.size
            ),
            default=math.inf,
        )
        return (low - reach, high + reach) if reach > 0.0 else (-math.inf, math.inf)


def log_between(low: Floats, high: Floats) -> Floats:
    """The logarithm of the probability that a standard normal number is between them, however far out."""
    mirrored = low > 0.0  # where the probabilities of being below are nearly 1, those of being above are used
    low, high = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    below, under = log_ndtr(high), log_ndtr(low)
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.log1p(-np.exp(np.minimum(under - below, 0.0)))
    return np.asarray(np.where(np.isneginf(under), below, below + part))


def _known(metric: MetricSpec, observations: Sequence[Observation]) -> list[Observation]:
    return [o for o in observations if _value(o, metric.name) is not None]


def _value(observation: Observation, name: str) -> float | None:
    """A bounded metric as a trial that was not stopped measured it, whether its bound held or not."""
    if observation.fraction < 1.0:
        return None
    value = observation.metrics.get(name, observation.bounded.get(name))
    return value if value is not None and math.isfinite(value) else None


def _excess(metric: MetricSpec, value: float) -> float:
    over = -math.inf if metric.at_most is None else value - metric.at_most
    under = -math.inf if metric.at_least is None else metric.at_least - value
    return max(over, under)
