"""The Pareto front of a study with several goals: the trials that no other beats in every goal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from autotune.measure.outcome import Estimate
from autotune.search.acquisition.pareto import Floats, dominates, non_dominated
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import TrialRecord


def front_of(trials: Sequence[TrialRecord], goals: Sequence[MetricSpec]) -> tuple[TrialRecord, ...]:
    """The trials on the front by their estimates, from the best by the first goal on.

    Only a trial that succeeded and has a number for every goal counts. With one goal these are the best
    trial and those that tie with it.
    """
    places = [(trial, place_of(trial.metrics, goals)) for trial in trials if trial.status is Status.OK]
    there = [(trial, place) for trial, place in places if place is not None]
    if not there:
        return ()
    points = np.array([place for _, place in there])
    best = [(tuple(points[row]), there[row][0]) for row in np.flatnonzero(non_dominated(points))]
    return tuple(trial for _, trial in sorted(best, key=lambda one: (one[0], one[1].number)))


def front_numbers(values: Sequence[tuple[int, Sequence[float]]], goals: Sequence[MetricSpec]) -> list[int]:
    """The numbers of the trials that :func:`front_of` has, by ``(number, values of all goals)``."""
    if not values:
        return []
    places = _signs(goals) * np.array([own for _, own in values])
    there = np.flatnonzero(np.isfinite(places).all(axis=1))
    return [values[row][0] for row in there[non_dominated(places[there])]]


def _signs(goals: Sequence[MetricSpec]) -> Floats:
    """What makes of each goal one to minimize."""
    return np.array([goal.sign for goal in goals])


def place_of(metrics: Mapping[str, Estimate], goals: Sequence[MetricSpec]) -> Floats | None:
    """Shape (goals,), lower is better; ``None`` where a goal has no number."""
    values = [metrics[goal.name].value if goal.name in metrics else math.nan for goal in goals]
    place = _signs(goals) * np.array(values)
    return place if np.isfinite(place).all() else None


class GrowingFront:
    """The front so far, to tell whether a new trial improves on it."""

    def __init__(self, goals: Sequence[MetricSpec]) -> None:
        self._goals = goals
        self._points = np.zeros((0, len(goals)))

    def improves(self, metrics: Mapping[str, Estimate]) -> bool:
        """Take in a trial that succeeded; whether it adds a point to the front."""
        place = place_of(metrics, self._goals)
        if place is None or np.any(np.all(self._points <= place, axis=1)):
            return False
        self._points = np.vstack([self._points[~dominates(place, self._points)], place])
        return True
