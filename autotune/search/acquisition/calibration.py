"""Whether tries succeed as often as was predicted.

What is chosen as the best of many was mostly overrated (Smith and Winkler, The Optimizer's Curse, Management
Science 52, 2006): the more there is to gain beyond a limit, the more often a candidate comes first because
its probability of success was predicted too high. Of all configurations with a predicted probability of a
half, half succeed; of those that searches chose at such odds, once they had found the best that fits, one in
four did.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from autotune.search.contract import Observation

SURE = 0.97
"""Tries that were predicted to succeed more probably than this teach nothing; the others are *doubtful*."""
LATEST = 10
"""So many of the latest doubtful tries count: how much is overrated changes with how much is left to find."""
DOUBT = 1.5
"""The standard deviation of the logarithm of the power, before anything was tried."""
POWERS = np.exp(np.linspace(0.0, 3.0, 31))
"""The powers to choose from."""


def overconfidence(observations: Sequence[Observation]) -> float:
    """The power, at least 1, to which probabilities have to be raised to agree with the latest tries.

    A power hardly changes a probability near 1. Returned is the most probable one, for a logarithm that is
    normally distributed about 0 beforehand. What was predicted stands in the reasons of the observations.
    """
    promised, kept = _latest_doubtful(observations)
    logs = POWERS[:, None] * np.log(promised)
    likelihood = np.where(kept, logs, np.log(-np.expm1(logs))).sum(axis=1)
    return float(POWERS[int(np.argmax(likelihood - 0.5 * (np.log(POWERS) / DOUBT) ** 2))])


def _latest_doubtful(observations: Sequence[Observation]) -> tuple[np.ndarray, np.ndarray]:
    """Their probabilities of success as they were predicted, and whether they did succeed."""
    ended = (o for o in reversed(observations) if not o.paused)
    predicted = ((o.reason.get("success"), not o.status.failed) for o in ended)
    doubtful = ((p, kept) for p, kept in predicted if isinstance(p, float) and 0.0 < p < SURE)
    rows = np.array(list(islice(doubtful, LATEST))).reshape(-1, 2)
    return rows[:, 0], rows[:, 1] > 0
