"""Where the search of one workload stands, updated by reading only what is new in the store.

A family gives out its tries in many slices. Reading all trials of all its studies before each slice took as
long as the searches themselves.
"""

from __future__ import annotations

import math

from autotune.session.families.budget import Standing
from autotune.session.searches import seconds_searched
from autotune.space.spec import StudySpec
from autotune.status import Status
from autotune.store.records import ResultRecord
from autotune.store.statements.room import Counted
from autotune.store.store import Store


class Follower:
    """Follows one study in the store, whoever searches it. Trials outside its present space do not count."""

    def __init__(self, store: Store, study_id: int, spec: StudySpec) -> None:
        self._store = store
        self._study_id = study_id
        self._spec = spec
        self._proposed = self._told = 0
        """How far the study's proposals, and its results, have been read."""
        self._tries = 0
        self._bests: list[float] = []

    def standing(self, closed: bool) -> Standing:
        """Where the search stands now; ``closed`` is passed on."""
        self.count()
        self._told, results = self._store.results_from(self._study_id, self._told)
        for result in results:
            if result.configuration in self._spec.space:
                self._bests.append(min(self._bests[-1] if self._bests else math.inf, self._logarithm(result)))
        seconds = seconds_searched(self._store, self._study_id)
        return Standing(tuple(self._bests), self._tries, seconds, closed)

    def count(self) -> tuple[int, Counted]:
        """How many tries there are, finished or not, and up to which proposal they were counted."""
        self._proposed, new = self._store.proposed_from(self._study_id, self._proposed)
        self._tries += sum(configuration in self._spec.space for _, configuration in new)
        return self._tries, Counted(self._study_id, self._proposed, self._spec.space.__contains__)

    def _logarithm(self, result: ResultRecord) -> float:
        """The logarithm of the goal, smaller is better; infinite if the result has no value."""
        goal = self._spec.goals[0]
        if result.status is not Status.OK or goal.name not in result.metrics:
            return math.inf
        value = result.metrics[goal.name].value
        # A value of 0 or less has no logarithm. With 0.0 for all, each workload's gain is HOPE alone.
        return goal.sign * math.log(value) if value > 0 else 0.0
