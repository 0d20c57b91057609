"""Which trials a model of failures learns from, where there are many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autotune.search.contract import Observation
from autotune.search.models.arrays import Flags, Integers

MOST = 200
"""The most trials. More hardly teach more, and the cost of learning grows with their square and cube."""


def thinned(observations: Sequence[Observation]) -> Sequence[Observation]:
    """At most :data:`MOST` of them, as :func:`spread` chooses."""
    if len(observations) <= MOST:
        return observations
    return [observations[i] for i in spread(np.array([o.status.failed for o in observations]))]


def spread(failed: Flags) -> Integers:
    """The rows of at most :data:`MOST` trials, spread evenly over successes and failures in equal parts."""
    if len(failed) <= MOST:
        return np.arange(len(failed))
    parts = [np.flatnonzero(failed), np.flatnonzero(~failed)]
    fewer = min(len(part) for part in parts)
    rows = [_even(part, max(MOST // 2, MOST - fewer)) for part in parts]
    return np.sort(np.concatenate(rows))


def _even(rows: Integers, most: int) -> Integers:
    return rows if len(rows) <= most else rows[np.linspace(0, len(rows) - 1, most).astype(int)]
