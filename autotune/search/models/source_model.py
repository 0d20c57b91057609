"""What one earlier study expects of the configurations of this space."""

from __future__ import annotations

import numpy as np

from autotune.search.contract import Problem, Source
from autotune.search.models.arrays import Floats, Integers
from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import GaussianProcess, Inputs, Prior
from autotune.search.models.history import History, Targets, chosen

FITTED = 120
"""The hyper-parameters of a source are fitted to at most so many of its trials."""
KEPT = 400
"""Its process is conditioned on at most so many of its trials."""
LEAST = 8
"""A source with fewer successes is left out: it cannot tell good from bad."""
CONSISTENT = 0.25
"""A source whose process explains a smaller part of its own trials is left out. Recorded kernels come to 0.7
and more, and shuffled times to less than 0.1, of which the best is no better than any other."""


class SourceModel:
    """A Gaussian process, fitted once to a part of the source's trials."""

    def __init__(self, features: Features, label: str, history: History, targets: Targets) -> None:
        """Raises ``numpy.linalg.LinAlgError`` where rounding defeats the process."""
        self.label = label
        self.scale = targets.scale
        """Standard deviation of its losses, which are logarithms where the metric is positive."""
        configurations = history.configurations
        self.successes = [configurations[i] for i in targets.best_first if not targets.failed[i]]
        """From the best to the worst."""
        self._process = GaussianProcess(features.columns, Prior(linear=True))
        few = chosen(targets, FITTED)
        inputs = features.of([configurations[i] for i in few])
        losses = targets.values[few] - targets.values[few].mean()
        self._process.fit(inputs, losses, targets.known[few])
        self.consistency = self._explained(inputs, losses, targets.known[few])
        """Which part of the variance of its trials is explained if each is predicted from the others."""
        rows = chosen(targets, KEPT)
        self._middle = float(targets.values[rows].mean())
        inputs = features.of([configurations[i] for i in rows])
        self._view = self._process.view(inputs)
        covariance = self._process.covariance_of_readings(self._view, targets.known[rows])
        self._weights = np.linalg.solve(covariance, targets.values[rows] - self._middle)
        self._known: dict[bytes, float] = {}
        self._keeps = not features.floating
        if self._keeps:
            keys = _keys(features.of(configurations).codes)
            self._known = dict(zip(keys, targets.values.tolist(), strict=True))

    @classmethod
    def of(cls, problem: Problem, features: Features, source: Source) -> SourceModel | None:
        """``None`` where too little of the source lies in this space, or it does not predict itself."""
        history = History.of(problem, [o for o in source.observations if o.configuration in problem.space])
        targets = history.targets()
        if targets is None or (targets.failed == 0.0).sum() < LEAST:
            return None
        try:
            model = cls(features, source.label, history, targets)
        except np.linalg.LinAlgError:
            return None
        return model if model.consistency >= CONSISTENT else None

    def expected(self, inputs: Inputs) -> Floats:
        """The loss of each row (n,), in standard deviations of the source's losses.

        It is the recorded one where there is one. What was computed once is kept: a search looks at the same
        configurations again and again.
        """
        if not self._keeps:
            return self._predicted(inputs)
        keys = _keys(inputs.codes)
        found = np.array([self._known.get(key, np.nan) for key in keys])
        missing = np.flatnonzero(np.isnan(found))
        if missing.size:
            found[missing] = self._predicted(inputs.taken(missing))
            self._known.update((keys[i], float(found[i])) for i in missing)
        return found

    def _predicted(self, inputs: Inputs) -> Floats:
        cross = self._process.covariance(self._process.view(inputs), self._view)
        return np.asarray(self._middle + cross @ self._weights)

    def _explained(self, inputs: Inputs, losses: Floats, known: Floats) -> float:
        """Leave-one-out (Rasmussen and Williams 2006, section 5.4.2); 0 where all ``losses`` are the same."""
        inverse = np.linalg.inv(self._process.covariance_of_readings(self._process.view(inputs), known))
        missed = inverse @ losses / np.diag(inverse)
        total = float(losses @ losses)
        return 1.0 - float(missed @ missed) / total if total else 0.0


def _keys(codes: Integers) -> list[bytes]:
    """Each row as a key."""
    return [row.tobytes() for row in np.ascontiguousarray(codes, dtype=np.int64)]
