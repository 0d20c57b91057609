"""A GPU with a limit of power, simulated: event source, apparatus and watcher in one, on a clock of its own.

What it draws is averaged over some tens of milliseconds, and the clock falls while that average is above the
limit, and rises below it. So a kernel that draws more than the limit is fast at first and slow later: on an
H200 of 700 W a product in half precision takes 186 us for 60 to 100 ms, 210 from then on, and 50 ms of rest
undo that. And the clock swings: on an H100 by 5 to 10 % behind a change of what is drawn, in a fifth of a
second to and fro. These numbers are where the constants are from.
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
STEERING = 0.037
"""By what share of the full clock it falls in a second, for each watt of the average above the limit."""

POWER_EXPONENT = 2.6
"""Beyond what an idle device draws, power grows with this power of the clock."""

COUNTER_SECONDS = 0.1
"""So often the counter of energy is written to."""

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
    share: float = 1.0
    """Of the full clock."""
    energy: float = 0.0
    """Joules since :attr:`reached` was 0."""
    counts: bool = True
    """Whether there is a counter of energy."""
    launch_seconds: float = LAUNCH_SECONDS
    resolution: float = 0.5e-6
    flush_bytes: int = 100 << 20
    gaps: list[int] = field(default_factory=list)
    """Sizes, as tensors were to be moved."""
    _counted: float = 0.0
    _queue: deque[tuple[float, Work | Mark]] = field(default_factory=deque)

    # -- the device

    def run(self, work: Work) -> None:
        """All of it at once: the device's clock goes on, and the host's stays."""
        left = 1.0
        while left > 1e-9:
            whole = work.seconds / self.share
            step = min(STEP_SECONDS, left * whole)
            left -= step / whole
            self._pass(step, IDLE + (work.watts - IDLE) * self.share**POWER_EXPONENT)

    def steady_seconds(self, work: Work) -> float:
        """What a launch takes in the long run."""
        for _ in range(math.ceil(3.0 / work.seconds)):
            self.run(work)
        before = self.reached
        self.run(work)
        return self.reached - before

    def _pass(self, seconds: float, watts: float) -> None:
        self.average += (watts - self.average) * -math.expm1(-seconds / AVERAGED_SECONDS)
        self.share = min(1.0, max(0.3, self.share - STEERING * (self.average - LIMIT) * seconds))
        self.reached += seconds
        self.energy += watts * seconds
        if self.reached // COUNTER_SECONDS > (self.reached - seconds) // COUNTER_SECONDS:
            self._counted = self.energy

    def _take_one(self) -> None:
        handed_over, piece = self._queue.popleft()
        if handed_over > self.reached:
            self._rest(handed_over - self.reached)
        if isinstance(piece, Mark):
            piece.at = self.reached
        else:
            self.run(piece)

    def _rest(self, seconds: float) -> None:
        while seconds > 0:
            self._pass(min(STEP_SECONDS, seconds), IDLE)
            seconds -= STEP_SECONDS

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

    def relocate(self, gap_bytes: int) -> None:
        self.gaps.append(gap_bytes)

    # -- watcher

    def conditions(self) -> Conditions:
        self._ask()
        capped = REASONS["power_cap"] if self.share < 1 else 0
        return Conditions(FULL_MHZ * self.share, 2619, 60, self.average, capped)

    def joules(self) -> float | None:
        self._ask()
        return self._counted if self.counts else None

    def _ask(self) -> None:
        self.now += ASKING_SECONDS
        while self._queue and self.reached < self.now:
            self._take_one()

    def limit_watts(self) -> float | None:
        return LIMIT

    def others(self) -> int | None:
        self.now += ASKING_SECONDS
        return 0

    def utilisation(self) -> int | None:
        return 0
