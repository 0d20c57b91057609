"""Whether tries succeed as often as was predicted of them.

What is chosen as the best of many is mostly what was overrated (Smith and Winkler, The Optimizer's Curse,
Management Science 52, 2006): the more is to be gained beyond a limit, the more likely a candidate is in
front because its probability of success came out too high. Of all configurations that are thought to succeed
at even odds half do; of those that searches chose at such odds, once they had found the best that fits, one
in four did.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import numpy as np

from autotune.search.contract import Observation

SURE = 0.97
"""Of what was to succeed more probably than this there is nothing to learn."""
LATEST = 10
"""Doubtful tries that count, the latest: how much is overrated differs with how much is left to be found."""
DOUBT = 1.5
"""The standard deviation of the logarithm of the power, before anything was tried."""
POWERS = np.exp(np.linspace(0.0, 3.0, 31))
"""From which the power is chosen."""


def overconfidence(observations: Sequence[Observation]) -> float:
    """The power, at least 1, to which probabilities are to be raised for the latest tries to be as expected.

    It leaves alone what is sure to succeed. It is the likeliest one, where its logarithm is expected to be
    normal about 0. What was predicted stands in the reasons that the observations bring along.
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
