"""Earlier studies as prior knowledge: what to try first, what to expect, and how far to believe that.

Each source has a process of its own (:class:`~autotune.search.models.source_model.SourceModel`). What it
expects of a configuration becomes the prior mean of the target's own process, which then only has to learn
the difference, as in the stacked processes of Golovin et al., Google Vizier (2017), section 3.3. Each source
has a slope, found by regression on the target's tries and never below zero: the better a source predicts
them, the more it counts, and one that contradicts them is dropped. To weight sources by the target's tries is
the idea of Feurer et al., Scalable Meta-Learning for Bayesian Optimization (2018).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import nnls

from autotune.search.candidates.assemble import assemble
from autotune.search.contract import Observation, Problem, Reason, Source
from autotune.search.models.arrays import Floats
from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import GaussianProcess, Inputs
from autotune.search.models.history import History, chosen
from autotune.search.models.source_model import SourceModel
from autotune.space.configuration import Configuration

OPENING = 8
"""After so many tries no more switches are turned: a choice may have many values."""
TAUGHT = 10
"""After so many tries the sources are left aside: they have said what they know, what was measured here says
more, and a source that is wrong in one region would keep the search out of it."""
SPREAD = 0.5
"""Prior standard deviation of the sum of all slopes, whose prior mean is 1."""
RESIDUAL = 0.7
"""Standard deviation of what a source leaves unexplained, in standard deviations of its losses."""
LEVEL = 100.0
"""Prior variance of the difference in level: nothing is known of how fast another device is."""
SIBLINGS = 3
"""Of the sources that differ in the workload alone, so many of the nearest have their best configuration
tried, whatever their models say: on the same machine it is seldom bad, and there may not even be a model."""
HEARD = 0.15
"""A source is dropped if its slope is a smaller part than this of its prior mean."""


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
        """The slope of each source that counts, by label, as part of a reason."""
        leaning = {m.label: round(float(w), 3) for m, w in zip(self.models, self.slopes, strict=True) if w}
        return {"sources": leaning} if leaning else {}

    def expected(self, inputs: Inputs) -> Floats:
        """How much worse than others each row is expected to be (n,), in the target's standard deviations."""
        total = np.zeros(len(inputs))
        for model, slope in zip(self.models, self.slopes, strict=True):
            if slope:
                total += slope * model.scale / self.scale * model.expected(inputs)
        return total


class Transfer:
    """The sources of a problem as models; false where none of them can teach anything.

    With several goals nothing is transferred.
    """

    def __init__(self, problem: Problem, features: Features) -> None:
        self._problem = problem
        self._features = features
        sources = problem.sources if len(problem.goals) == 1 else ()
        found = (SourceModel.of(problem, features, source) for source in sources)
        self.models = [model for model in found if model is not None]
        self._winners = list(_winners(problem, sources))
        self._switches = [
            knob.name
            for knob in features.discrete
            if len(knob.cells) == 1 and (not knob.ordered or len(knob.cells[0].values) == 2)
        ]

    def __bool__(self) -> bool:
        return bool(self.models or self._winners)

    def opening(
        self, observations: Sequence[Observation], known: Sequence[Configuration], taken: Container[str]
    ) -> tuple[Configuration, Reason] | None:
        """What to try among the first tries; ``None`` once the opening is over.

        The first try owes nothing to the sources (it is the default, where there is one), so that the second
        can already prove them wrong. Second comes what was best for the nearest workloads, where there are
        any; then the configuration that all sources together expect to be best. (What is best on one device
        alone often owes that to how its knobs work together there; what is good on all is good on the next.)
        Then its switches (knobs with two values or without order) are turned one at a time, and those of the
        best found so: devices differ most in which switches pay, while the best values of the other knobs are
        much the same.

        ``known`` holds all configurations that were proposed, ``taken`` their hashes.
        """
        if not 0 < len(known) < OPENING:
            return None
        for winner, label in self._winners:
            if winner.hash not in taken:
                return winner, {"kind": "best elsewhere", "sources": {label: 1.0}}
        if not self.models:
            return None
        slopes = self._slopes(observations)
        models = [model for model, slope in zip(self.models, slopes, strict=True) if slope]
        if not models:
            return None
        best = _agreed(models, self._features, [c for model in models for c in model.successes])
        if best.hash not in taken:
            return best, _reason("best elsewhere", models)
        shape = self._shape(best)
        alike = [o for o in observations if self._shape(o.configuration) == shape]
        history = History.of(self._problem, alike)
        targets = history.targets()
        centre = history.configurations[targets.best_first[0]] if targets else best
        tried = {self._setting(c) for c in known if self._shape(c) == shape}
        for around in (best, centre):
            left = [c for c in self._turned(around) if c.hash not in taken and self._setting(c) not in tried]
            if left:
                return _agreed(models, self._features, left), _reason("switch turned", models)
        return None

    def shares(self, configurations: Sequence[Configuration]) -> Floats | None:
        """How much each counts (n,) for what is expected where nothing is known; ``None``: all the same.

        Of the first tries, those that differ in switches alone count together as one. They are good because
        the sources knew where to look, which says nothing about the rest of the space: a process that takes
        their mean for that of the rest expects as good ones everywhere else.
        """
        if not self.models:
            return None
        shapes = [self._shape(c) for c in configurations[:OPENING]]
        shares = np.ones(len(configurations))
        shares[: len(shapes)] = [1.0 / shapes.count(shape) for shape in shapes]
        return shares

    def belief(self, observations: Sequence[Observation]) -> Belief | None:
        """How far to believe the sources after these tries; ``None`` where they are to be left aside."""
        if not self.models or len(observations) >= TAUGHT:
            return None
        targets = History.of(self._problem, observations).targets()
        if targets is None:
            return None
        slopes = self._slopes(observations)
        return Belief(self.models, slopes, targets.scale) if slopes.any() else None

    def _slopes(self, observations: Sequence[Observation]) -> Floats:
        """The slope of each source, by what it says about the tries. The slow side is not cut here.

        A process that has to find the best does not care how bad the worst is; but a source that expected the
        worst to be good should be found out by it.
        """
        history = History.of(self._problem, observations)
        targets = history.targets()
        if targets is None:
            return self._beforehand
        targets = history.targets(spared=np.flatnonzero(targets.failed == 0.0)) or targets
        rows = chosen(targets)
        inputs = self._features.of([history.configurations[i] for i in rows])
        unit = max(model.scale for model in self.models)
        said = np.column_stack([model.scale / unit * model.expected(inputs) for model in self.models])
        return self._regressed(inputs, said, targets.values[rows] * targets.scale / unit)

    def _regressed(self, inputs: Inputs, said: Floats, losses: Floats) -> Floats:
        """The most probable slopes (sources,) of what the sources ``said`` (rows, sources) of the losses.

        By generalised least squares: the residuals are a process with the prior's covariance, so that many
        tries of one kind count little more than one.
        """
        before = self._beforehand
        process = GaussianProcess(self._features.columns)
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

    @property
    def _beforehand(self) -> Floats:
        return np.full(len(self.models), 1.0 / len(self.models))

    def _turned(self, centre: Configuration) -> Iterator[Configuration]:
        """The ``centre`` with another value of one of the switches."""
        space = self._problem.space
        for name in self._switches:
            if name in centre:
                knob = space.knob(name)
                for place in range(len(knob.cells[0].values)):
                    turned = assemble(space, {**centre, name: knob.join([place])})
                    if turned is not None:
                        yield turned

    def _setting(self, configuration: Configuration) -> tuple[object, ...]:
        """The values of the switches."""
        return tuple(configuration.get(name) for name in self._switches)

    def _shape(self, configuration: Configuration) -> frozenset[tuple[str, object]]:
        """The values of all other knobs."""
        return frozenset((name, value) for name, value in configuration.items() if name not in self._switches)


def _winners(problem: Problem, sources: Sequence[Source]) -> Iterator[tuple[Configuration, str]]:
    """What was best for the nearest workloads, nearest first, and the labels of their sources."""
    siblings = [source for source in sources if source.apart is not None]
    for source in sorted(siblings, key=lambda s: s.apart or 0.0)[:SIBLINGS]:
        history = History.of(problem, [o for o in source.observations if o.configuration in problem.space])
        targets = history.targets()
        best = [i for i in targets.best_first if not targets.failed[i]] if targets is not None else []
        if best:
            yield history.configurations[best[0]], source.label


def _agreed(
    models: Sequence[SourceModel], features: Features, among: Sequence[Configuration]
) -> Configuration:
    """What the sources together expect to be best, each measured in its own standard deviations."""
    inputs = features.of(among)
    return among[int(np.argmin(sum(model.expected(inputs) for model in models)))]


def _reason(kind: str, models: Sequence[SourceModel]) -> Reason:
    return {"kind": kind, "sources": {model.label: 1.0 for model in models}}
