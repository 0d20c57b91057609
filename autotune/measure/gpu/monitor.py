"""The device while it is measured: warmed up, watched between readings, its energy counted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from autotune.measure.gpu.conditions import (
    THROTTLED,
    Conditions,
    WarmUp,
    reasons_in,
    together,
    why_throttled,
)
from autotune.measure.gpu.energy import PIECE_SECONDS, Energy, Look, energy_per_run, enough
from autotune.measure.gpu.events import EventSource
from autotune.measure.gpu.power_limit import UNCORRECTED_ERROR, Window, is_enough, window_of

PIECES_SECONDS = 10e-3
"""A warm-up is timed in pieces of about this length."""

COLD_START = WarmUp()
"""The warm-up for the first kernel in a process: the device may have been idle for long."""

SETTLING = WarmUp(least_seconds=0.12, most_seconds=0.3, window=3, tolerance=0.01)
"""The warm-up for a later kernel, until the device is in the state that it keeps while this kernel runs on.

A power limit acts late: on an H200 (700 W) a product in half precision takes 186 us for its first 60 to 100
ms, and 210 us from then on. 50 ms of rest undo that. If readings may come before or after that moment, a
configuration is known to a tenth at best, and those that draw less power win less often than they should.
"""

FIRST_LOOK = WarmUp(least_seconds=0.02, most_seconds=0.5, window=1, tolerance=0.02)
"""The warm-up for a later kernel, before readings that only show whether it is far too slow."""

UNSETTLED = 0.1
"""How much too slow a kernel may seem after :data:`FIRST_LOOK`, as a fraction: the kernel before it has left
the device with a lower clock (50 ms after a product in half precision, one in float32 takes 7 % longer on an
H200, 100 ms after it 2 %)."""

BRIDGE_SECONDS = 5e-3
"""After each reading a settled device is given so much more of the same work, so that it does not pause while
the host prepares the next reading, which takes a millisecond or two.

At its power limit a device profits from pauses: in ten readings of a millisecond each, the clock of an H200
rose from one to the next, by a seventh in all; with pauses of a tenth of the time, by a fifteenth in all.
"""

GLANCE_SECONDS = 2.5e-3
"""The same at the power limit, where the energy counter is looked at in between."""

LIMIT_SECONDS = 0.06
"""A device that is at its power limit after this time need not warm up any longer, since readings are
corrected for the present clock (:mod:`autotune.measure.gpu.power_limit`)."""

LONG_READING_SECONDS = 10e-3
"""After a reading of this length the pause before the next one does not matter."""

AWAKE_SECONDS = 1.0
"""A device that has been idle for longer than this is warmed up as for the first kernel."""

AWAKE_CLOCK, AWAKE_USE = 0.9, 30
"""Unless other processes kept it busy: its clock at this fraction of the steady one or its power at the
limit, and in use for so many per cent of the time. The entrants of a finale do that for each other, and need
not warm it up from the beginning each time."""

PAUSE_SECONDS = 0.5
"""The pause after a discarded reading, since throttling does not end at once."""


class Watcher(Protocol):
    """The questions about a device; :class:`autotune.measure.gpu.nvml.Nvml` answers them."""

    def conditions(self) -> Conditions: ...

    def joules(self) -> float | None: ...

    def limit_watts(self) -> float | None: ...

    def others(self) -> int | None: ...

    def utilisation(self) -> int | None: ...


@dataclass(frozen=True)
class Watched:
    """A reading, and what is known about it."""

    seconds: float
    context: Mapping[str, float]
    discarded: str = ""
    why: str = ""
    """Why it was discarded, in words."""


@dataclass
class Monitor:
    """Watches one device while a process lives."""

    watcher: Watcher | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    steady_mhz: float | None = None
    """The SM clock at the end of the last warm-up."""
    warmed: float = 0.0
    """Seconds that the last warm-up took."""
    settled: bool = field(default=False, init=False)
    """Whether the kernel has run for long enough for the state of the device to be steady."""
    capped: bool = field(default=False, init=False)
    """Whether power was at its limit after the last warm-up or reading."""
    window: Window | None = field(default=None, init=False)
    """The window of the last reading, if it was taken at the power limit and counts."""
    _last: float | None = field(default=None, init=False)
    """When the device was last busy."""

    def warm_up(
        self, run: Callable[[], None], events: EventSource, seconds: float, *, settle: bool = True
    ) -> None:
        """Run the kernel of about ``seconds`` a call until its time and the clock are steady.

        Without ``settle`` that is enough for a first look only, unless the device was asleep. Otherwise the
        device always has another piece of work while the host looks at the last one, and when this returns,
        since it would profit from a pause.
        """
        rule = COLD_START if self.asleep else SETTLING if settle else FIRST_LOOK
        self.settled, self.window = rule is not FIRST_LOOK, None
        count = min(10_000, max(1, round(PIECES_SECONDS / max(seconds, 1e-9))))
        marks = [events.record()]

        def hand_over() -> None:
            for _ in range(count):
                run()
            marks.append(events.record())

        at: list[float] = []
        times: list[float] = []
        seen: list[Conditions] = []
        begun = self.clock()
        if self.settled and seconds < LONG_READING_SECONDS:
            hand_over()
        while not _long_enough(rule, at, times, seen):
            hand_over()
            piece = len(seen)
            events.wait(marks[piece + 1])
            at.append(self.clock() - begun)
            times.append(events.elapsed(marks[piece], marks[piece + 1]) / count)
            seen.append(self._conditions())
        self.steady_mhz = seen[-1].sm_clock_mhz
        self.capped = _is_capped(seen[-1])
        self.warmed = at[-1]
        self._last = self.clock()

    @property
    def shared_error(self) -> float:
        """How far all readings taken now may be off together, as a fraction: a standard deviation."""
        if not self.settled:
            return UNSETTLED / 2
        if self.window is not None:
            return self.window.error
        return UNCORRECTED_ERROR if self.capped else 0.0

    @property
    def at_limit(self) -> bool:
        """Whether readings have to be taken with :meth:`watch_at_limit`."""
        return self.settled and self.capped

    def bridge(self, run: Callable[[], None], seconds: float, reading_seconds: float) -> None:
        """Submit more calls of about ``seconds`` to a settled device, while it is still at a reading."""
        if self.settled and reading_seconds < LONG_READING_SECONDS:
            lasting = GLANCE_SECONDS if self.capped else BRIDGE_SECONDS
            for _ in range(min(10_000, math.ceil(lasting / max(seconds, 1e-9)))):
                run()

    def watch(self, read: Callable[[], float]) -> Watched:
        """Take a reading, with the state of the device meanwhile and whether the reading counts."""
        self.window = None
        before = self._conditions()
        seconds = read()
        self._last = self.clock()
        after = self._conditions()
        self.capped = _is_capped(after)
        why = why_throttled(before, after, self.steady_mhz)
        if why:
            self.sleep(PAUSE_SECONDS)
            self._last = None  # and warm it up again
            self.settled = False
        return Watched(seconds, together(before, after).numbers(), THROTTLED if why else "", why)

    def watch_at_limit(self, read: Callable[[], float]) -> Watched:
        """A reading of a settled device at its power limit: many readings by ``read``, one after the other.

        If the device turns out not to be at its limit, it is a single reading by ``read``, as usual.
        """
        found: list[Window] = []

        def take() -> float:
            found.append(self._window(read))
            return found[-1].seconds

        watched = self.watch(take)
        if not self.capped and not watched.discarded:
            return self.watch(read)
        limit = self.watcher.limit_watts() if self.watcher is not None else None
        window = found[-1].held_against(limit)
        self.window = None if watched.discarded else window
        known = {"as_read": window.seconds, "drawn_watts": window.watts, "limit_watts": limit}
        context = {**watched.context, **{name: value for name, value in known.items() if value is not None}}
        return replace(watched, seconds=window.at_limit(limit), context=context)

    def _window(self, read: Callable[[], float]) -> Window:
        """Readings with looks at the energy counter between them, during the work of :meth:`bridge`."""
        looks: list[Look] = []
        times: list[float] = []
        joules = self._joules()
        counts = joules is not None
        while not is_enough(looks, counts):
            times.append(read())
            at, seen = self.clock(), self._joules()
            joules = joules if seen is None else seen  # no answer counts as no step
            looks.append(Look(at, joules or 0.0, len(times)))
        return window_of(looks, times)

    def _joules(self) -> float | None:
        return self.watcher.joules() if self.watcher is not None else None

    @property
    def asleep(self) -> bool:
        """Whether the device has to be warmed up from the beginning before a reading."""
        if self._last is None:
            return True
        return self.clock() - self._last > AWAKE_SECONDS and not self._kept_awake()

    def _kept_awake(self) -> bool:
        conditions, steady = self._conditions(), self.steady_mhz
        clock = conditions.sm_clock_mhz
        high = clock is not None and bool(steady) and clock >= AWAKE_CLOCK * (steady or 0.0)
        if self.watcher is None or not (high or _is_capped(conditions)):
            return False
        return (self.watcher.utilisation() or 0) >= AWAKE_USE

    def energy(
        self, run: Callable[[], None], synchronise: Callable[[], None], seconds: float
    ) -> Energy | None:
        """Joules a run, watching the counter while the kernel runs again and again; ``None`` is unknown."""
        if self.watcher is None or self.watcher.joules() is None:
            return None
        count = max(1, min(10_000, round(PIECE_SECONDS / max(seconds, 1e-9))))
        looks: list[Look] = []
        while not enough(looks):
            for _ in range(count if looks else 0):
                run()
            synchronise()
            joules = self.watcher.joules()
            if joules is None:
                return None
            looks.append(Look(self.clock(), joules, count * len(looks)))
        self._last = self.clock()
        return energy_per_run(looks)

    def company(self) -> Mapping[str, int]:
        """Others on the device, if any: how many processes, and per cent of the time that it is in use."""
        others = self.watcher.others() if self.watcher is not None else None
        if self.watcher is None or not others:
            return {}
        return {"other_processes": others, "utilisation": self.watcher.utilisation() or 0}

    def _conditions(self) -> Conditions:
        return self.watcher.conditions() if self.watcher is not None else Conditions()


def _is_capped(conditions: Conditions) -> bool:
    return "power_cap" in reasons_in(conditions.throttle_reasons)


def _long_enough(
    rule: WarmUp, at: Sequence[float], times: Sequence[float], seen: Sequence[Conditions]
) -> bool:
    """Whether a warm-up may end. At the power limit it does not wait for the clock, which never is steady."""
    if at and _is_capped(seen[-1]):
        least = LIMIT_SECONDS if rule is SETTLING else max(rule.least_seconds, SETTLING.least_seconds)
        if at[-1] >= least:
            return True
    return rule.done(at, times, [conditions.sm_clock_mhz for conditions in seen])
