"""Earlier studies as prior knowledge: what they say of each configuration, and how far that is believed.

Each source gets one Gaussian process, fitted once to a part of its trials. What it expects of a
configuration (or the loss that it recorded there) becomes the prior mean of the target's own process, which
then only has to learn the difference, as in the stacked processes of Golovin et al., Google Vizier (2017),
section 3.3. Each source has a slope, regressed on the target's tries and never below zero: the better a
source predicts them, the more it counts, and one that contradicts them is dropped. Weighing sources by the
target's tries is the idea of Feurer et al., Scalable Meta-Learning for Bayesian Optimization (2018).
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
KEPT = 400
"""Trials of a source that its process is conditioned on."""
LEAST = 8
"""A source with fewer successes is left out: it cannot tell good from bad."""
OPENING = 5
"""So many first tries are what was best elsewhere."""
TAUGHT = 8
"""Up to so many tries every proposal leans on the sources; then every other one does ..."""
WEANED = 40
"""... and from so many on none: what was measured here tells more by then, and a source that is wrong in one
region would keep the search out of it for ever."""
SPREAD = 0.5
"""Standard deviation of a slope beforehand. Beforehand the slopes add up to 1."""
RESIDUAL = 0.7
"""Standard deviation of what a source leaves unexplained, in standard deviations of its losses."""
LEVEL = 100.0
"""Variance of the difference in level, about which nothing is known: another device is faster or slower."""
HEARD = 0.05
"""A source with a smaller part of the slope that it had beforehand is dropped."""


class SourceModel:
    """What one earlier study expects of the configurations of this space."""

    def __init__(self, features: Features, label: str, history: History, targets: Targets) -> None:
        """Raises ``numpy.linalg.LinAlgError`` where rounding defeats the process."""
        self.label = label
        self.scale = targets.scale
        """Standard deviation of its losses, which are logarithms where the metric is positive."""
        configurations = history.configurations
        self.best_first = [configurations[i] for i in targets.best_first if not targets.failed[i]]
        self._process = GaussianProcess(features.groups, features.cell_sizes)
        few = chosen(targets, FITTED)
        inputs = features.of([configurations[i] for i in few])
        self._process.fit(inputs, targets.values[few] - targets.values[few].mean(), targets.known[few])
        rows = chosen(targets, KEPT)
        self._middle = float(targets.values[rows].mean())
        self._view = self._process.view(features.of([configurations[i] for i in rows]))
        covariance = self._process.covariance(self._view, self._view)
        covariance[np.diag_indices(len(rows))] += self._process.noise + JITTER + targets.known[rows]
        self._weights = np.linalg.solve(covariance, targets.values[rows] - self._middle)
        self._known: dict[bytes, float] = {}
        self._keeps = not features.floating
        if self._keeps:
            keys = _keys(features.of(configurations).codes)
            self._known = dict(zip(keys, targets.values.tolist(), strict=True))

    def expected(self, inputs: Inputs) -> Floats:
        """The loss of each row (n,), in standard deviations of the source's losses.

        As it was recorded, where it was. What was computed once is kept: a search looks at the same
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


@dataclass(frozen=True)
class Belief:
    """How far each source is believed after some tries."""

    models: Sequence[SourceModel]
    slopes: Floats
    """Shape (sources,), none below zero; what a source's losses are multiplied by."""
    scale: float
    """Standard deviation of the target's losses."""

    @property
    def trust(self) -> float:
        """From 0, where nothing is believed, to 1."""
        return float(min(1.0, self.slopes.sum()))

    @property
    def reason(self) -> Reason:
        """The slope of each source that counts, by its label."""
        leaning = {m.label: round(float(w), 3) for m, w in zip(self.models, self.slopes, strict=True) if w}
        return {"sources": leaning} if leaning else {}

    def expected(self, inputs: Inputs) -> Floats:
        """How much worse than others each row is thought to be, in standard deviations of the target (n,)."""
        total = np.zeros(len(inputs))
        for model, slope in zip(self.models, self.slopes, strict=True):
            if slope:
                total += slope * model.scale / self.scale * model.expected(inputs)
        return total


class Transfer:
    """The sources of a problem as models; false where there is none that can teach.

    Where there are several goals nothing is transferred.
    """

    def __init__(self, problem: Problem, features: Features) -> None:
        self._problem = problem
        self._features = features
        sources = problem.sources if len(problem.goals) == 1 else ()
        found = (_model(problem, features, source) for source in sources)
        self.models = [model for model in found if model is not None]
        self._switches = [
            knob.name
            for knob in features.discrete
            if len(knob.cells) == 1 and (not knob.ordered or len(knob.cells[0].values) == 2)
        ]

    def __bool__(self) -> bool:
        return bool(self.models)

    def opening(
        self, taken: Container[str], known: Sequence[Configuration]
    ) -> tuple[Configuration, Reason] | None:
        """What to try first; ``None`` when it is time to go on from there.

        The sources take turns. Each gives its best among the settings of the switches (knobs with two values
        or without order) that were not tried yet: devices differ most in which of those pay, and what is best
        with them is much the same. Only the better half of a source's trials is worth it.
        """
        if not self.models or len(known) >= OPENING:
            return None
        tried = {self._switched(configuration) for configuration in known}
        model = self.models[len(known) % len(self.models)]
        for configuration in model.best_first[: len(model.best_first) // 2 + 1]:
            if configuration.hash not in taken and self._switched(configuration) not in tried:
                return configuration, _reason(model)
        best = model.best_first[0]
        return None if best.hash in taken else (best, _reason(model))

    def belief(self, observations: Sequence[Observation], turn: int) -> Belief | None:
        """After these tries, from which alone it follows; ``None`` where the sources are to be left aside.

        ``turn`` counts the times that a belief was due.
        """
        count = len(observations)
        if not self.models or count >= WEANED or (count > TAUGHT and turn % 2):
            return None
        history = History.of(self._problem, observations)
        targets = history.targets()
        if targets is None:
            return None
        rows = chosen(targets)
        inputs = self._features.of([history.configurations[i] for i in rows])
        unit = max(model.scale for model in self.models)
        said = np.column_stack([model.scale / unit * model.expected(inputs) for model in self.models])
        slopes = self._regressed(inputs, said, targets.values[rows] * targets.scale / unit)
        return Belief(self.models, slopes, targets.scale) if slopes.any() else None

    def _regressed(self, inputs: Inputs, said: Floats, losses: Floats) -> Floats:
        """The most probable slopes (sources,) of what the sources ``said`` (rows, sources) of the losses.

        Generalised least squares: what is left over is a process with the prior's covariance, so that many
        tries of one kind count little more than one.
        """
        before = np.full(said.shape[1], 1.0 / said.shape[1])
        process = GaussianProcess(self._features.groups, self._features.cell_sizes)
        view = process.view(inputs)
        covariance = RESIDUAL**2 * process.covariance(view, view) + LEVEL
        covariance[np.diag_indices(len(losses))] += process.noise
        factor = np.linalg.cholesky(covariance)
        left = solve_triangular(factor, said, lower=True)
        right = solve_triangular(factor, losses, lower=True)
        firm = np.sqrt(len(before)) / SPREAD
        rows = np.vstack([left, firm * np.eye(len(before))])
        slopes, _ = nnls(rows, np.concatenate([right, firm * before]))
        return np.where(slopes < HEARD * before, 0.0, slopes)

    def _switched(self, configuration: Configuration) -> tuple[object, ...]:
        return tuple(configuration.get(name) for name in self._switches)


def _model(problem: Problem, features: Features, source: Source) -> SourceModel | None:
    """``None`` where too little of the source lies in this space, or rounding defeats its process."""
    history = History.of(problem, [o for o in source.observations if o.configuration in problem.space])
    targets = history.targets()
    if targets is None or (targets.failed == 0.0).sum() < LEAST:
        return None
    try:
        return SourceModel(features, source.label, history, targets)
    except np.linalg.LinAlgError:
        return None


def _reason(model: SourceModel) -> Reason:
    return {"kind": "best elsewhere", "sources": {model.label: 1.0}}


def _keys(codes: Integers) -> list[bytes]:
    """Each row as a key."""
    return [row.tobytes() for row in np.ascontiguousarray(codes, dtype=np.int64)]
