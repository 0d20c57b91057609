"""How well a search on a recorded space did, from nothing but what it tried and in which order.

After n tries a search has ``best(n)``. Random tries without replacement would be expected to have
``base(n)``. ``P(n) = (base(n) - best(n)) / (base(n) - optimum)``, cut off at -1, is 0 for random search and 1
at the optimum. The budget is the number of random tries that come 95 % of the way from the median
to the optimum, kept between 50 and 220; the score is the mean of P over it (the methodology of
Willemsen et al., 2024, with a ceiling on the budget).

A repeat and a configuration outside the recording cost no try. A failed configuration costs one and
yields nothing; where nothing has succeeded yet, and in ``base``, it counts as the slowest success.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from autotune.errors import InputError
from autotune.measure.recordings.recording import Recording
from autotune.space.configuration import Configuration, Value

LEAST, MOST = 50, 220
"""The bounds of the budget, in tries: fewer tell little, and nobody waits for more."""
NEAR = 0.95
"""How much of the way from the median to the optimum random search has come at the budget."""


@dataclass(frozen=True)
class Judgement:
    """The verdict on one search."""

    score: float
    tries: int
    """Distinct recorded configurations that were tried, at most :data:`MOST`."""
    r10: float
    """The best time after 10 tries, over the optimum."""
    r50: float
    r200: float


class Judge:
    """Judges searches on one recording. :class:`InputError` where all of it failed."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        times = [np.nan if e.time is None else e.time for e in recording.entries]
        self._times = np.array(times, dtype=float)
        if np.isnan(self._times).all():
            raise InputError(
                f"{recording.path}: every configuration failed, so that nothing can be judged by it"
            )
        self._place = {id(entry): place for place, entry in enumerate(recording.entries)}
        self._filled = np.where(np.isnan(self._times), np.nanmax(self._times), self._times)

    @cached_property
    def optimum(self) -> float:
        return float(self._filled.min())

    @cached_property
    def baseline(self) -> NDArray[np.float64]:
        """Expected best of n = 1, 2, ... :data:`MOST` random tries without replacement.

        The best of n is the one of rank r (from 0, of N) where it is among them and the other n - 1 are among
        the N - 1 - r slower ones: C(N - 1 - r, n - 1) / C(N, n).
        """
        ranked = np.sort(self._filled)
        size = len(ranked)
        slower = size - 1 - np.arange(size)
        expected = []
        for n in range(1, min(MOST, size) + 1):
            possible = slower >= n - 1
            weights = np.exp(_log_choose(slower[possible], n - 1) - _log_choose(np.array(size), n))
            expected.append(float(weights @ ranked[possible]))
        return np.array(expected + [self.optimum] * (MOST - len(expected)))

    @cached_property
    def budget(self) -> int:
        """How many tries a search is judged over."""
        median = float(np.nanmedian(self._times))
        reached = np.flatnonzero(self.baseline <= median - NEAR * (median - self.optimum))
        return int(np.clip(reached[0] + 1 if len(reached) else MOST, LEAST, MOST))

    def judge(self, tried: Iterable[Mapping[str, Value]]) -> Judgement:
        """``ValueError`` where no configuration of the recording was tried."""
        entries = filter(None, (self.recording.find(Configuration(one)) for one in tried))
        places = list(dict.fromkeys(self._place[id(entry)] for entry in entries))[:MOST]
        if not places:
            raise ValueError("no configuration of the recording was tried")
        best = np.minimum.accumulate(self._filled[places])
        best = np.concatenate([best, np.full(MOST - len(best), best[-1])])
        n = self.budget
        ahead = self.baseline[:n] - best[:n]
        possible = self.baseline[:n] - self.optimum
        # Where random search is at the optimum too, but for rounding, there is nothing to be ahead of.
        gain = np.divide(ahead, possible, out=np.zeros(n), where=possible > 1e-9 * self.optimum)
        return Judgement(
            score=float(np.maximum(gain, -1).mean()),
            tries=len(places),
            r10=float(best[9] / self.optimum),
            r50=float(best[49] / self.optimum),
            r200=float(best[199] / self.optimum),
        )


def _log_choose(of: NDArray[np.int64], take: int) -> NDArray[np.float64]:
    logarithm: NDArray[np.float64] = gammaln(of + 1) - gammaln(take + 1) - gammaln(of - take + 1)
    return logarithm
