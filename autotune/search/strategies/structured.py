"""Bayesian optimisation of assignments, with the arithmetic of a pipeline as its prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from autotune.search.contract import Observation, Problem
from autotune.search.loss import signed
from autotune.search.models.arrays import Flags, Floats, Integers
from autotune.search.models.bottleneck import BUSY_NOISE, Bottleneck, Data, Rows, Shape
from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import GaussianProcess, Inputs
from autotune.search.models.history import History, Targets, best_and_some
from autotune.search.models.posterior import Posterior
from autotune.search.models.surrogate import fit_due
from autotune.search.strategies.bayes import Bayes
from autotune.space.knobs import Assignment
from autotune.space.space import Space

MOST_ITEMS = 40
"""With more items there are too many pairs of them to learn a cost for each."""
MOST_VALUES = 16
"""Another knob with up to this many values has an effect for each of them."""
EVERY = 8
"""The model is tested again after each so many trials."""
FOLDS = 4
"""A test divides the trials into so many parts, and predicts each from the others."""
DOUBT = 3.0
"""After so many trials in which the pace was off by :data:`BUSY_NOISE`, half of what they say about how it
shows in the goal is believed."""


class Structured(Bayes):
    """:class:`~autotune.search.strategies.bayes.Bayes`, whose process starts from a model of what an
    assignment costs.

    Before each fit of the process the model (:mod:`~autotune.search.models.bottleneck`) is fitted to the
    trials, or to a part of many (:func:`~autotune.search.models.history.best_and_some`). The process then
    only has to learn what is left. So the arithmetic of a pipeline, whose few parameters are known after a
    handful of trials, leads early; and where it is wrong the process corrects it. Semi-parametric models of
    this kind are those of Dalibard, Schaarschmidt and Yoneki, BOAT: Building Auto-Tuners with Structured
    Bayesian Optimization (WWW 2017). Every :data:`EVERY` trials the model is
    tested by cross-validation; while it predicts unseen trials worse than a process does, it is left aside.

    Metrics that are named after the places of the assignment (``busy_gpu0`` and ``busy_gpu1`` for an
    assignment to ``gpu0`` and ``gpu1``) are taken to say how long each place works, in the unit of the goal.
    It is plain :class:`~autotune.search.strategies.bayes.Bayes` in a space in which an assignment is not most
    of what there is to choose, and with any goal other than to minimise one positive number.
    """

    name: ClassVar[str] = "structured"

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self._layout = Layout.of(problem, self.features)
        self._believed: dict[int, bool] = {}
        """By the number of trials at a test: whether the model passed it."""
        self._paced: tuple[int, Pace | None] = (-1, None)
        """How the pace of the machine shows, and from how many trials that was learned."""
        if self._layout is not None and "initial" not in problem.options:
            self.options = {**self.options, "initial": 1}  # the model can already predict after one trial

    def learn(self, observations: Sequence[Observation]) -> None:
        super().learn(observations)
        if self._layout is not None and self._layout.busy:
            due = fit_due(len(self.usable))
            if due != self._paced[0]:
                self._paced = due, self._layout.pace(self.usable[:due])
            self._history = History.of(self.problem, self._at_one_pace(self.usable), past_bounds=True)

    def _at_one_pace(self, observations: Sequence[Observation]) -> Sequence[Observation]:
        """The observations as they would be if the machine had been equally fast in all of them."""
        pace = self._paced[1]
        return pace(observations) if pace else observations

    def _informed(self, due: int) -> Features:
        features = super()._informed(due)
        if self._layout is None or self._belief is not None or not self._holds(due - due % EVERY):
            return features
        told = self.usable[:due]
        expectation = self._layout.learn(told, self._at_one_pace(told))
        return features if expectation is None else features.informed(expectation.expected)

    def _holds(self, count: int) -> bool:
        """Whether the model predicts at least as well as a process, judged by the first ``count`` trials."""
        if self._layout is None or count < EVERY:
            return True
        if count not in self._believed:
            self._believed[count] = self._layout.holds(self.usable[:count])
        return self._believed[count]


def assignment_of(space: Space) -> Assignment | None:
    """The one knob that assigns items to places, where it is most of the space; else ``None``.

    That is, where it has at least as many items as the space has knobs, but not too many for the model.
    """
    found = [knob for knob in space.knobs if isinstance(knob, Assignment) and knob.when is None]
    if len(found) != 1 or len(found[0].options) < 2:
        return None
    return found[0] if max(2, len(space.knobs)) <= len(found[0].items) <= MOST_ITEMS else None


@dataclass(frozen=True)
class Layout:
    """In which columns of a space's features the model finds what it is about."""

    problem: Problem
    features: Features
    place: slice
    """The columns of the assignment."""
    others: tuple[tuple[int, int], ...]
    """The column and the number of values of each other knob that is a short list."""
    shape: Shape
    busy: tuple[str, ...]
    """The metric that says how long each place works; empty where there are none."""

    @classmethod
    def of(cls, problem: Problem, features: Features) -> Layout | None:
        knob = assignment_of(problem.space)
        if knob is None or len(problem.goals) != 1 or problem.goals[0].goal != "minimize":
            return None
        others = tuple(
            (columns.start, len(k.cells[0].values))
            for k, columns in features.placed
            if len(k.cells) == 1 and len(k.cells[0].values) <= MOST_VALUES
        )
        shape = Shape(len(knob.items), len(knob.options), sum(count for _, count in others))
        (place,) = (columns for k, columns in features.placed if k.name == knob.name)
        return cls(problem, features, place, others, shape, _busy(problem, knob))

    def rows(self, codes: Integers) -> Rows:
        """Rows for the model from cell indices (n, cells), as features have them."""
        hot = [codes[:, [column]] == np.arange(count) for column, count in self.others]
        others = np.hstack(hot).astype(float) if hot else np.zeros((len(codes), 0))
        return Rows(codes[:, self.place], others)

    def learn(
        self, observations: Sequence[Observation], levelled: Sequence[Observation]
    ) -> Expectation | None:
        """The model, fitted to these trials; ``None`` where no number is known, or one is not positive.

        ``levelled``: the same trials as the process learns them, at one pace of the machine.
        """
        targets = History.of(self.problem, levelled).targets()
        if targets is None or not targets.logarithmic:
            return None
        model, parameters = self._fitted(self.data(*self._to_learn_from(observations)))
        return Expectation(self, model, parameters, targets)

    def pace(self, observations: Sequence[Observation]) -> Pace | None:
        """How the pace of the machine shows in these trials; ``None`` where nothing is known of it."""
        targets = History.of(self.problem, observations).targets()
        if targets is None or not targets.logarithmic:
            return None
        data = self.data(*self._to_learn_from(observations))
        model, parameters = self._fitted(data)
        slower = model.slowness(parameters, data)
        above = data.values - model.predict(parameters, data.rows)
        doubt = DOUBT * BUSY_NOISE**2
        share = float(slower @ above) / (float(slower @ slower) + doubt)
        return Pace(self, model, parameters, min(max(share, 0.0), 1.0))

    def holds(self, observations: Sequence[Observation]) -> bool:
        """Whether the model errs no more than a process does on trials that neither was shown."""
        targets = History.of(self.problem, observations).targets()
        if targets is None or not targets.logarithmic:
            return False
        told, values = self._to_learn_from(observations)
        data = self.data(told, values)
        inputs = self.features.of([o.configuration for o in told])
        by_model, by_process = np.zeros(len(told)), np.zeros(len(told))
        for fold in range(FOLDS):
            out = np.arange(len(told)) % FOLDS == fold
            if out.all() or not out.any():
                return True
            model, parameters = self._fitted(data.taken(~out))
            by_model[out] = model.predict(parameters, data.rows.taken(out)) - data.values[out]
            by_process[out] = _foretold(self.features, inputs, data.values, out) - data.values[out]
        return bool(np.square(by_model).sum() <= np.square(by_process).sum())

    def _fitted(self, data: Data) -> tuple[Bottleneck, Floats]:
        """The model of this shape, and its parameters by these data."""
        model = Bottleneck(self.shape, float(np.median(data.values)))
        return model, model.fit(data)

    def data(self, told: Sequence[Observation], values: Floats) -> Data:
        """Trials with these numbers as the model's data.

        How long each place works is not known of a trial that was stopped early.
        """
        busy = np.full((len(told), self.shape.places), np.nan)
        if self.busy:
            ended = [o.metrics if o.fraction == 1.0 else {} for o in told]
            busy = np.array([[metrics.get(name, np.nan) for name in self.busy] for metrics in ended])
        codes = np.array([self.features.row(o.configuration) for o in told], dtype=np.int64)
        logs = np.log(np.where(busy > 0.0, busy, np.nan))
        return Data(self.rows(codes), np.log(values), logs)

    def with_number(self, observations: Sequence[Observation]) -> tuple[list[Observation], Floats]:
        """The trials with a number for the goal, and it: what they came to, or would have come to."""
        losses = signed(self.problem, observations)
        known = ~np.isnan(losses)
        return [o for o, number in zip(observations, known, strict=True) if number], losses[known]

    def _to_learn_from(self, observations: Sequence[Observation]) -> tuple[list[Observation], Floats]:
        """The same of the trials that a model learns from: where there are many, of a part of them."""
        told, losses = self.with_number(observations)
        rows = best_and_some(np.argsort(losses, kind="stable"))
        return [told[i] for i in rows], losses[rows]


def _foretold(features: Features, inputs: Inputs, values: Floats, out: Flags) -> Floats:
    """What a process that was shown all other rows predicts for the rows ``out``."""
    shown, rest = np.flatnonzero(~out), np.flatnonzero(out)
    middle, scale = float(values[shown].mean()), float(values[shown].std()) or 1.0
    process = GaussianProcess(features.columns)
    given = (values[shown] - middle) / scale
    process.fit(inputs.taken(shown), given)
    mean, _ = Posterior(process, inputs.taken(shown)).predict_at(given[:, None], inputs.taken(rest))
    return np.asarray(middle + scale * mean[:, 0])


@dataclass(frozen=True)
class Pace:
    """How fast the machine was in a trial, by how long its places worked beside what the model predicts."""

    layout: Layout
    model: Bottleneck
    parameters: Floats
    share: float
    """How much of that shows in the goal, from 0 to 1, by the trials so far."""

    def __call__(self, observations: Sequence[Observation]) -> list[Observation]:
        """The trials as they would be at the usual pace."""
        goal = self.layout.problem.goals[0].name
        told, values = self.layout.with_number(observations)
        if not told:
            return list(observations)
        slower = self.share * self.model.slowness(self.parameters, self.layout.data(told, values))
        level = {id(one): float(np.exp(-by)) for one, by in zip(told, slower, strict=True)}
        return [
            replace(o, metrics={**o.metrics, goal: o.metrics[goal] * level[id(o)]}) if id(o) in level else o
            for o in observations
        ]


@dataclass(frozen=True)
class Expectation:
    """A fitted model, in the form in which a process takes what is expected beforehand."""

    layout: Layout
    model: Bottleneck
    parameters: Floats
    targets: Targets

    def expected(self, inputs: Inputs) -> Floats:
        """What the model predicts, in standardised targets, cut on the slow side as they are; shape (n,)."""
        predicted = self.model.predict(self.parameters, self.layout.rows(inputs.codes))
        standard = (predicted - self.targets.middle) / self.targets.scale
        return np.asarray(np.minimum(standard, self.targets.values.max()))


def _busy(problem: Problem, knob: Assignment) -> tuple[str, ...]:
    """The metrics that say how long each place works; none where one of them is missing."""
    names = {metric.name for metric in problem.metrics}
    found = tuple(f"busy_{option}" for option in knob.options)
    return found if names.issuperset(found) else ()
