"""Before anything has succeeded: the candidate that is likeliest to keep the bounds of all metrics.

Bounds may leave so little of a space that random tries never meet it. But each trial that is past a bound
says by how much. Until one succeeds there is no goal to improve on, and the probability of success is what is
maximised (Gelbart, Snoek and Adams, *Bayesian Optimization with Unknown Constraints*, UAI 2014).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autotune.search.candidates.pool import Pool
from autotune.search.contract import Observation, Problem, Reason
from autotune.search.models.bounds import Bounds, past_bound
from autotune.search.models.feasibility import Feasibility
from autotune.search.models.features import Features
from autotune.space.configuration import Configuration

NEAREST = 4
"""What was tried nearest to keeping the bounds, all of whose neighbours are candidates."""
TIE = 1e-7
"""Differences in the logarithm of a probability that are rounding's: the first candidate is taken."""


def likeliest(
    problem: Problem,
    features: Features,
    pool: Pool,
    told: Sequence[Observation],
    pending: Sequence[Configuration],
    taken: set[str],
    rng: np.random.Generator,
) -> tuple[Configuration, Reason] | None:
    """The candidate that is not ``taken`` and likeliest to succeed, and why.

    What is ``pending`` is taken to end as predicted, so that proposals keep apart. ``None`` where too little
    was measured of what is bounded, or nothing is left. Raises ``numpy.linalg.LinAlgError`` where rounding
    defeats a process.
    """
    bounds = Bounds(problem, features, pool, told)
    if not bounds.modelled:
        return None
    unexplained = [o for o in told if not past_bound(problem, o)]
    feasibility = Feasibility(features, pool, unexplained, problem.memory)
    tried = [o.configuration for o in told if o.bounded]
    nearest = np.argsort(-bounds.log_probability_at(features.of(tried)), kind="stable")[:NEAREST]
    columns = pool.near([tried[int(i)] for i in nearest], rng)
    with bounds.supposing(features.of(list(pending))):
        gain = bounds.log_probability(columns) + feasibility.log_success(columns)[0]
    for i in np.argsort(-np.round(gain / TIE), kind="stable"):
        configuration = pool.candidate(columns, int(i))
        if configuration is not None and configuration.hash not in taken:
            return configuration, {"kind": "towards the bounds", "success": float(np.exp(gain[i]))}
    return None
