"""What a strategy minimises: one number per trial, whichever way the goal points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from autotune.search.contract import Observation, Problem
from autotune.search.models.arrays import Floats
from autotune.search.models.fidelity import HUGE, AtFull, at_full
from autotune.status import Status

FIRST = 5
"""How many values it takes for their median to mean something."""


def signed(problem: Problem, observations: Sequence[Observation]) -> Floats:
    """Shape (n,): the first goal of each trial, lower is better, NaN where the trial has no such number.

    A trial that was pruned counts with what was read until then, and one that was stopped before it had
    used its whole resource with what it would have come to. An observation of a paused trial has no number
    once there is a later one of the same trial. With several goals only the first is minimised.
    """
    return signed_at_full(problem, observations).losses


def signed_at_full(problem: Problem, observations: Sequence[Observation]) -> AtFull:
    """:func:`signed`, and how far off each may be (:func:`~autotune.search.models.fidelity.at_full`).

    Curves of a metric other than the goal do not count: where a trial stood in one says nothing about what it
    would have come to in the other.
    """
    goal = problem.goals[0] if problem.goals else None
    values = np.array([_value(o, goal.name) if goal else math.nan for o in observations])
    sign = goal.sign if goal else 1.0
    if goal is None or all(o.fraction == 1.0 for o in observations):
        return AtFull(sign * values, np.zeros(len(values)))
    heard = _last_heard(observations)
    # Past a bound it is no result, but still shows what an early loss has come to in the end.
    bounded = np.array([o.bounded.get(goal.name, math.nan) for o in observations])
    finals = sign * np.where(np.isnan(values), np.clip(bounded, -HUGE, HUGE), values)
    told = [observations[i] for i in heard]
    if problem.judged not in ("", goal.name):
        told = [replace(o, curve=()) for o in told]
    found = at_full(told, finals[heard], sign)
    losses, doubts = np.full(len(values), math.nan), np.zeros(len(values))
    losses[heard], doubts[heard] = np.where(np.isnan(values[heard]), math.nan, found.losses), found.doubts
    return AtFull(losses, doubts)


def _last_heard(observations: Sequence[Observation]) -> NDArray[np.intp]:
    """The places of all observations, save those of a paused trial of which there is a later one."""
    last = {o.configuration.hash: place for place, o in enumerate(observations)}
    kept = [i for i, o in enumerate(observations) if not o.paused or last[o.configuration.hash] == i]
    return np.array(kept, dtype=np.intp)


def losses(problem: Problem, observations: Sequence[Observation]) -> Floats:
    """:func:`signed`, as logarithms where every number is positive, as times, rates and sizes are.

    Shape (n,). With those, ratios are what counts: a slow-down by some factor weighs the same anywhere.
    """
    sign = problem.goals[0].sign if problem.goals else 1.0
    values = sign * signed(problem, observations)
    known = values[~np.isnan(values)]
    return sign * (np.log(values) if known.size and known.min() > 0.0 else values)


def _value(observation: Observation, metric: str) -> float:
    if observation.status not in (Status.OK, Status.PRUNED):
        return math.nan
    value = observation.metrics.get(metric, math.nan)
    return min(max(float(value), -HUGE), HUGE) if math.isfinite(value) else math.nan


def flattened(values: Floats) -> Floats:
    """Losses with the slow side cut off at ``middle + (middle - best)``, for a Gaussian process.

    The times of a kernel spread over orders of magnitude and only their fast end matters. A process
    that must also explain the slow end fits its length scales to that. NaN stays NaN.

    ``values`` are in the order in which they were measured, and ``middle`` is the highest value that their
    running median has reached. A search crowds around the best, so the median of all its trials sinks to
    what it already likes; a cut there would hide how the rest of the space differs.
    """
    known = values[~np.isnan(values)]
    if not known.size:
        return values
    first = min(FIRST, known.size)
    middle = max(float(np.median(known[:count])) for count in range(first, known.size + 1))
    return np.minimum(values, 2.0 * middle - float(known.min()))


def failures_as_worst(values: Floats) -> Floats:
    """Losses with each failure (NaN) as bad as the worst success, and no worse.

    So a model learns where not to go, while its scale stays that of real measurements. A made-up
    large number would bend a Gaussian process over everything near the limit, which is where the
    optimum often lies; if failures were left out, their neighbours would be tried again and again. All zero
    where nothing succeeded.
    """
    known = values[~np.isnan(values)]
    worst = float(known.max()) if known.size else 0.0
    return np.where(np.isnan(values), worst, values)
