"""How long a kernel takes at a device's limit of power, whatever the clock just happens to be. Pure.

A device that would draw more than it may is held back by its clock, and that is the speed of a kernel which
runs on and on. But the clock seldom rests there. Whatever changes what is drawn, another kernel or a pause of
milliseconds, sets it swinging about where it belongs, by 5 % and more either way, in a fifth of a second to
and fro; behind a cold start it swings for ten seconds. A fifth of a second of one kernel is 2 % off then, and
where many configurations are within 2 % of the best, which one wins is luck.

But too high a clock draws too much, and too low a one too little. The counter of energy, which is exact, says
how much was drawn. From that follows what the kernel would take if it drew just what it may, as power goes
with the clock to the ``1 / EXPONENT``: ``seconds * (drawn / allowed) ** EXPONENT``. What was drawn is known
between two steps of the counter, of which there is one each 20 to 100 ms.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.measure.gpu.energy import Look, steps_in

EXPONENT = 0.45
"""Of four products in half precision on an H100, 146 windows of a fifth of a second, in which times differ by
1.5 % as they were read, and by 0.5 % so. Their own exponents are 0.35 to 0.47; with 0.4 or 0.5 it would be as
much (``python -m benchmarks.gpu_limit``). Power grows with the clock, and with the square of a voltage that
has to rise with it: less than the third power of the clock."""

INTERVALS = 2
"""Of the counter, that are in a window at least."""

LEAST_SECONDS, MOST_SECONDS = 0.15, 0.6
"""So long a window is at least; and so long the counter is waited for."""

UNKNOWN_SECONDS = 0.2
"""The length of a window where there is no counter: once to and fro."""

SELDOM_SECONDS = 10e-3
"""Where the counter is looked at less often, as a kernel takes so long, it is not known when it stepped."""

LEAST_DRAWN, MOST_DRAWN = 0.9, 1.3
"""Of what is allowed: such windows are made up for. On an H100 it was 0.95 to 1.14. Where less is drawn it is
not that limit that holds the clock back, whatever reason the driver names."""

CORRECTED_ERROR, UNCORRECTED_ERROR = 0.005, 0.02
"""How far the time of a window is off then: standard deviations (H100, as above). More readings of the same
trial hardly help: what remains is by kernel, or by temperature. The first is besides what follows from not
knowing when, since the last look, the counter stepped (:attr:`Window.error`)."""


@dataclass(frozen=True)
class Window:
    """What was read of a kernel while it ran on and on."""

    seconds: float
    """A call, as read."""
    watts: float | None
    """Drawn meanwhile; ``None``: not known well enough."""
    uncertain: float = 0.0
    """How far that may be off, as a share: a standard deviation."""

    @property
    def error(self) -> float:
        """How far :meth:`at_limit` may be off, as a share: a standard deviation."""
        return math.hypot(CORRECTED_ERROR, EXPONENT * self.uncertain) if self.watts else UNCORRECTED_ERROR

    def held_against(self, limit: float | None) -> Window:
        """The same, without :attr:`watts` where they do not say how far it is from so many at its limit."""
        known = limit and self.watts and LEAST_DRAWN <= self.watts / limit <= MOST_DRAWN
        return self if known else Window(self.seconds, None)

    def at_limit(self, watts: float | None) -> float:
        """Seconds of a call that draws so many ``watts``; as read where either is unknown."""
        if not watts or not self.watts or self.watts <= 0:
            return self.seconds
        return self.seconds * math.exp(EXPONENT * math.log(self.watts / watts))


def is_enough(looks: Sequence[Look], counts: bool) -> bool:
    """Whether the kernel has run for long enough; ``counts``: whether there is a counter to wait for."""
    lasted = looks[-1].at - looks[0].at if looks else 0.0
    if not counts or lasted >= MOST_SECONDS:
        return lasted >= UNKNOWN_SECONDS
    return _whole(looks) is not None


def window_of(looks: Sequence[Look], times: Sequence[float]) -> Window:
    """What lies between two steps of the counter, and all of it where it stepped too seldom.

    ``looks[i]`` was taken behind the reading ``times[i]`` (seconds of a call), and no pause lay between them.
    """
    found = _whole(looks)
    between = (looks[-1].at - looks[0].at) / max(len(looks) - 1, 1)
    if found is None or between > SELDOM_SECONDS:
        return Window(statistics.fmean(times), None)
    first, last = found
    lasted = looks[last].at - looks[first].at
    watts = (looks[last].joules - looks[first].joules) / lasted
    # Of either step it is not known when it was since the look before.
    uncertain = between / math.sqrt(6) / lasted
    return Window(statistics.fmean(times[first + 1 : last + 1]), watts, uncertain)


def _whole(looks: Sequence[Look]) -> tuple[int, int] | None:
    """The looks that saw the first and the last step of a window that is long enough."""
    steps = steps_in(looks)
    if len(steps) <= INTERVALS or looks[steps[-1]].at - looks[steps[0]].at < LEAST_SECONDS:
        return None
    return steps[0], steps[-1]
