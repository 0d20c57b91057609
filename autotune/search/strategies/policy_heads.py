"""Distributions over a knob's values, with the gradient of their log-probability: the parts of a policy.

Each head holds no state: its parameters come in as a vector. A value is a row of numbers, as
:meth:`Head.row` makes it; rows of many values are a matrix (n, width).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from autotune.search.candidates.assemble import at
from autotune.search.models.arrays import Floats, Integers
from autotune.space.configuration import Value
from autotune.space.knobs.knob import Knob

WIDE = 64
"""An ordered knob with more values is drawn by its position, like a continuous one, not value by value."""
SHARED = 2.0
"""A weight that all decisions share is learned so many times faster, in all, than that of one decision."""
NARROWEST = 0.02
"""The smallest standard deviation of a position: with a smaller one a policy would only repeat itself."""


class Head(ABC):
    """How one knob is drawn."""

    def __init__(self, knob: Knob) -> None:
        self.knob = knob

    @property
    @abstractmethod
    def start(self) -> Floats:
        """The parameters of a policy that knows nothing: it is about uniform."""

    @property
    def pace(self) -> Floats:
        """The relative step size of each parameter: smaller for those that more decisions depend on."""
        return np.ones(len(self.start))

    @abstractmethod
    def row(self, value: Value) -> Floats:
        """``value`` as numbers."""

    @abstractmethod
    def draw(self, theta: Floats, rng: np.random.Generator, n: int) -> list[Value]:
        """``n`` values, independent of one another."""

    @abstractmethod
    def log_probability(self, theta: Floats, rows: Floats) -> Floats:
        """The log-probability of each row, shape (n,); a log-density where values are drawn by position."""

    @abstractmethod
    def gradient(self, theta: Floats, rows: Floats, weights: Floats, bonus: float) -> Floats:
        """The gradient of ``weights @ log_probability(rows) + bonus * mean entropy`` in ``theta``.

        The entropy is that of each decision given the decisions before it, averaged over ``rows``.
        """


def head_of(knob: Knob) -> Head:
    """The head for a knob's kind."""
    if knob.distinct:
        return Order(knob)
    if not knob.cells or (knob.ordered and len(knob.cells[0].values) > WIDE):
        return Position(knob)
    return Places(knob)


class Places(Head):
    """One choice of the same options for each cell: a choice, a list of values, an assignment.

    Autoregressive in the order of the items: each item has a weight of its own for each option, and there is
    a weight for each option given the option of the item before. The latter are shared by all items, so that
    a few dozen trials are enough to learn that neighbours belong together.
    """

    def __init__(self, knob: Knob) -> None:
        super().__init__(knob)
        self.items, self.options = len(knob.cells), len(knob.cells[0].values)
        self.chained = self.items > 1

    @property
    def start(self) -> Floats:
        return np.zeros((self.items + self.chained * self.options) * self.options)

    @property
    def pace(self) -> Floats:
        own = np.ones(self.items * self.options)
        return np.append(own, np.full(len(self.start) - len(own), SHARED / max(self.items - 1, 1)))

    def row(self, value: Value) -> Floats:
        return np.array(self.knob.split(value), dtype=float)

    def draw(self, theta: Floats, rng: np.random.Generator, n: int) -> list[Value]:
        own, chain = self._weights(theta)
        places = np.zeros((n, self.items), dtype=np.int64)
        for item in range(self.items):
            logits = np.tile(own[item], (n, 1))
            if item:
                logits += chain[places[:, item - 1]]
            places[:, item] = _drawn(logits, rng)
        return [self.knob.join(row) for row in places.tolist()]

    def gradient(self, theta: Floats, rows: Floats, weights: Floats, bonus: float) -> Floats:
        places = rows.astype(np.int64)
        slope = _slope(self._logits(theta, places), places, weights, bonus)
        found = [slope.sum(axis=0).ravel()]
        if self.chained:
            before = np.zeros((self.options, self.options))
            np.add.at(before, places[:, :-1].ravel(), slope[:, 1:].reshape(-1, self.options))
            found.append(before.ravel())
        return np.concatenate(found)

    def log_probability(self, theta: Floats, rows: Floats) -> Floats:
        places = rows.astype(np.int64)
        return _log_chances(self._logits(theta, places), places)

    def _logits(self, theta: Floats, places: Integers) -> Floats:
        """The logits of each decision of each row: (n, items, options)."""
        own, chain = self._weights(theta)
        logits = np.tile(own, (len(places), 1, 1))
        logits[:, 1:] += chain[places[:, :-1]]
        return logits

    def _weights(self, theta: Floats) -> tuple[Floats, Floats]:
        """The weights of each item (items, options), and those given the option before (options, options)."""
        size = self.items * self.options
        chain = theta[size:] if self.chained else np.zeros(self.options * self.options)
        return theta[:size].reshape(self.items, self.options), chain.reshape(self.options, self.options)


class Order(Head):
    """The Plackett-Luce distribution over orders (Plackett, Applied Statistics 24, 1975).

    Each item has a weight; the next position goes to one of the items left in proportion to the
    exponential of its weight.
    """

    @property
    def pace(self) -> Floats:
        return np.full(len(self.start), min(1.0, SHARED / len(self.start)))

    @property
    def start(self) -> Floats:
        return np.zeros(len(self.knob.cells))

    def row(self, value: Value) -> Floats:
        return np.array(self.knob.split(value), dtype=float)

    def draw(self, theta: Floats, rng: np.random.Generator, n: int) -> list[Value]:
        # Sorting by weight plus Gumbel noise draws from it (Yellott, J. Math. Psychology 15, 1977).
        noisy = theta + rng.gumbel(size=(n, len(theta)))
        return [self.knob.join(row) for row in np.argsort(-noisy, axis=1).tolist()]

    def gradient(self, theta: Floats, rows: Floats, weights: Floats, bonus: float) -> Floats:
        order = rows.astype(np.int64)
        return np.asarray(_slope(self._logits(theta, order), order, weights, bonus).sum(axis=(0, 1)))

    def log_probability(self, theta: Floats, rows: Floats) -> Floats:
        order = rows.astype(np.int64)
        return _log_chances(self._logits(theta, order), order)

    @staticmethod
    def _logits(theta: Floats, order: Integers) -> Floats:
        """The logits of each decision of each row (n, positions, items); minus infinity for items placed
        before."""
        place = np.argsort(order, axis=1)
        left = place[:, None, :] >= np.arange(len(theta))[None, :, None]
        return np.where(left, theta, -np.inf)


class Position(Head):
    """A normal distribution of the position in a range, cut at its ends (Williams 1992, section 6).

    Parameters: the mean as a logit, and the logarithm of the standard deviation.
    """

    @property
    def start(self) -> Floats:
        return np.array([0.0, np.log(0.4)])

    def row(self, value: Value) -> Floats:
        return np.array([self.knob.position(value)])

    def draw(self, theta: Floats, rng: np.random.Generator, n: int) -> list[Value]:
        middle, spread = self._shape(theta)
        positions = np.clip(middle + spread * rng.standard_normal(n), 0.0, 1.0).tolist()
        return [at(self.knob, position) for position in positions]

    def gradient(self, theta: Floats, rows: Floats, weights: Floats, bonus: float) -> Floats:
        middle, spread = self._shape(theta)
        gap = (rows[:, 0] - middle) / spread
        mean = weights @ gap / spread * middle * (1.0 - middle)
        return np.array([mean, weights @ (gap**2 - 1.0) + bonus])

    def log_probability(self, theta: Floats, rows: Floats) -> Floats:
        middle, spread = self._shape(theta)
        gap = (rows[:, 0] - middle) / spread
        return np.asarray(-0.5 * gap**2 - np.log(spread) - 0.5 * np.log(2.0 * np.pi))

    @staticmethod
    def _shape(theta: Floats) -> tuple[float, float]:
        return float(1.0 / (1.0 + np.exp(-theta[0]))), max(float(np.exp(theta[1])), NARROWEST)


def _softmax(logits: Floats) -> Floats:
    """Over the last axis; minus infinity is what cannot be chosen."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def _log_chances(logits: Floats, chosen: Integers) -> Floats:
    """The log-probability of what was ``chosen`` (n, decisions), all decisions together."""
    chances = np.take_along_axis(_softmax(logits), chosen[:, :, None], 2)
    return np.asarray(np.log(chances).sum(axis=(1, 2)))


def _drawn(logits: Floats, rng: np.random.Generator) -> Integers:
    """One option for each row of ``logits`` (n, options), by the Gumbel trick."""
    return np.asarray(np.argmax(logits + rng.gumbel(size=logits.shape), axis=1))


def _slope(logits: Floats, chosen: Integers, weights: Floats, bonus: float) -> Floats:
    """The gradient in the logits (n, decisions, options).

    The caller adds up the parts of logits that share a parameter.
    """
    chances = _softmax(logits)
    slope = -chances
    np.put_along_axis(slope, chosen[:, :, None], 1.0 + np.take_along_axis(slope, chosen[:, :, None], 2), 2)
    slope *= weights[:, None, None]
    with np.errstate(divide="ignore"):
        surprise = np.where(chances > 0.0, -np.log(chances), 0.0)
    entropy = (chances * surprise).sum(axis=2, keepdims=True)
    return np.asarray(slope + bonus / len(logits) * chances * (surprise - entropy))
