"""What a trial will cost, in seconds, learned from the trials so far.

Some configurations take much longer to compile and to measure than others; a training may take ten
thousand times as long. If two promise the same, the cheaper one leaves time for another try. So where time
is what runs out, the expected improvement counts per second (J. Snoek, H. Larochelle and R. Adams,
*Practical Bayesian optimization of machine learning algorithms*, NeurIPS 2012, section 3.2). Where tries are
what runs out, and seconds are to be saved all the same, E. H. Lee, V. Perrone, C. Archambeau and M. Seeger
(*Cost-aware Bayesian optimization*, 2020) divide it by the cost to the power alpha, which falls from 1 to 0
while the budget is spent: cheap tries first, and in the end whatever is best, whatever it costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from autotune import errors
from autotune.errors import InputError
from autotune.search.contract import Observation, Problem
from autotune.search.models.arrays import Flags, Floats, Integers
from autotune.search.models.features import Features
from autotune.search.models.gaussian_process import Inputs
from autotune.status import Status

RIDGE = 1.0
"""How strongly each effect is held at 0, in observations; so there is a model from the first trial on."""
SMOOTH = 0.03
"""The same for what seconds grow with in proportion, or with some power: sizes and counts. That is by far the
largest part of the differences, so it is hardly held (``benchmarks/results/cost.md``)."""
FREE = 1e-6
"""The same for the mean, which is not held at anything."""
LONG = 32
"""If a knob has more values, none has a deviation of its own: hardly any is tried twice."""
BETWEEN = 0.05
"""Seconds that pass with every trial besides its own, while the next one is chosen. So of trials that take
milliseconds, the quickest are no cheaper than others."""
CUT_SHORT = (Status.INFEASIBLE, Status.CRASHED, Status.OUT_OF_MEMORY, Status.DIVERGED)
"""How a trial ends that may have had most of its work before it."""
EMPHASIS = 0.5
"""The power of the cost where no budget says how far the search has come."""


def emphasis(problem: Problem, tries: int, passed: float = 0.0) -> float:
    """``alpha``: the power of the cost that the expected improvement is divided by.

    Of a budget in tries, the part that is left after ``tries``. Of a budget in time it is 1; where both are
    given, and the tries that are left will take only a part of the time that is left, it is that part. So far
    ``passed`` seconds have gone by.
    """
    if problem.seconds is None:
        return EMPHASIS if problem.budget is None else max(0.0, 1.0 - tries / problem.budget)
    if problem.budget is None or not (tries and passed) or passed >= problem.seconds:
        return 1.0
    needed = max(problem.budget - tries, 0) * passed / tries
    return min(1.0, needed / (problem.seconds - passed))


class Cost:
    """The logarithm of a trial's seconds as a sum of what each knob adds.

    Effects multiply: twice the unrolled iterations are twice the code, whatever the other knobs are. So the
    logarithm is modelled as additive in the knobs, by ridge regression: linear in the place of each value,
    plus a deviation for each value where a discrete knob has no more than :data:`LONG`. The regression is
    updated trial by trial, at a cost that does not grow with their number.

    What is learned is how long a trial takes that succeeds, since an improvement is divided by it: what fails
    at once would look cheap, and be tried again and again for that. So only failures that took their time
    teach: a timeout, a wrong answer. Nor do trials without seconds, or one that was stopped before its first
    step.

    The seconds of a trial that was stopped early grow with the part of its resource that it used: in
    proportion, or with a power that is learned beside the effects, since the beginning takes time as well.

    ``rebuild`` names the knobs that need a new build; if it names none, every trial makes one. A
    configuration whose build was made before is expected to cost what such trials cost on average. So the
    other knobs are tried with the same build, as far as that pays. With a continuous knob in ``rebuild``
    every trial makes a build.
    """

    def __init__(self, features: Features, rebuild: Sequence[str] = ()) -> None:
        """Raises :class:`~autotune.errors.InputError` where ``rebuild`` names what is no knob."""
        self._features = features
        self._cells = _cells(features, rebuild)
        self._short: Integers = np.flatnonzero(features.cell_sizes <= LONG)
        """The cells that have a one-hot code."""
        self._sizes: Integers = features.cell_sizes[self._short]
        self._ends = np.concatenate([[0], np.cumsum(self._sizes + 1)]).astype(int)
        """Where the one-hot code of each begins; its last place is for a knob that does not exist."""
        self._built: set[bytes] = set()
        smooth, hot = len(features.columns.groups), int(self._ends[-1])
        self._hold = np.array([FREE, *[SMOOTH] * smooth, *[RIDGE] * hot, RIDGE])
        """How strongly each effect is held: the mean, smooth features, values, the part that was used."""
        self._gram = np.zeros((len(self._hold), len(self._hold)))
        self._moment = np.zeros(len(self._hold))
        self._effects: Floats | None = None
        """Those of the trials so far; ``None`` where they have to be computed anew."""
        self._again: list[float] = []

    def learn(self, observations: Sequence[Observation]) -> None:
        """Take in further trials, in the order in which they finished."""
        for observation in observations:
            inputs = self._features.of([observation.configuration])
            again = bool(self._again_at(inputs)[0])
            self._built.update(self._builds(inputs))
            if not (observation.seconds > 0.0 and math.isfinite(observation.seconds)):
                continue
            if observation.status in CUT_SHORT or not observation.fraction:
                continue
            part = math.log(observation.fraction)
            whole = math.log(observation.seconds) - part
            if again:
                self._again.append(whole)
                continue
            row = np.append(self._design(inputs)[0], part)
            self._gram += np.outer(row, row)
            self._moment += whole * row
            self._effects = None

    def predict(self, inputs: Inputs) -> Floats:
        """The logarithm of the seconds that each will cost if it is not stopped; shape (n,).

        All 0 where nothing is known.
        """
        if not self._gram.any():
            return np.zeros(len(inputs))
        if self._effects is None:
            self._effects = np.asarray(np.linalg.solve(self._gram + np.diag(self._hold), self._moment))
        effects = self._effects
        smooth = inputs.smooth.shape[1]
        found = effects[0] + inputs.smooth @ effects[1 : 1 + smooth]
        found += effects[1 + smooth : -1][self._places(inputs)].sum(axis=1)
        if self._again:
            found = np.where(self._again_at(inputs), sum(self._again) / len(self._again), found)
        return np.asarray(found)

    def _design(self, inputs: Inputs) -> Floats:
        hot = np.zeros((len(inputs), int(self._ends[-1])))
        np.put_along_axis(hot, self._places(inputs), 1.0, axis=1)
        return np.hstack([np.ones((len(inputs), 1)), inputs.smooth, hot])

    def _places(self, inputs: Inputs) -> Integers:
        codes = inputs.codes[:, self._short]
        codes = np.where(codes < 0, self._sizes, codes)
        return np.asarray(self._ends[:-1] + codes)

    # -- builds

    def _again_at(self, inputs: Inputs) -> Flags:
        """Whether the build of each was made before; shape (n,)."""
        if not self._cells:
            return np.zeros(len(inputs), dtype=bool)
        return np.array([build in self._built for build in self._builds(inputs)], dtype=bool)

    def _builds(self, inputs: Inputs) -> list[bytes]:
        """A key for the build of each: the values of the knobs that need a new one."""
        return [row.tobytes() for row in inputs.codes[:, self._cells].astype(np.int64)]


def _cells(features: Features, rebuild: Sequence[str]) -> list[int]:
    """The columns of these knobs' cells; empty where nothing can be known to have the same build."""
    known = [knob.name for knob in features.space.knobs]
    if unknown := [name for name in rebuild if name not in known]:
        hint = errors.nearest(unknown[0], known)
        raise InputError(
            errors.Problem(
                f"there is no knob {unknown[0]!r} to rebuild for", expected=", ".join(known), hint=hint
            )
        )
    if any(knob.name in rebuild for knob in features.floating):
        return []
    owners = [knob.name for knob in features.discrete for _ in knob.cells]
    return [column for column, name in enumerate(owners) if name in rebuild]
