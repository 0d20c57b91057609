"""The best of the trials so far, and how many trials ago the search last improved."""

from __future__ import annotations

from autotune.measure.outcome import Estimate
from autotune.session.front import GrowingFront
from autotune.session.observing import Finished
from autotune.session.progress import Best
from autotune.session.result import better
from autotune.space.spec import StudySpec
from autotune.status import Status


class Incumbent:
    """Is told the trials that have ended, in the order of their results."""

    def __init__(self, spec: StudySpec) -> None:
        self.best: Best | None = None
        """The best trial by the first goal."""
        self.since = 0
        """How many trials ended since one was the best by the first goal or extended the front."""
        self.reached: int | None = None
        """The first trial whose interval is all as good as the budget's target."""
        self._metric = spec.goals[0]
        self._target = spec.budget.target
        self._front = GrowingFront(spec.goals)

    def hear(self, trial: Finished) -> None:
        self.since += 1
        estimate = trial.metrics.get(self._metric.name)
        if trial.status is not Status.OK or estimate is None:
            return
        if self.reached is None and self._is_enough(estimate):
            self.reached = trial.number
        goal = self._metric.direction
        if self.best is None or better(goal, estimate.value, self.best.estimate.value):
            self.best = Best(trial.number, trial.configuration, estimate)
            self.since = 0
        if self._front.improves(trial.metrics):
            self.since = 0

    def _is_enough(self, estimate: Estimate) -> bool:
        if self._target is None:
            return False
        sign = self._metric.sign
        return max(sign * estimate.low, sign * estimate.high) <= sign * self._target
