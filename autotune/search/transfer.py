"""Earlier studies as prior knowledge: what they say of each configuration, and how far that is believed.

Each source gets one Gaussian process, fitted once to a part of its trials. What it expects of a
configuration, as the source's own loss where it tried that very configuration, becomes the prior mean of the
target's process, times a slope. The slopes are regressed on the target's own tries, none below
zero: a source that predicts them badly loses its slope, and one that contradicts them is dropped.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from autotune.search.contract import Observation, Problem, Reason, Source
from autotune.search.features import Features
from autotune.search.gaussian_process import JITTER, Floats, GaussianProcess, Inputs, Integers
from autotune.search.history import History, Targets, chosen
from autotune.space.configuration import Configuration

FITTED = 120
"""Trials of a source to which its hyper-parameters are fitted."""
OPENING = 3
"""So many first tries are the best of the sources."""
KEPT = 400
"""Trials of a source that its process is conditioned on."""
LEAST = 8
"""A source with fewer successes is left out: it cannot tell good from bad."""
SPREAD = 0.5
"""Standard deviation of a slope beforehand."""
RESIDUAL = 0.7
"""Standard deviation of what a source leaves unexplained, in standard deviations of its losses."""
LEVEL = 100.0
"""Variance of the difference in level, about which nothing is known: another device is faster or slower."""
HEARD = 0.05
"""A source with a smaller slope is dropped."""


class SourceModel:
    """What one earlier study expects of the configurations of this space."""

    def __init__(self, features: Features, label: str, history: History, targets: Targets) -> None:
        self.label = label
        self.scale = targets.scale
        self.logarithmic = targets.logarithmic
        self.process = GaussianProcess(features.groups, features.cell_sizes)
        configurations = history.configurations
        few = chosen(targets, FITTED)
        inputs = features.of([configurations[i] for i in few])
        self.process.fit(inputs, targets.values[few] - targets.values[few].mean(), targets.known[few])
        rows = chosen(targets, KEPT)
        self._middle = float(targets.values[rows].mean())
        inputs = features.of([configurations[i] for i in rows])
        self._view = self.process.view(inputs)
        covariance = self.process.covariance(self._view, self._view)
        covariance[np.diag_indices(len(rows))] += self.process.noise + JITTER + targets.known[rows]
        self._weights = np.linalg.solve(covariance, targets.values[rows] - self._middle)
        self.best_first: list[Configuration] = [
            configurations[i] for i in targets.best_first if not targets.failed[i]
        ]
        self._losses: dict[bytes, float] = {}
        if not features.floating:
            cells = features.of(configurations).codes
            self._losses = dict(zip(_keys(cells), targets.values.tolist(), strict=True))

    def expected(self, inputs: Inputs) -> Floats:
        """The loss of each row (n,), in standard deviations of the source's losses.

        What was computed once is kept: a search looks at the same configurations again and again.
        """
        if not self._losses:
            return self._predicted(inputs)
        keys = _keys(inputs.codes)
        found = np.array([self._losses.get(key, np.nan) for key in keys])
        missing = np.flatnonzero(np.isnan(found))
        if missing.size:
            found[missing] = self._predicted(inputs.taken(missing))
            self._losses.update((keys[i], float(found[i])) for i in missing)
        return found

    def _predicted(self, inputs: Inputs) -> Floats:
        cross = self.process.covariance(self.process.view(inputs), self._view)
        return np.asarray(self._middle + cross @ self._weights)


def _keys(codes: Integers) -> list[bytes]:
    """Each row as a key."""
    rows = np.ascontiguousarray(codes, dtype=np.int32)
    return [row.tobytes() for row in rows]


@dataclass(frozen=True)
class Belief:
    """How far each source is believed: its slope, in units of the target's losses."""

    models: Sequence[SourceModel]
    slopes: Floats
    scale: float
    """Of the target's losses."""

    @property
    def trust(self) -> float:
        """From 0, where nothing is believed, to 1."""
        return float(min(1.0, self.slopes.sum()))

    @property
    def reason(self) -> Reason:
        return {"sources": self.leaning} if self.leaning else {}

    @property
    def leaning(self) -> dict[str, float]:
        """The slope of each source that counts, by its label."""
        return {m.label: round(float(w), 3) for m, w in zip(self.models, self.slopes, strict=True) if w}

    def expected(self, inputs: Inputs) -> Floats:
        """How much worse than others each row is thought to be, in standard deviations of the target (n,)."""
        total = np.zeros(len(inputs))
        for model, slope in zip(self.models, self.slopes, strict=True):
            if slope:
                total += slope * model.scale / self.scale * model.expected(inputs)
        return total


class Transfer:
    """The sources of a problem, and how far they are believed after some tries."""

    def __init__(self, problem: Problem, features: Features) -> None:
        self._features = features
        self._problem = problem
        self.models = [m for s in problem.sources if (m := _model(problem, features, s)) is not None]

    def __bool__(self) -> bool:
        return bool(self.models)

    def opening(self, count: int, taken: Container[str]) -> tuple[Configuration, Reason] | None:
        """The best of each source in turn, as the first tries; ``None`` when it is time to go on from there."""
        if not self.models or count >= OPENING:
            return None
        model = self.models[count % len(self.models)]
        best = next((c for c in model.best_first if c.hash not in taken), None)
        return None if best is None else (best, {"kind": "best elsewhere", "sources": {model.label: 1.0}})

    def belief(self, observations: Sequence[Observation]) -> Belief:
        """After these tries. It follows from them alone."""
        history = History.of(self._problem, observations)
        targets = history.targets()
        count = len(self.models)
        before = np.full(count, 1.0 / count)
        if targets is None or len(history) < 2:
            return Belief(self.models, before, 1.0 if targets is None else targets.scale)
        rows = chosen(targets)
        inputs = self._features.of([history.configurations[i] for i in rows])
        said = np.column_stack([m.scale * m.expected(inputs) for m in self.models])
        unit = max(m.scale for m in self.models)
        slopes = self._regressed(inputs, said / unit, targets.values[rows] * targets.scale / unit, before)
        slopes[slopes < HEARD / count] = 0.0
        return Belief(self.models, slopes, targets.scale)

    def _regressed(self, inputs: Inputs, said: Floats, losses: Floats, before: Floats) -> Floats:
        process = GaussianProcess(self._features.groups, self._features.cell_sizes)
        view = process.view(inputs)
        covariance = process.covariance(view, view) * RESIDUAL**2 + LEVEL
        covariance[np.diag_indices(len(losses))] += process.noise
        factor = np.linalg.cholesky(covariance)
        left = solve_triangular(factor, said, lower=True)
        right = solve_triangular(factor, losses, lower=True)
        ridge = np.sqrt(len(before)) / SPREAD
        slopes, _ = nnls(
            np.vstack([left, ridge * np.eye(len(before))]), np.concatenate([right, ridge * before])
        )
        return np.asarray(slopes)


def _model(problem: Problem, features: Features, source: Source) -> SourceModel | None:
    inside = [o for o in source.observations if o.configuration in problem.space]
    history = History.of(problem, inside)
    targets = history.targets()
    if targets is None or len(history) - targets.failed.sum() < LEAST:
        return None
    return SourceModel(features, source.label, history, targets)
