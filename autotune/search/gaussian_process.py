"""A Gaussian process on NumPy and LAPACK for spaces of ordered and unordered knobs.

The covariance of two configurations is the sum of a smooth part, which says that near values of ordered
knobs behave alike, and a part that only counts which knobs differ::

    k(a, b) = s * matern52(r) + t * exp(-sum_c v_c [a_c != b_c]),   r^2 = sum_f w_f (a_f - b_f)^2

Kernels of real programs need both: time is smooth in some knobs, and in others 32 is simply another
program than 48. Which knob is which is learned: every weight ``w`` and ``v``, the two variances and the
noise maximise the posterior (marginal likelihood times independent log-normal priors), by L-BFGS-B with
analytic gradients. See Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), sections
2.2, 4.2 and 5.4.1. Several feature columns may share a weight (the one-hot code of a choice, say).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.optimize import minimize

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SQRT5 = math.sqrt(5.0)
JITTER = 1e-8
"""Added to the diagonal: what two equal rows may differ by to a float."""


@dataclass(frozen=True)
class Inputs:
    """Configurations as a process sees them: ``n`` rows.

    ``smooth`` of shape (n, features) in [0, 1]; ``codes`` of shape (n, categories), compared for equality
    only.
    """

    smooth: Floats
    codes: Integers

    def __len__(self) -> int:
        return len(self.smooth)

    def joined(self, other: Inputs) -> Inputs:
        return Inputs(np.vstack([self.smooth, other.smooth]), np.vstack([self.codes, other.codes]))


@dataclass(frozen=True)
class Prior:
    """Medians of the log-normal priors, and their spreads in natural logarithms.

    Targets are standardised, so the variances are parts of 1. Weights are for features in [0, 1]: 1 lets
    the ends of a range differ by about one length scale.
    """

    smooth_weight: float = 1.0
    code_weight: float = 0.5
    smooth_variance: float = 0.5
    code_variance: float = 0.5
    noise: float = 1e-2
    weight_spread: float = 1.0
    variance_spread: float = 1.0
    noise_spread: float = 1.5


class GaussianProcess:
    """Fit the hyper-parameters with :meth:`fit`, condition with :meth:`observe`, then :meth:`predict`.

    ``groups`` says which weight each smooth feature has (0, 1, ...); ``categories`` is how many codes there
    are.
    """

    def __init__(self, groups: Integers, categories: int, prior: Prior | None = None) -> None:
        prior = prior or Prior()
        self.groups = groups
        self.weights = int(groups.max()) + 1 if groups.size else 0
        self.categories = categories
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
        self.parameters: Floats = self._centre.copy()
        """Logarithms of: the weights of features, those of codes, the two variances, the noise."""

    # -- hyper-parameters

    def forget(self) -> None:
        """Set :attr:`parameters` to the prior's centre."""
        self.parameters = self._centre.copy()

    def fit(self, inputs: Inputs, targets: Floats, steps: int = 40) -> None:
        """Set :attr:`parameters` to the most probable ones, from the prior's centre on.

        ``targets``: shape (n,), standardised.
        """
        pairs = _Pairs(self, inputs)

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

    # -- prediction

    def observe(self, inputs: Inputs, targets: Floats) -> None:
        """Condition on ``targets`` of shape (n,) or (n, several) at ``inputs``."""
        self._inputs = inputs
        covariance = self.covariance(inputs, inputs)
        covariance[np.diag_indices(len(inputs))] += math.exp(self.parameters[-1]) + JITTER
        self._factor = _cholesky(covariance)
        self._solved = _solve(self._factor, targets)

    def predict(self, inputs: Inputs) -> tuple[Floats, Floats]:
        """Mean, shaped as the targets, and standard deviation of the noiseless value, shape (n,)."""
        cross = self.covariance(self._inputs, inputs)
        mean = cross.T @ self._solved
        whitened, _ = lapack.dtrtrs(self._factor, cross, lower=1)
        variance = np.exp(self.parameters[-3:-1]).sum() - np.einsum("ij,ij->j", whitened, whitened)
        return mean, np.sqrt(np.maximum(variance, 1e-12))

    def covariance(self, one: Inputs, other: Inputs) -> Floats:
        """Shape (len(one), len(other)), without noise."""
        weights, code_weights, variances, _ = self.split(self.parameters)
        scale = np.sqrt(weights[self.groups])
        a, b = one.smooth * scale, other.smooth * scale
        squares = np.sum(a * a, axis=1)[:, None] + np.sum(b * b, axis=1) - 2.0 * (a @ b.T)
        differing = np.zeros((len(one), len(other)))
        for code, weight in enumerate(code_weights):
            differing += weight * (one.codes[:, code, None] != other.codes[:, code])
        smooth = matern52(np.sqrt(np.maximum(squares, 0.0)))
        return np.asarray(variances[0] * smooth + variances[1] * np.exp(-differing))

    def split(self, parameters: Floats) -> tuple[Floats, Floats, Floats, float]:
        """Feature weights, code weights, the two variances and the noise variance."""
        natural = np.exp(parameters)
        first, second = self.weights, self.weights + self.categories
        return natural[:first], natural[first:second], natural[second : second + 2], float(natural[-1])


class _Pairs:
    """The differences between all pairs of rows, laid out once for many evaluations of the likelihood."""

    def __init__(self, process: GaussianProcess, inputs: Inputs) -> None:
        self.process = process
        self.count = len(inputs)
        self.upper = np.triu_indices(self.count, 1)
        i, j = self.upper
        self.squares = np.zeros((process.weights, len(i)))
        for feature, group in enumerate(process.groups):
            self.squares[group] += np.square(inputs.smooth[i, feature] - inputs.smooth[j, feature])
        self.differs = np.ascontiguousarray((inputs.codes[i] != inputs.codes[j]).T, dtype=float)

    def likelihood(self, parameters: Floats, targets: Floats) -> tuple[float, Floats]:
        """Log marginal likelihood of ``targets`` (n,), without its constant, and its gradient."""
        weights, code_weights, (smooth_variance, code_variance), noise = self.process.split(parameters)
        distance = np.sqrt(weights @ self.squares)
        decay = np.exp(-SQRT5 * distance)
        smooth = (1.0 + SQRT5 * distance + (5.0 / 3.0) * distance**2) * decay
        same = np.exp(-(code_weights @ self.differs))
        covariance = np.zeros((self.count, self.count), order="F")
        covariance[self.upper] = smooth_variance * smooth + code_variance * same
        diagonal = np.diag_indices(self.count)
        covariance[diagonal] = smooth_variance + code_variance + noise + JITTER
        factor, failed = lapack.dpotrf(covariance, lower=0, overwrite_a=1)
        if failed:
            return -1e10, np.zeros_like(parameters)
        solved, _ = lapack.dpotrs(factor, targets, lower=0)
        fit = -0.5 * float(targets @ solved) - float(np.log(factor[diagonal]).sum())
        inverse, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
        i, j = self.upper
        # Half the trace of (a a' - K^-1) dK, with each pair standing for both its places.
        pull = solved[i] * solved[j] - inverse[self.upper]
        own = 0.5 * (solved**2 - inverse[diagonal])
        bent = pull * smooth_variance * (-5.0 / 6.0) * (1.0 + SQRT5 * distance) * decay
        slope = [
            weights * (self.squares @ bent),
            -code_weights * (self.differs @ (pull * code_variance * same)),
            [smooth_variance * (pull @ smooth + own.sum()), code_variance * (pull @ same + own.sum())],
            [noise * own.sum()],
        ]
        return fit, np.concatenate(slope)


def matern52(distance: Floats) -> Floats:
    """Matern covariance with smoothness 5/2 at ``distance`` length scales."""
    scaled = SQRT5 * distance
    return np.asarray((1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled))


def _cholesky(matrix: Floats) -> Floats:
    """The lower factor; the diagonal is raised tenfold at a time where rounding made it indefinite.

    Raises ``numpy.linalg.LinAlgError`` where that does not help, as with a NaN.
    """
    for power in range(-8, 1):
        factor, failed = lapack.dpotrf(matrix, lower=1)
        if not failed:
            return np.asarray(factor)
        matrix = matrix + 10.0**power * np.eye(len(matrix))
    raise np.linalg.LinAlgError("the covariance is not positive definite")


def _solve(factor: Floats, targets: Floats) -> Floats:
    solved, _ = lapack.dpotrs(factor, targets, lower=1)
    return np.asarray(solved).reshape(targets.shape)
