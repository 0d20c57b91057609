"""A Gaussian process on NumPy and LAPACK for spaces of ordered and unordered knobs.

The covariance of two configurations is the sum of a smooth part, which says that near values of ordered
knobs behave alike, and a part that only counts which knobs differ::

    k(a, b) = s * matern52(r) + t * exp(-sum_c v_c [a_c != b_c]),   r^2 = sum_f w_f (a_f - b_f)^2

Kernels of real programs need both: time is smooth in some knobs, and in others 32 is simply another
program than 48. Where the inputs have columns for it, a linear part ``u * sum_h a_h b_h`` is added. Which
knob is which is learned: every weight ``w`` and ``v``, the variances and the noise maximise the posterior
(marginal likelihood times independent log-normal priors), by L-BFGS-B with analytic gradients. See Rasmussen
and Williams, Gaussian Processes for Machine Learning (2006), sections 2.2, 2.7, 4.2 and 5.4.1. Several
feature columns may share a weight (the one-hot code of a choice, say).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from autotune.search.models.arrays import Flags, Floats, Integers

SQRT5 = math.sqrt(5.0)
JITTER = 1e-8
"""Added to the diagonal, since rounding may make a covariance of equal rows indefinite."""

LARGEST_CODE = 64
"""A code with up to this many values is compared in its one-hot form."""

MANY = 16
"""If a configuration has more knobs, each is assumed to matter less, the more there are. Otherwise all
configurations would be so far from each other beforehand that nothing could be learned from one about another
(Hvarfner, Hellsten and Nardi, *Vanilla Bayesian optimization performs great in high dimensions*, 2024)."""


@dataclass(frozen=True)
class Columns:
    """What the columns of :class:`Inputs` are about."""

    groups: Integers
    """The weight (0, 1, ...) that each smooth feature is under: several may share one."""
    sizes: Integers
    """How many values each code has."""
    ranges: Flags
    """Which of the weights is of a position in a range, rather than in a list that somebody wrote."""
    compared: Flags
    """Which of the codes are compared: those of a long range would differ between any two configurations."""
    knobs: int = 0
    """How many knobs with more than one value a configuration has."""
    linear: int = 0
    """How many columns the linear part has."""

    @property
    def weights(self) -> int:
        return len(self.ranges)

    @property
    def many(self) -> bool:
        """Whether the knobs are more than :data:`MANY`."""
        return self.knobs > MANY


@dataclass(frozen=True)
class Inputs:
    """Configurations as a process sees them: ``n`` rows.

    ``smooth`` of shape (n, features) in [0, 1]; ``codes`` of shape (n, categories), from -1 on, compared for
    equality only; ``linear`` of shape (n, terms): a weighted sum of these may be a part of the target;
    ``expected`` of shape (n,): how much worse than others each is expected to be before anything is measured,
    in standard deviations of the targets.
    """

    smooth: Floats
    codes: Integers
    linear: Floats
    expected: Floats

    def __len__(self) -> int:
        return len(self.smooth)

    def taken(self, rows: Integers) -> Inputs:
        return Inputs(self.smooth[rows], self.codes[rows], self.linear[rows], self.expected[rows])

    def joined(self, other: Inputs) -> Inputs:
        return Inputs(
            np.vstack([self.smooth, other.smooth]),
            np.vstack([self.codes, other.codes]),
            np.vstack([self.linear, other.linear]),
            np.concatenate([self.expected, other.expected]),
        )


Trend: TypeAlias = Callable[[Inputs], Floats]
"""Gives terms (n, terms). Beforehand a value is expected to be their sum, each times a weight ~ N(0, 1)."""


@dataclass(frozen=True)
class View:
    """Inputs under given weights: ``n`` rows of scaled features, their squared norms, and codes.

    ``hot`` holds the codes of few values (those ``listed``) in one-hot form, times the root of their weight,
    and ``terms`` those of the linear part and of the trend, times the roots of their variances.
    """

    scaled: Floats
    norms: Floats
    codes: Integers
    hot: Floats
    code_weights: Floats
    listed: Flags
    terms: Floats

    def __len__(self) -> int:
        return len(self.norms)

    def joined(self, other: View) -> View:
        """These rows, then those of ``other``, which is under the same weights."""
        return self._with(
            np.vstack([self.scaled, other.scaled]),
            np.concatenate([self.norms, other.norms]),
            np.vstack([self.codes, other.codes]),
            np.vstack([self.hot, other.hot]),
            np.vstack([self.terms, other.terms]),
        )

    def first(self, count: int) -> View:
        return self._with(
            self.scaled[:count], self.norms[:count], self.codes[:count], self.hot[:count], self.terms[:count]
        )

    def _with(self, scaled: Floats, norms: Floats, codes: Integers, hot: Floats, terms: Floats) -> View:
        return View(scaled, norms, codes, hot, self.code_weights, self.listed, terms)


@dataclass(frozen=True)
class Prior:
    """Medians of the log-normal priors, and their spreads in natural logarithms.

    The weights given are those for up to :data:`MANY` knobs.

    Targets are standardised, so the variances are parts of 1. Weights are for features in [0, 1]: with 1
    the ends of a range are about one length scale apart. Where ranges are ``wide``, their weights have a
    prior of their own, since less is known of them beforehand than of the lists that people write: a learning
    rate may work in a tenth of its range, or in all of it. Only with ``linear`` is there a linear part, of
    which hardly anything is known: it may explain most of a target, or nothing.
    """

    smooth_weight: float = 1.0
    code_weight: float = 0.5
    smooth_variance: float = 0.5
    code_variance: float = 0.5
    noise: float = 1e-2
    weight_spread: float = 1.0
    variance_spread: float = 1.0
    noise_spread: float = 1.5
    wide: bool = False
    range_weight: float = 4.0
    range_spread: float = 2.0
    linear: bool = False
    linear_variance: float = 0.01
    linear_spread: float = 3.0


class GaussianProcess:
    """The covariance and its hyper-parameters, which :meth:`fit` sets; :class:`Posterior` predicts with them.

    A ``trend`` adds the product of its terms at the two configurations, which is not learned.
    """

    def __init__(self, columns: Columns, prior: Prior | None = None, trend: Trend | None = None) -> None:
        prior = prior or Prior()
        self.trend = trend
        self.columns = columns
        self.compared = np.flatnonzero(columns.compared)
        self.sizes = columns.sizes[self.compared]
        self.weights, self.categories = columns.weights, len(self.sizes)
        shape = (self.weights, self.categories)
        medians = np.repeat(
            [prior.smooth_weight, prior.code_weight, prior.smooth_variance, prior.code_variance, prior.noise],
            [*shape, 1, 1, 1],
        )
        self._centre = np.log(medians)
        self._spread = np.repeat(
            [prior.weight_spread, prior.weight_spread, prior.variance_spread, prior.noise_spread],
            [*shape, 2, 1],
        )
        if prior.wide:
            ranges = np.flatnonzero(columns.ranges)
            self._centre[ranges] = math.log(prior.range_weight)
            self._spread[ranges] = prior.range_spread
        self._centre[: sum(shape)] -= math.log(max(1.0, columns.knobs / MANY))
        self._linear = prior.linear and columns.linear > 0
        if self._linear:
            self._centre = np.append(self._centre, math.log(prior.linear_variance))
            self._spread = np.append(self._spread, prior.linear_spread)
        self.parameters: Floats = self._centre.copy()
        """Logarithms of: the weights of features, those of codes, the two variances, the noise; and of the
        variance of the linear part, where there is one."""

    # -- hyper-parameters

    def forget(self) -> None:
        """Set :attr:`parameters` to the prior's centre."""
        self.parameters = self._centre.copy()

    def fit(self, inputs: Inputs, targets: Floats, known: Floats | float = 0.0, steps: int = 40) -> None:
        """Set :attr:`parameters` to the most probable ones, from the prior's centre on.

        ``targets``: shape (n,), standardised; ``known``: the variance of each that was measured (n,), to
        which the noise is added.
        """
        pairs = _Pairs(self, inputs, known)

        def loss(parameters: Floats) -> tuple[float, Floats]:
            """Minus the log posterior, up to a constant, and its gradient."""
            off = (parameters - self._centre) / self._spread
            likelihood, slope = pairs.likelihood(parameters, targets)
            return 0.5 * float(off @ off) - likelihood, off / self._spread - slope

        low, high = self._centre - 4 * self._spread, self._centre + 4 * self._spread
        found = minimize(
            loss,
            self._centre,
            jac=True,
            method="L-BFGS-B",
            bounds=list(zip(low.tolist(), high.tolist(), strict=True)),
            options={"maxiter": steps},
        )
        self.parameters = np.asarray(found.x)

    # -- covariance

    def view(self, inputs: Inputs) -> View:
        """``inputs`` scaled by the weights: what :meth:`covariance` works on. Stale after another fit."""
        weights, code_weights, _, _ = self.split(self.parameters)
        scaled = inputs.smooth * np.sqrt(weights[self.columns.groups])
        codes = inputs.codes[:, self.compared]
        listed = self.sizes <= LARGEST_CODE
        hot = _one_hot(codes[:, listed], np.sqrt(code_weights[listed]), self.sizes[listed])
        norms = np.einsum("ij,ij->i", scaled, scaled)
        linear = math.sqrt(self.linear_part(self.parameters)) * inputs.linear
        terms = np.hstack([linear, self.trended(inputs)])
        return View(scaled, norms, codes, hot, code_weights, listed, terms)

    def trended(self, inputs: Inputs) -> Floats:
        """The terms of the trend, shape (n, terms); without a trend there are none."""
        return np.zeros((len(inputs), 0)) if self.trend is None else self.trend(inputs)

    def covariance(self, one: View, other: View) -> Floats:
        """Shape (len(one), len(other)), without noise."""
        squares = one.norms[:, None] + other.norms - 2.0 * (one.scaled @ other.scaled.T)
        distance = np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares)
        _, _, (smooth_variance, code_variance), _ = self.split(self.parameters)
        covariance = matern52(distance)
        covariance *= smooth_variance
        differing = _differing(one, other)
        np.negative(differing, out=differing)
        covariance += code_variance * np.exp(differing, out=differing)
        if one.terms.shape[1]:
            covariance += one.terms @ other.terms.T
        return covariance

    def covariance_of_readings(self, view: View, known: Floats | float = 0.0) -> Floats:
        """Shape (n, n): of what is measured at ``view``, with noise; ``known`` as in :meth:`fit`."""
        covariance = self.covariance(view, view)
        covariance[np.diag_indices(len(view))] += self.noise + JITTER + known
        return covariance

    def variances(self, view: View) -> Floats:
        """The prior variance of each noiseless value, shape (n,)."""
        return np.asarray(self.variance + np.einsum("ij,ij->i", view.terms, view.terms))

    @property
    def variance(self) -> float:
        """The prior variance of a noiseless value, what is linear aside."""
        return float(self.split(self.parameters)[2].sum())

    @property
    def noise(self) -> float:
        """The variance of what the inputs do not explain."""
        return self.split(self.parameters)[3]

    def split(self, parameters: Floats) -> tuple[Floats, Floats, Floats, float]:
        """Feature weights, code weights, the two variances and the noise variance."""
        natural = np.exp(parameters)
        first, second = self.weights, self.weights + self.categories
        last = second + 2
        return natural[:first], natural[first:second], natural[second:last], float(natural[last])

    def linear_part(self, parameters: Floats) -> float:
        """The variance of each weight of the linear part; 0 without one."""
        return math.exp(parameters[-1]) if self._linear else 0.0


class _Pairs:
    """The differences between all pairs of rows, laid out once for many evaluations of the likelihood."""

    def __init__(self, process: GaussianProcess, inputs: Inputs, known: Floats | float) -> None:
        self.process = process
        self.known = known
        self.count = len(inputs)
        self.upper = i, j = np.triu_indices(self.count, 1)
        # Where they and the diagonal are in a matrix that is laid out by columns, as LAPACK has it.
        self.places = i + self.count * j
        self.diagonal = np.arange(self.count) * (self.count + 1)
        self.squares = np.zeros((process.weights, len(i)))
        for feature, group in enumerate(process.columns.groups):
            self.squares[group] += np.square(inputs.smooth[i, feature] - inputs.smooth[j, feature])
        codes = inputs.codes[:, process.compared]
        self.differs = np.ascontiguousarray((codes[i] != codes[j]).T, dtype=float)
        self.trend, self.own_trend = self._products(process.trended(inputs))
        self.linear, self.own_linear = self._products(inputs.linear)

    def _products(self, terms: Floats) -> tuple[Floats, Floats]:
        """Of the terms (n, ...) of each pair, and of each row with itself."""
        products = terms @ terms.T
        return products[self.upper], np.diag(products)

    def likelihood(self, parameters: Floats, targets: Floats) -> tuple[float, Floats]:
        """Log marginal likelihood of ``targets`` (n,), without its constant, and its gradient."""
        weights, code_weights, (smooth_variance, code_variance), noise = self.process.split(parameters)
        linear_variance = self.process.linear_part(parameters)
        distance = np.sqrt(weights @ self.squares)
        lengths = SQRT5 * distance
        decay = np.exp(-lengths)
        lengths += 1.0
        smooth = (lengths + (5.0 / 3.0) * distance**2) * decay
        same = np.exp(-(code_weights @ self.differs))
        covariance = np.zeros(self.count**2)
        added = self.trend + linear_variance * self.linear
        covariance[self.places] = smooth_variance * smooth + code_variance * same + added
        added = self.own_trend + linear_variance * self.own_linear
        covariance[self.diagonal] = smooth_variance + code_variance + noise + self.known + added + JITTER
        square = covariance.reshape(self.count, self.count, order="F")
        factor, failed = lapack.dpotrf(square, lower=0, overwrite_a=1)
        if failed:
            return -1e10, np.zeros_like(parameters)
        solved, _ = lapack.dpotrs(factor, targets, lower=0)
        fit = -0.5 * float(targets @ solved) - float(np.log(factor.diagonal()).sum())
        inverse, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
        inverse = inverse.reshape(-1, order="F")
        i, j = self.upper
        # Half the trace of (a a' - K^-1) dK, with each pair standing for both its places.
        pull = solved[i] * solved[j] - inverse[self.places]
        own = 0.5 * (solved**2 - inverse[self.diagonal])
        owns = own.sum()
        bent = pull * smooth_variance * (-5.0 / 6.0) * lengths * decay
        slope = [
            weights * (self.squares @ bent),
            -code_weights * (self.differs @ (pull * code_variance * same)),
            [smooth_variance * (pull @ smooth + owns), code_variance * (pull @ same + owns)],
            [noise * owns],
        ]
        if linear_variance:
            slope.append([linear_variance * (pull @ self.linear + own @ self.own_linear)])
        return fit, np.concatenate(slope)


def matern52(distance: Floats) -> Floats:
    """Matern covariance with smoothness 5/2 at ``distance`` length scales."""
    scaled = SQRT5 * distance
    return np.asarray((1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled))


def _differing(one: View, other: View) -> Floats:
    """The summed weights of the codes in which each pair differs, shape (len(one), len(other)).

    Codes of few values are compared by one matrix product of their one-hot forms.
    """
    total = np.full((len(one), len(other)), float(one.code_weights[one.listed].sum()))
    total -= one.hot @ other.hot.T
    for code in np.flatnonzero(~one.listed):
        total += one.code_weights[code] * (one.codes[:, code, None] != other.codes[:, code])
    return total


def _one_hot(codes: Integers, weights: Floats, sizes: Integers) -> Floats:
    """Shape (n, values of all codes): the code's weight at its value, 0 elsewhere; -1 is a value too."""
    ends = np.cumsum(sizes + 1)
    hot = np.zeros((len(codes), int(ends[-1]) if len(ends) else 0))
    rows = np.arange(len(codes))
    for code, end in enumerate(ends):
        hot[rows, end - sizes[code] + codes[:, code]] = weights[code]
    return hot
