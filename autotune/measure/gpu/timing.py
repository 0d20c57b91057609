"""How a reading of a kernel is taken: how many calls lie between two marks, and over which inputs.

A mark is uncertain by half a microsecond, and many kernels take five. So several calls lie between two
marks, and a reading is made of several such *batches*. Where caches are to be cold, the cache is flushed
before a batch and each call in it has inputs and outputs of its own: none of them was touched since. How
many calls there are follows from one rough time, in :func:`plan`; :class:`Timer` does what it says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from autotune.measure.clocks import perf_counter
from autotune.measure.gpu.events import EventSource

Caches = Literal["cold", "warm"]

READING_SECONDS = 1e-3
"""The marked parts of a reading last at least so long together."""

RELATIVE_RESOLUTION = 0.005
"""What a mark's uncertainty may add to the time of one batch."""

MOST_SETS = 64
"""Of inputs and outputs."""

MOST_CALLS = 1000
"""Between two marks: as many as a device's queue takes before the host has to wait."""

MOST_BATCHES = 100
"""In a reading; each costs a flush."""

SHORT_SECONDS = 500e-6
"""A kernel shorter than this may be done before the host has launched the next one."""

MOST_HOLD_SECONDS = 20e-3
"""So long at most the device is kept busy while the host launches ahead."""


@dataclass(frozen=True)
class Plan:
    """How one reading is taken."""

    calls: int
    """Between two marks."""
    batches: int
    """Pairs of marks in a reading."""
    sets: int
    """Different inputs and outputs, used in turn. As many as there are calls where caches are cold."""
    graph: bool
    """Whether a batch is short enough for the time of launching to show."""


def most_sets(bytes_per_set: int, free_bytes: int, caches: Caches) -> int:
    """How many sets of inputs and outputs there may be: in a quarter of the memory that is free."""
    if caches == "warm":
        return 1
    return max(1, min(MOST_SETS, free_bytes // 4 // max(bytes_per_set, 1)))


def plan(seconds: float, sets: int, caches: Caches, resolution: float) -> Plan:
    """The plan for a kernel of about ``seconds`` a call, with at most so many ``sets``."""
    seconds = max(seconds, 1e-9)
    wanted = math.ceil(resolution / RELATIVE_RESOLUTION / seconds)
    calls = max(1, min(wanted, sets if caches == "cold" else MOST_CALLS))
    batches = max(1, min(MOST_BATCHES, math.ceil(READING_SECONDS / (calls * seconds))))
    return Plan(calls, batches, calls if caches == "cold" else 1, graph=seconds < SHORT_SECONDS)


class Apparatus(Protocol):
    """What a device can do for a timer besides marking."""

    events: EventSource
    flush_bytes: int
    """Size of the buffer that :meth:`flush` writes."""

    def flush(self) -> None:
        """Hand the device the work of overwriting its last-level cache."""
        ...

    def hold(self, seconds: float) -> None:
        """Keep the device busy for about so long, so that its queue fills meanwhile."""
        ...

    def capture(self, run: Callable[[], None]) -> Callable[[], None]:
        """What replays all that ``run`` launches with one launch. Raises :class:`CannotCapture`."""
        ...

    def free_bytes(self) -> int:
        """Memory of the device that nobody uses."""
        ...

    def relocate(self, gap_bytes: int) -> None:
        """See to it that what is allocated next lies elsewhere in memory, behind a gap of that size."""
        ...


class CannotCapture(Exception):  # noqa: N818 - an answer
    """This device, or this kernel, has no graphs; the text says why."""


class Timer:
    """Takes the readings of one kernel: ``calls[i]`` launches it once on its ``i``-th inputs and outputs.

    ``verify`` is called after a captured batch has been replayed once, and says what is wrong with that
    (work that went to another stream is not in a graph); an empty text: nothing.
    """

    def __init__(
        self,
        apparatus: Apparatus,
        calls: Sequence[Callable[[], None]],
        plan: Plan,
        caches: Caches,
        verify: Callable[[Callable[[], None]], str] = lambda replay: "",
    ) -> None:
        self.plan = plan
        self.caches = caches
        self.graph_problem = ""
        """Why batches are launched call by call although they are short."""
        self._apparatus = apparatus
        self._calls = calls
        self._hold = 0.0
        self._replay: Callable[[], None] | None = None
        if plan.graph:
            self._capture(verify)
        self._set_hold()

    @property
    def captured(self) -> bool:
        return self._replay is not None

    @property
    def batch(self) -> Callable[[], None]:
        """Hands the device what lies between two marks.

        Not an attribute: a timer that holds its own method keeps its tensors until garbage is collected.
        """
        return self._replay or self._launch

    def describe(self) -> dict[str, object]:
        """What is to be known of its readings, as JSON."""
        known: dict[str, object] = {
            "caches": self.caches,
            "calls": self.plan.calls,
            "batches": self.plan.batches,
            "launched": "graph" if self.captured else "calls",
        }
        if self.caches == "cold":
            known |= {"sets": self.plan.sets, "flushed_bytes": self._apparatus.flush_bytes}
        if self.graph_problem:
            known["no_graph"] = self.graph_problem
        return known

    def read(self, behind: Callable[[], None] = lambda: None) -> float:
        """Seconds a call: one reading. What ``behind`` hands to the device is not waited for."""
        events = self._apparatus.events
        marks = []
        if self._hold:
            self._apparatus.hold(self._hold)
        for _ in range(self.plan.batches):
            if self.caches == "cold":
                self._apparatus.flush()
            start = events.record()
            self.batch()
            marks.append((start, events.record()))
        behind()
        events.wait(marks[-1][1])
        return sum(events.elapsed(*pair) for pair in marks) / (self.plan.batches * self.plan.calls)

    def _launch(self) -> None:
        calls, sets = self._calls, self.plan.sets
        for index in range(self.plan.calls):
            calls[index % sets]()

    def _capture(self, verify: Callable[[Callable[[], None]], str]) -> None:
        try:
            replay = self._apparatus.capture(self._launch)
        except CannotCapture as why:
            self.graph_problem = str(why)
            return
        self.graph_problem = verify(replay)
        if not self.graph_problem:
            self._replay = replay

    def _set_hold(self) -> None:
        """Launching must not be slower than running, or a mark waits for the host and its time is counted."""
        events = self._apparatus.events
        begun = perf_counter()
        start = events.record()
        self.batch()
        end = events.record()
        launching = perf_counter() - begun
        events.synchronise()
        if launching > 0.5 * events.elapsed(start, end):
            self._hold = min(1.5 * launching * self.plan.batches, MOST_HOLD_SECONDS)


def rough_seconds(apparatus: Apparatus, call: Callable[[], None], least: float = 100e-6) -> float:
    """About how long a call takes, from as many as last ``least`` seconds; the first one is not counted."""
    events = apparatus.events
    call()
    events.synchronise()
    count = 1
    while True:
        start = events.record()
        for _ in range(count):
            call()
        end = events.record()
        events.synchronise()
        seconds = events.elapsed(start, end)
        if seconds >= least or count >= MOST_CALLS:
            return seconds / count
        count = min(MOST_CALLS, max(count + 1, math.ceil(1.5 * count * least / max(seconds, 1e-9))))
