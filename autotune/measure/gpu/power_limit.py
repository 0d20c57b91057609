"""How long a kernel takes at the power limit of a device, whatever the clock happens to be. Pure.

A device that would draw more power than it may lowers its clock, which sets the speed of a kernel that runs
on and on. But the clock is seldom steady. Every change in power, by another kernel or a pause of
milliseconds, makes it oscillate around its mean by 5 % or more either way, with a period of a fifth of a
second; after a cold start it does so for ten seconds. A mean over a fifth of a second is then off by 2 %, and
where many configurations are within 2 % of the best, it is luck which one wins.

But with too high a clock the device draws too much power, and with too low a clock too little. How much it
drew is known from the energy counter, which is exact. The power varies as the clock to the ``1 / EXPONENT``,
so at exactly the power limit the kernel would take ``seconds * (drawn / allowed) ** EXPONENT``. The power
drawn is known between two steps of the counter, which come every 20 to 100 ms.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autotune.measure.gpu.energy import Look, steps_in

EXPONENT = 0.45
"""From 146 windows of a fifth of a second, of four products in half precision on an H100: their times differ
by 1.5 % as read, and by 0.5 % when corrected. The best exponents of the four are 0.35 to 0.47; with 0.4 or
0.5 the result is as good (``python -m benchmarks.gpu_limit``). Power grows with the clock and with the square
of the voltage, which has to rise with the clock: in all by less than its third power."""

INTERVALS = 2
"""The fewest intervals between steps of the counter in a window."""

LEAST_SECONDS, MOST_SECONDS = 0.15, 0.6
"""The least length of a window, and how long the counter is waited for."""

UNKNOWN_SECONDS = 0.2
"""The length of a window where there is no counter: one period of the clock's oscillation."""

SELDOM_SECONDS = 10e-3
"""The longest time between looks at the counter. With longer kernels it is not known when the counter
stepped."""

LEAST_DRAWN, MOST_DRAWN = 0.9, 1.3
"""Windows are corrected where the power drawn over the power limit is in this range. On an H100 it was 0.95
to 1.14. Where less is drawn, it is not the power limit that lowers the clock, whatever reason the driver
gives."""

CORRECTED_ERROR, UNCORRECTED_ERROR = 0.005, 0.02
"""Standard deviations of the time of a window, as fractions (H100, as above). More readings of the same trial
hardly help, since the rest depends on the kernel and the temperature. To the first is added the error from
not knowing exactly when the counter stepped (:attr:`Window.error`)."""


@dataclass(frozen=True)
class Window:
    """The mean of readings of a kernel that ran on and on."""

    seconds: float
    """Seconds a call, as read."""
    watts: float | None
    """The power drawn meanwhile; ``None``: not known well enough."""
    uncertain: float = 0.0
    """How far that power may be off, as a fraction: a standard deviation."""

    @property
    def error(self) -> float:
        """How far :meth:`at_limit` may be off, as a fraction: a standard deviation."""
        return math.hypot(CORRECTED_ERROR, EXPONENT * self.uncertain) if self.watts else UNCORRECTED_ERROR

    def held_against(self, limit: float | None) -> Window:
        """The same window; without :attr:`watts` where they are too far from the ``limit`` to correct it."""
        known = limit and self.watts and LEAST_DRAWN <= self.watts / limit <= MOST_DRAWN
        return self if known else Window(self.seconds, None)

    def at_limit(self, watts: float | None) -> float:
        """The time of a call that draws so many ``watts``; as read where either power is unknown."""
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
    """The window between two steps of the counter, or all readings without power where it stepped too seldom.

    ``looks[i]`` was taken after the reading ``times[i]`` (seconds a call), without a pause between them.
    """
    found = _whole(looks)
    between = (looks[-1].at - looks[0].at) / max(len(looks) - 1, 1)
    if found is None or between > SELDOM_SECONDS:
        return Window(statistics.fmean(times), None)
    first, last = found
    lasted = looks[last].at - looks[first].at
    watts = (looks[last].joules - looks[first].joules) / lasted
    # Each of the two steps was at an unknown time since the look before it.
    uncertain = between / math.sqrt(6) / lasted
    return Window(statistics.fmean(times[first + 1 : last + 1]), watts, uncertain)


def _whole(looks: Sequence[Look]) -> tuple[int, int] | None:
    """The looks that saw the first and the last step, if they are far enough apart; else ``None``."""
    steps = steps_in(looks)
    if len(steps) <= INTERVALS or looks[steps[-1]].at - looks[steps[0]].at < LEAST_SECONDS:
        return None
    return steps[0], steps[-1]
