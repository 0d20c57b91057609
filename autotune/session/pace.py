"""How far trials had come after how many seconds of their own, where the time of a search is limited. Pure.

Early stopping by steps holds a trial against others at the same step. A step may take ten times as long with
one configuration as with another, and it is mostly the slow ones that learn most in a step: small batches,
large models. With an hour left that is as it should be. With a minute left, one of them takes the time of
thirty others. So a trial whose rest would take more than :data:`SHARE` of the time that is left has to stand
by what others had come to in the seconds that it has had.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

SHARE = 0.1
"""Of the time left, that one trial may take without a comparison by time."""


@dataclass
class Curve:
    """What one run has reported, in its order."""

    times: list[float] = field(default_factory=list)
    """Seconds since the run began."""
    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def after(self, seconds: float) -> float:
        """The value of the last report until then; infinity before the first."""
        place = bisect_right(self.times, seconds)
        return self.values[place - 1] if place else math.inf

    @property
    def seconds_a_step(self) -> float:
        """Without what comes before the first report, where more than one is there: loading, checking."""
        if len(self.times) == 1 or self.steps[-1] == self.steps[0]:
            return self.times[-1] / max(self.steps[-1], 1)
        return (self.times[-1] - self.times[0]) / (self.steps[-1] - self.steps[0])


class Pace:
    """The curves of all trials, and the time that they have taken of that of the search.

    The time is counted in seconds of trials, since they stand in the record: what a session decides follows
    from that alone. ``steps``: of a whole trial. ``seconds``: of the search; ``None``: not limited.
    """

    def __init__(self, steps: int, seconds: float | None) -> None:
        self._steps = steps
        self._seconds = seconds
        self._spent = 0.0
        self._curves: dict[int, Curve] = {}

    def heard(self, number: int, step: int, value: float, at: float) -> None:
        """A trial has reported ``at`` seconds after its run began. One that begins anew has a new curve."""
        curve = self._curves.setdefault(number, Curve())
        if curve.steps and (step <= curve.steps[-1] or at < curve.times[-1]):
            curve = self._curves[number] = Curve()
        self._spent += at - (curve.times[-1] if curve.times else 0.0)
        curve.times.append(at)
        curve.steps.append(step)
        curve.values.append(value)

    def ahead(self, number: int) -> int:
        """How many others had a lower value in the seconds that this trial has had.

        None where its rest takes only a small part of the time that is left, or the time is not limited.
        """
        own = self._curves[number]
        if self._seconds is None or self._rest(own) <= SHARE * max(self._seconds - self._spent, 0.0):
            return 0
        return _lower(self._curves, number, own.times[-1], own.values[-1])

    def _rest(self, curve: Curve) -> float:
        """The seconds that the rest of a trial will take."""
        return (self._steps - curve.steps[-1]) * curve.seconds_a_step

    def said(self, number: int) -> str:
        """What a trial is held against, in words."""
        return f"in {self._curves[number].times[-1]:.3g} s, and it is slow for the time that is left"


def _lower(curves: Mapping[int, Curve], number: int, seconds: float, value: float) -> int:
    return sum(curve.after(seconds) < value for other, curve in curves.items() if other != number)
