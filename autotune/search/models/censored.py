"""A Gaussian process that is told numbers, or only that a number is past a threshold.

A configuration that ran out of memory needed more than there is, though nobody knows how much; one that fails
for a hidden reason is past a limit whose scale nobody knows, and one that succeeds is below it. The
likelihood of such a trial is a step, not a normal distribution. Expectation propagation replaces each step by
the normal observation (a *site*) that has the same effect on mean and variance, given all the others (Minka,
2001; Rasmussen and Williams 2006, sections 3.6 and 5.5.2). With the sites the process is an ordinary one
again: :class:`~autotune.search.models.posterior.Posterior` predicts, and each further trial is one row more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.linalg import lapack
from scipy.special import log_ndtr

from autotune.search.models.arrays import Floats, Integers
from autotune.search.models.gaussian_process import JITTER, GaussianProcess, Inputs
from autotune.search.models.posterior import Posterior

SWEEPS = 12
"""The most rounds of expectation propagation; sites seldom move any more after half of them."""
SETTLED = 1e-3
"""A round that moves no site by more than this, in standard deviations, is the last."""
STEPS = 15
"""Steps of the fit: few, since the sites that it is made for are approximate themselves."""
LEAST = 1e-6
"""The smallest part of a value's variance that a step takes away, since sites have to be finite."""


Expected: TypeAlias = Callable[[Inputs], Floats]
"""The values that some rows (n,) are expected to have before any is known."""


@dataclass(frozen=True)
class Known:
    """What is known of ``n`` values: a number, or that it is past one.

    ``numbers`` and ``sides`` of shape (n,). Where the side is 0 the value is the number; where it is 1 (-1)
    it is greater (less).
    """

    numbers: Floats
    sides: Integers

    def __len__(self) -> int:
        return len(self.numbers)

    def less(self, shift: Floats) -> Known:
        """The same about the values less a ``shift`` (n,)."""
        return Known(self.numbers - shift, self.sides)

    def joined(self, other: Known) -> Known:
        return Known(np.concatenate([self.numbers, other.numbers]), np.concatenate([self.sides, other.sides]))


@dataclass(frozen=True)
class Sites:
    """Normal observations that stand for what is known; each of shape (n,).

    ``others`` and ``spread``: mean and standard deviation of each value, as all other sites predict it.
    """

    means: Floats
    variances: Floats
    others: Floats
    spread: Floats

    def joined(self, other: Sites) -> Sites:
        return Sites(
            np.concatenate([self.means, other.means]),
            np.concatenate([self.variances, other.variances]),
            np.concatenate([self.others, other.others]),
            np.concatenate([self.spread, other.spread]),
        )


class CensoredProcess:
    """A process conditioned on what is known of some values, watching candidates as a posterior does."""

    def __init__(
        self, process: GaussianProcess, inputs: Inputs, known: Known, expected: Expected | None = None
    ) -> None:
        """Fit the process to what is known at ``inputs``, and condition it on that.

        ``expected``: the prior mean of the values, by default 0; the process is over the difference from it.
        Raises ``numpy.linalg.LinAlgError`` where rounding defeats the process.
        """
        self.process = process
        self._expected = expected or _zero
        self._ahead = self._expected(inputs)
        self._ahead_watched = np.zeros(0)
        known = known.less(self._ahead)
        first = propagate(process, inputs, known)
        # With the sites held, the slope of the likelihood is the one that propagation has at its fixed point
        # (section 5.5.2), so that the fit of an ordinary process is a step towards the best parameters.
        process.fit(inputs, first.means, first.variances, steps=STEPS)
        self.known = known
        self.sites = propagate(process, inputs, known)
        self._posterior = Posterior(process, inputs, self.sites.variances)

    def watch(self, inputs: Inputs) -> None:
        """Predict at ``inputs`` too, after those that are watched already."""
        self._posterior.watch(inputs)
        self._ahead_watched = np.concatenate([self._ahead_watched, self._expected(inputs)])

    def add(self, inputs: Inputs, known: Known) -> None:
        """Learn one further value; the sites of earlier ones stay (assumed density filtering)."""
        ahead = self._expected(inputs)
        known = known.less(ahead)
        mean, spread = self._posterior.predict_at(self._targets, inputs)
        variance = np.square(spread) + self.process.noise
        site = _sites(known, mean[:, 0], variance)
        self._posterior.add(inputs, site.variances)
        self._ahead = np.concatenate([self._ahead, ahead])
        self.known = self.known.joined(known)
        self.sites = self.sites.joined(site)

    def predict(self, columns: Integers) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the value at some of the columns, its noise included."""
        mean, spread = self._posterior.predict(self._targets, columns)
        return mean[:, 0] + self._ahead_watched[columns], self._with_noise(spread)

    def predict_at(self, inputs: Inputs) -> tuple[Floats, Floats]:
        """The same, once, at any ``inputs``."""
        mean, spread = self._posterior.predict_at(self._targets, inputs)
        return mean[:, 0] + self._expected(inputs), self._with_noise(spread)

    def from_others(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each known value, as all the others predict it."""
        return self.sites.others + self._ahead, self.sites.spread

    @property
    def _targets(self) -> Floats:
        return self.sites.means[:, None]

    def _with_noise(self, spread: Floats) -> Floats:
        return np.sqrt(np.square(spread) + self.process.noise)


def _zero(inputs: Inputs) -> Floats:
    return np.zeros(len(inputs))


def propagate(process: GaussianProcess, inputs: Inputs, known: Known) -> Sites:
    """The sites of what is ``known``, by parallel expectation propagation."""
    prior = process.covariance_of_readings(process.view(inputs))
    sites = _sites(known, np.zeros(len(known)), np.diag(prior).copy())
    for _ in range(SWEEPS):
        inverse = _inverse(prior + np.diag(sites.variances))
        alone = 1.0 / np.diag(inverse)
        mean = sites.means - (inverse @ sites.means) * alone
        variance = np.maximum(alone - sites.variances, JITTER)
        old, sites = sites, _sites(known, mean, variance)
        moved = np.abs(sites.means - old.means) / np.sqrt(variance + sites.variances)
        if moved.max() < SETTLED:
            break
        sites = _between(old, sites, known)
    return sites


def _sites(known: Known, mean: Floats, variance: Floats) -> Sites:
    """The site of each value that has this mean and variance by all the other sites.

    It turns those moments into the moments of the normal distribution truncated at what is known.
    """
    spread = np.sqrt(variance)
    inside = known.sides * (mean - known.numbers) / spread
    ratio = np.exp(-0.5 * inside * inside - 0.5 * math.log(2.0 * math.pi) - log_ndtr(inside))
    pull = np.maximum(inside + ratio, LEAST)
    taken = np.clip(ratio * pull, LEAST, 1.0 - LEAST)
    means = np.where(known.sides == 0, known.numbers, mean + known.sides * spread / pull)
    variances = np.where(known.sides == 0, 0.0, variance * (1.0 - taken) / taken)
    return Sites(means, variances, mean, spread)


def _between(old: Sites, new: Sites, known: Known) -> Sites:
    """Half way from one to the other in precision, which keeps the rounds from oscillating."""
    soft = known.sides != 0
    before, after = old.variances[soft], new.variances[soft]
    precision = 0.5 / before + 0.5 / after
    variances, means = new.variances.copy(), new.means.copy()
    variances[soft] = 1.0 / precision
    means[soft] = (0.5 * old.means[soft] / before + 0.5 * new.means[soft] / after) / precision
    return Sites(means, variances, new.others, new.spread)


def _inverse(matrix: Floats) -> Floats:
    """Of a symmetric positive definite matrix. Raises ``numpy.linalg.LinAlgError`` where it is none."""
    factor, failed = lapack.dpotrf(matrix, lower=1)
    if failed:
        raise np.linalg.LinAlgError("the covariance is not positive definite")
    inverse, _ = lapack.dpotri(factor, lower=1)
    lower = np.tril(inverse)
    return np.asarray(lower + lower.T - np.diag(np.diag(inverse)))
