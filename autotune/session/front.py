"""The Pareto front of a study with several goals: the trials that no other beats in every goal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from autotune.measure.outcome import Estimate
from autotune.search.acquisition.pareto import dominates, non_dominated
from autotune.search.models.arrays import Floats
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import TrialRecord


def front_of(trials: Sequence[TrialRecord], goals: Sequence[MetricSpec]) -> tuple[TrialRecord, ...]:
    """The trials on the front by their estimates, sorted by the first goal, the best first.

    Only trials that succeeded and have a finite value for every goal count. With one goal, the front is the
    best trial and those that tie with it.
    """
    places = [(trial, place_of(trial.metrics, goals)) for trial in trials if trial.status is Status.OK]
    there = [(trial, place) for trial, place in places if place is not None]
    if not there:
        return ()
    points = np.array([place for _, place in there])
    best = [(tuple(points[row]), there[row][0]) for row in np.flatnonzero(non_dominated(points))]
    return tuple(trial for _, trial in sorted(best, key=lambda one: (one[0], one[1].number)))


def front_numbers(values: Sequence[tuple[int, Sequence[float]]], goals: Sequence[MetricSpec]) -> list[int]:
    """The numbers of the trials on the front, from the ``(number, values of all goals)`` of each trial."""
    if not values:
        return []
    places = _signs(goals) * np.array([own for _, own in values])
    there = np.flatnonzero(np.isfinite(places).all(axis=1))
    return [values[row][0] for row in there[non_dominated(places[there])]]


def _signs(goals: Sequence[MetricSpec]) -> Floats:
    """The factor for each goal, 1 or -1, that makes lower values better."""
    return np.array([goal.sign for goal in goals])


def place_of(metrics: Mapping[str, Estimate], goals: Sequence[MetricSpec]) -> Floats | None:
    """The values of the goals, shape (goals,), lower is better; ``None`` if one is missing or not finite."""
    values = [metrics[goal.name].value if goal.name in metrics else math.nan for goal in goals]
    place = _signs(goals) * np.array(values)
    return place if np.isfinite(place).all() else None


class GrowingFront:
    """The front so far, to tell whether a new trial improves on it."""

    def __init__(self, goals: Sequence[MetricSpec]) -> None:
        self._goals = goals
        self._points = np.zeros((0, len(goals)))

    def improves(self, metrics: Mapping[str, Estimate]) -> bool:
        """Add a trial that succeeded; returns whether it adds a point to the front."""
        place = place_of(metrics, self._goals)
        if place is None or np.any(np.all(self._points <= place, axis=1)):
            return False
        self._points = np.vstack([self._points[~dominates(place, self._points)], place])
        return True
