"""What a strategy minimises: one number a trial, whichever way the goal points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from autotune.search.contract import Observation, Problem
from autotune.search.models.fidelity import HUGE, AtFull, at_full
from autotune.status import Status

FIRST = 5
"""Values from which a median says something."""

Floats = NDArray[np.float64]


def signed(problem: Problem, observations: Sequence[Observation]) -> Floats:
    """Shape (n,): the first goal of each trial, lower is better, NaN where the trial has no such number.

    A trial that was pruned counts with what was read until then, and one that was stopped before it had
    used its whole resource with what it would have come to. What was heard of a paused trial has no number
    where more was heard of it later. With several goals the first alone is minimised.
    """
    return signed_at_full(problem, observations).losses


def signed_at_full(problem: Problem, observations: Sequence[Observation]) -> AtFull:
    """:func:`signed`, with by how much it may be off (:func:`~autotune.search.models.fidelity.at_full`).

    The curve of another metric than the goal does not count: how a trial stood in that says nothing of what
    it would have come to in this.
    """
    goal = problem.goals[0] if problem.goals else None
    values = np.array([_value(o, goal.name) if goal else math.nan for o in observations])
    sign = goal.sign if goal else 1.0
    if goal is None or all(o.fraction == 1.0 for o in observations):
        return AtFull(sign * values, np.zeros(len(values)))
    heard = _last_heard(observations)
    # Past a bound it is no result, but as good as any to tell what an early loss has meant in the end.
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
    """The places of all but those paused trials of which more was heard later."""
    last = {o.configuration.hash: place for place, o in enumerate(observations)}
    kept = [i for i, o in enumerate(observations) if not o.paused or last[o.configuration.hash] == i]
    return np.array(kept, dtype=np.intp)


def losses(problem: Problem, observations: Sequence[Observation]) -> Floats:
    """:func:`signed`, as logarithms where every number is positive, as times, rates and sizes are.

    Shape (n,). What counts of those is the ratio: a slow-down by a factor weighs the same anywhere.
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
    """Losses with the slow side cut at ``middle + (middle - best)``, for a Gaussian process.

    The times of a kernel spread over orders of magnitude and only their fast end matters. A process
    that must also explain the slow end spends its length scales there. NaN stays NaN.

    ``values`` are in the order in which they were measured, and ``middle`` is the highest that their
    running median ever stood. A search crowds around the best: the median of all of it sinks to what it
    likes already, and a cut there would hide how the rest of the space differs.
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
    optimum often lies; and a failure left out is tried again and again. All zero where nothing succeeded.
    """
    known = values[~np.isnan(values)]
    worst = float(known.max()) if known.size else 0.0
    return np.where(np.isnan(values), worst, values)
