"""Before anything has succeeded: the candidate that is likeliest to succeed and to keep all bounds.

Bounds and limits may leave so little of a space that random tries never meet it. But each trial past a bound
says by how much it is past, and each failed one says where not to look; where one ran out of memory, a
smaller one may fit. Until one succeeds there is no value to improve on, so the probability of success is
maximised (Gelbart, Snoek and Adams, *Bayesian Optimization with Unknown Constraints*, UAI 2014).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autotune.search.candidates.climb import Candidate, best_first, rounded
from autotune.search.candidates.pool import Pool
from autotune.search.contract import Observation, Problem, Reason
from autotune.search.models.arrays import Floats
from autotune.search.models.bounds import Bounds, as_run
from autotune.search.models.feasibility import Feasibility
from autotune.search.models.features import Features
from autotune.space.configuration import Configuration

NEAREST = 4
"""All neighbours of so many trials are candidates: of those that were the likeliest to succeed."""
DOUBTED = -3.0
"""Smaller logarithms of a probability, as a model of a bound has them, are not taken literally."""


def sober(logs: Floats) -> Floats:
    """Logarithms of probabilities as they are believed; their order stays.

    A Gaussian process that has seen nothing near a bound may place it ten or thirty standard deviations away
    from what it knows. Beside such a number, no failures would count against a region in which nothing was
    measured because whatever was tried there failed.
    """
    return np.where(logs < DOUBTED, DOUBTED - np.log1p(np.maximum(DOUBTED - logs, 0.0)), logs)


def likeliest(
    problem: Problem,
    features: Features,
    pool: Pool,
    told: Sequence[Observation],
    pending: Sequence[Configuration],
    taken: set[str],
    rng: np.random.Generator,
) -> Candidate | None:
    """The candidate that is not ``taken`` and likeliest to succeed.

    What is ``pending`` is assumed to end as predicted, so that proposals keep apart. ``None`` where nothing
    is left; and every other time where no bounded metric was measured: then the likeliest candidates are as
    far as possible from all failures, in the corners, and chance is quicker where the middle succeeds. Raises
    ``numpy.linalg.LinAlgError`` where rounding defeats a process.
    """
    bounds = Bounds(problem, features, pool, told)
    if not bounds.modelled and len(taken) % 2:
        return None
    feasibility = Feasibility(features, pool, as_run(problem, told), problem.memory)
    tried = features.of([o.configuration for o in told])
    likely = sober(bounds.log_probability_at(tried)) + np.log(feasibility.success_at(tried))
    nearest = np.argsort(-likely, kind="stable")[:NEAREST]
    columns = pool.near([told[int(i)].configuration for i in nearest], rng)
    with bounds.supposing(features.of(list(pending))):
        gain = sober(bounds.log_probability(columns)) + feasibility.log_success(columns)[0]

    def reason(row: int) -> Reason:
        return {"kind": "towards a success", "success": float(np.exp(gain[row]))}

    return next(best_first(pool, columns, np.zeros(len(gain)), rounded(gain), taken, reason), None)
