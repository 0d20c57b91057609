"""How fast a core is just now: the time of a fixed piece of work, taken beside the readings.

On a machine that others share, a core can be a third slower for seconds or for hours, when its sibling
thread works for somebody else, and no counter in the guest shows it: no steal, no load, no clock. A piece of
work that is always the same does. Half of it is Python's own instructions, half arithmetic on vectors within
the first-level cache; it leaves other caches alone and calls no library that has threads of its own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from autotune.measure.clocks import perf_counter

EVERY_SECONDS = 0.01
"""A sample that is younger than this is used again, so that sampling costs at most a few per cent of the
time."""

_STEPS = 2500
_SIDE = 64
_PRODUCTS = 2
"""Steps in plain Python, then products of matrices of this side: half of the time each."""


class Pace:
    """``pace()`` is the time in seconds, about 0.2 ms, that the fixed work takes the calling thread."""

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._matrix = np.full((_SIDE, _SIDE), 0.5)
        self._product = np.empty_like(self._matrix)
        self._work()  # the first time is slower than any other
        self._taken: tuple[float, float] | None = None

    def __call__(self) -> float:
        """The time of a sample that is at most :data:`EVERY_SECONDS` old."""
        began = self._clock()
        if self._taken is not None and began - self._taken[0] <= EVERY_SECONDS:
            return self._taken[1]
        self._work()
        ended = self._clock()
        self._taken = ended, ended - began
        return ended - began

    def _work(self) -> None:
        total = 0
        for step in range(_STEPS):
            total += step * step
        for _ in range(_PRODUCTS):
            np.einsum("ij,jk->ik", self._matrix, self._matrix, out=self._product)
