"""What a Gaussian process predicts, updated observation by observation.

Conditioning on one more observation adds a row to the Cholesky factor and to the candidates' part, without a
new factorisation (Rasmussen and Williams 2006, section A.3). For ``n`` observations and ``m`` candidates that
costs ``O(n (n + m))`` instead of ``O(n^2 (n + m))``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from autotune.search.models.arrays import Floats, Integers
from autotune.search.models.gaussian_process import GaussianProcess, Inputs, View

SPARE = 64
"""How many rows are set aside for future observations."""
TINY = 1e-12
"""The smallest variance that is predicted."""


@dataclass(frozen=True)
class Points:
    """Inputs as a posterior sees them; stale once that has more or fewer observations."""

    view: View
    whitened: Floats
    """Shape (observations, points)."""


class Posterior:
    """A process, conditioned on observations (rows), watching candidates (columns).

    The targets are given with each prediction, so that they may change (be scaled anew, say) at little cost.
    """

    def __init__(self, process: GaussianProcess, inputs: Inputs, known: Floats | float = 0.0) -> None:
        """Condition on observations at ``inputs``; ``known``: their variances beside the process's noise.

        Raises ``numpy.linalg.LinAlgError`` where rounding defeats the factorisation, as with a NaN.
        """
        self.process = process
        self.count = len(inputs)
        self._rows = process.view(inputs)
        covariance = process.covariance_of_readings(self._rows, known)
        size = self.count + SPARE
        self._factor = np.zeros((size, size), order="F")
        self._factor[: self.count, : self.count] = _cholesky(covariance)
        self._columns: View | None = None
        self._prior = np.zeros(0)
        """The variance of each column before anything is observed."""
        self._whitened = np.zeros((size, 0))
        """The columns, and some that are set aside for more of them."""

    def watch(self, inputs: Inputs) -> None:
        """Predict at ``inputs`` too, after those that are watched already."""
        view = self.process.view(inputs)
        watched = len(self._prior)
        wanted = watched + len(inputs)
        if wanted > self._whitened.shape[1]:
            self._grow(len(self._whitened), wanted + wanted // 4)
        self._whitened[: self.count, watched:wanted] = self._whiten(view)
        self._columns = view if self._columns is None else self._columns.joined(view)
        self._prior = self.process.variances(self._columns)

    def add(self, inputs: Inputs, known: Floats | float = 0.0) -> None:
        """Condition on further observations at ``inputs``. :meth:`drop` takes the last ones back."""
        first, last = self.count, self.count + len(inputs)
        self._reserve(last)
        view = self.process.view(inputs)
        cross = self._whiten(view)
        own = self.process.covariance_of_readings(view, known)
        corner = _cholesky(own - cross.T @ cross)
        self._factor[first:last, :first] = cross.T
        self._factor[first:last, first:last] = corner
        if self._columns is not None:
            watched = len(self._prior)
            to_columns = self.process.covariance(view, self._columns) - cross.T @ self._watched
            self._whitened[first:last, :watched] = _triangular(corner, to_columns)
        self._rows = self._rows.joined(view)
        self.count = last

    def drop(self, count: int) -> None:
        """Forget the last ``count`` observations."""
        self.count -= count
        self._rows = self._rows.first(self.count)

    def predict(self, targets: Floats, columns: Integers) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the noiseless value at some of the columns.

        ``targets``: shape (observations, several). The mean has shape (columns, several).
        """
        if not len(columns):
            return np.zeros((0, targets.shape[1])), np.zeros(0)
        mean, spread = self._moments(self._watched, targets, self._prior)
        return mean[columns], spread[columns]

    def predict_at(self, targets: Floats, inputs: Inputs) -> tuple[Floats, Floats]:
        """The same, once, at any ``inputs``."""
        return self.moments(targets, self.at(inputs))

    def at(self, inputs: Inputs) -> Points:
        """``inputs`` as they are seen from here, for several questions about them."""
        view = self.process.view(inputs)
        return Points(view, self._whiten(view))

    def moments(self, targets: Floats, points: Points) -> tuple[Floats, Floats]:
        """Mean and standard deviation of the noiseless value at ``points``, as :meth:`predict` has them."""
        return self._moments(points.whitened, targets, self.process.variances(points.view))

    def shared(self, one: Points, columns: Integers) -> Floats:
        """The covariance of the noiseless value at ``one``, a single row, and that at some of the columns."""
        if not len(columns):
            return np.zeros(0)
        assert self._columns is not None, "nothing is watched"
        prior = self.process.covariance(one.view, self._columns)[0]
        return np.asarray(prior - one.whitened[:, 0] @ self._watched)[columns]

    def shared_at(self, one: Points, others: Points) -> Floats:
        """The same with those at any other points."""
        prior = self.process.covariance(one.view, others.view)[0]
        return np.asarray(prior - one.whitened[:, 0] @ others.whitened)

    def _whiten(self, view: View) -> Floats:
        return self._solve(self.process.covariance(self._rows, view))

    def _moments(self, whitened: Floats, targets: Floats, prior: Floats) -> tuple[Floats, Floats]:
        mean = whitened.T @ self._solve(targets)
        variance = prior - np.einsum("ij,ij->j", whitened, whitened)
        return mean, np.sqrt(np.maximum(variance, TINY))

    def _solve(self, right: Floats) -> Floats:
        return _triangular(self._factor[: self.count, : self.count], right)

    @property
    def _watched(self) -> Floats:
        """The columns' part, shape (observations, columns)."""
        return self._whitened[: self.count, : len(self._prior)]

    def _reserve(self, rows: int) -> None:
        if rows <= len(self._factor):
            return
        size = rows + SPARE
        factor = np.zeros((size, size), order="F")
        factor[: self.count, : self.count] = self._factor[: self.count, : self.count]
        self._factor = factor
        self._grow(size, self._whitened.shape[1])

    def _grow(self, rows: int, columns: int) -> None:
        whitened = np.zeros((rows, columns))
        watched = self._watched
        whitened[: watched.shape[0], : watched.shape[1]] = watched
        self._whitened = whitened


def _triangular(lower: Floats, right: Floats) -> Floats:
    solved, _ = lapack.dtrtrs(lower, right, lower=1)
    return np.asarray(solved).reshape(right.shape)


def _cholesky(matrix: Floats) -> Floats:
    """The lower factor; the diagonal is raised tenfold at a time where rounding made it indefinite.

    Raises ``numpy.linalg.LinAlgError`` where that does not help, as with a NaN.
    """
    for power in range(-8, 1):
        factor, failed = lapack.dpotrf(matrix, lower=1, clean=1)
        if not failed:
            return np.asarray(factor)
        matrix = matrix + 10.0**power * np.eye(len(matrix))
    raise np.linalg.LinAlgError("the covariance is not positive definite")
