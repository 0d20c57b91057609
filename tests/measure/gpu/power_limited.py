"""A GPU with a limit of power, simulated: event source, apparatus and watcher in one, on a clock of its own.

What it draws is averaged over some tens of milliseconds. Once that average stands at the limit the clock is
lowered until it stays there, and it rises again in whatever pause there is. So a kernel that draws more than
the limit is fast at first and slow later: on an H200 of 700 W a product in half precision takes 186 us for 60
to 100 ms, 210 from then on, and 50 ms of rest undo that. These numbers are where the constants are from.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from autotune.measure.gpu.conditions import REASONS, Conditions

LIMIT, IDLE = 700.0, 100.0
"""Watts."""

AVERAGED_SECONDS = 0.07
STEERING = 8.0
"""By how many watts what may be drawn falls for each watt of the average above the limit."""

POWER_EXPONENT = 3.3
"""Beyond what an idle device draws, power grows with this power of the clock."""

FULL_MHZ = 1980.0
LAUNCH_SECONDS, ASKING_SECONDS = 5e-6, 0.4e-3
"""Of the host's time: handing over a piece of work, and asking how the device stands."""

QUEUE = 1000
"""Pieces of work that wait for the device at most; then the host waits."""

STEP_SECONDS = 0.25e-3


@dataclass(frozen=True)
class Work:
    """What one launch has to do: so long at full clock, and drawing so many watts then."""

    seconds: float
    watts: float


@dataclass
class Mark:
    """When the device came by it; ``None`` so far."""

    at: float | None = None


@dataclass
class PowerLimitedGpu:
    """The host's clock is :attr:`now`. The device is at its queue meanwhile, as far as :attr:`reached`."""

    now: float = 100.0
    reached: float = 100.0
    average: float = IDLE
    """Watts, over :data:`AVERAGED_SECONDS`."""
    launch_seconds: float = LAUNCH_SECONDS
    resolution: float = 0.5e-6
    flush_bytes: int = 100 << 20
    _queue: deque[tuple[float, Work | Mark]] = field(default_factory=deque)

    # -- the device

    def run(self, work: Work) -> None:
        """All of it at once: the device's clock goes on, and the host's stays."""
        left = 1.0
        while left > 1e-9:
            share = self._clock_share(work.watts)
            whole = work.seconds / share
            step = min(STEP_SECONDS, left * whole)
            self._pass(step, IDLE + (work.watts - IDLE) * share**POWER_EXPONENT)
            left -= step / whole

    def steady_seconds(self, work: Work) -> float:
        """What a launch takes in the long run."""
        for _ in range(math.ceil(1.0 / work.seconds)):
            self.run(work)
        before = self.reached
        self.run(work)
        return self.reached - before

    def _clock_share(self, watts: float) -> float:
        allowed = LIMIT + STEERING * (LIMIT - self.average)
        if watts <= allowed:
            return 1.0
        return max(0.3, (max(allowed - IDLE, 1.0) / (watts - IDLE)) ** (1 / POWER_EXPONENT))

    def _pass(self, seconds: float, watts: float) -> None:
        self.average += (watts - self.average) * -math.expm1(-seconds / AVERAGED_SECONDS)
        self.reached += seconds

    def _take_one(self) -> None:
        handed_over, piece = self._queue.popleft()
        if handed_over > self.reached:
            self._pass(handed_over - self.reached, IDLE)
        if isinstance(piece, Mark):
            piece.at = self.reached
        else:
            self.run(piece)

    # -- what the host does

    def clock(self) -> float:
        return self.now

    def spend(self, seconds: float) -> None:
        self.now += seconds

    def launch(self, work: Work) -> None:
        self.now += self.launch_seconds
        self._queue.append((self.now, work))
        if len(self._queue) > QUEUE:
            self._take_one()
            self.now = max(self.now, self.reached)

    # -- event source and apparatus

    @property
    def events(self) -> PowerLimitedGpu:
        return self

    def record(self) -> Mark:
        mark = Mark()
        self._queue.append((self.now, mark))
        return mark

    def elapsed(self, start: Mark, end: Mark) -> float:
        assert start.at is not None and end.at is not None, "the device has not come by it"
        return end.at - start.at

    def wait(self, mark: Mark) -> None:
        while mark.at is None:
            self._take_one()
        self.now = max(self.now, mark.at)

    def synchronise(self) -> None:
        while self._queue:
            self._take_one()
        self.now = max(self.now, self.reached)

    def flush(self) -> None:
        self.launch(Work(30e-6, 400.0))

    def hold(self, seconds: float) -> None:
        self.launch(Work(seconds, 150.0))

    def capture(self, run: Callable[[], None]) -> Callable[[], None]:
        def replay() -> None:
            """One launch, whatever is in it."""
            self.now += LAUNCH_SECONDS
            self.launch_seconds = 0.0
            try:
                run()
            finally:
                self.launch_seconds = LAUNCH_SECONDS

        return replay

    def free_bytes(self) -> int:
        return 1 << 34

    # -- watcher

    def conditions(self) -> Conditions:
        self.now += ASKING_SECONDS
        while self._queue and self.reached < self.now:
            self._take_one()
        capped = REASONS["power_cap"] if self.average > 0.99 * LIMIT else 0
        return Conditions(FULL_MHZ * self._clock_share(2 * LIMIT), 2619, 60, self.average, capped)

    def joules(self) -> float | None:
        return None

    def others(self) -> int | None:
        self.now += ASKING_SECONDS
        return 0

    def utilisation(self) -> int | None:
        return 0
