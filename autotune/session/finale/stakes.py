"""What a finale has to tell from noise: how much better its finalists looked in the search. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.measure.outcome import Estimate
from autotune.measure.rules.statistics import student_quantile

TOLD_APART, LIKELY_TOLD_APART = 0.4, 0.7
"""Half of the usual interval, as a fraction of a gain, that tells this gain from noise nearly always, and in
two cases of three. (Simulated: four contenders, eight to sixteen rounds, the three finalists alike.)"""


@dataclass(frozen=True)
class Stakes:
    """As the search has them, in fractions of a value; 0 where they are unknown."""

    gain: float = 0.0
    """How much better than the default the middle finalist was: the best one was perhaps the luckiest."""
    noise: float = 0.0
    """The standard deviation of one reading."""

    @classmethod
    def of(cls, default: Estimate | None, finalists: Sequence[Estimate], sign: float) -> Stakes:
        """By what trials came to; ``sign`` is -1 if the goal is to maximize."""
        known = [one for one in (default, *finalists) if one is not None and one.error and one.value]
        noise = [one.error * math.sqrt(one.n) / abs(one.value) for one in known]
        if default is None or not default.value or not finalists:
            return cls()
        found = statistics.median(one.value for one in finalists)
        gain = sign * (default.value - found) / abs(default.value)
        return cls(max(0.0, gain), statistics.median(noise or [0.0]))

    def rounds_to_show(self, least: int, most: int) -> int:
        """How many rounds, from ``least`` to ``most``, are likely to show the gain; ``least`` if unknown."""
        if not self.gain or not self.noise:
            return least
        for rounds in range(max(least, 2), most):
            if self.noise * _half(rounds) <= LIKELY_TOLD_APART * self.gain:
                return rounds
        return max(least, most)

    def shown_by(self, width: float, rounds: int, more: int) -> bool:
        """Whether the gain is likely to be shown after ``more`` rounds in all, and is not yet.

        ``width``: half of the usual interval after ``rounds`` rounds, as a fraction of its value. It depends
        on the noise, and not on who is ahead, so that going on favours no one.
        """
        if not 2 <= rounds < more or width <= TOLD_APART * self.gain:
            return False
        return width * _half(more) / _half(rounds) <= LIKELY_TOLD_APART * self.gain


UNKNOWN = Stakes()


def _half(n: int) -> float:
    """Half of the 95 % interval of a mean of ``n`` readings, in their standard deviations."""
    return student_quantile(0.975, n - 1) / math.sqrt(n)
