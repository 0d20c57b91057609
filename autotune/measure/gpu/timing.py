"""How a reading of a kernel is taken: how many calls lie between two marks, and over which inputs.

A mark is uncertain by half a microsecond, and many kernels take five. So several calls lie between two marks,
and a reading consists of several such *batches*. For cold caches, the cache is flushed before each batch, and
each call in it has its own inputs and outputs, which nothing has touched since. :func:`plan` decides the
number of calls from a rough time of the kernel, and :class:`Timer` takes readings by that plan.
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
"""The least time of all batches of a reading together."""

RELATIVE_RESOLUTION = 0.005
"""The largest uncertainty from marks, as a fraction of the time of a batch."""

MOST_SETS = 64
"""The most sets of inputs and outputs."""

MOST_CALLS = 1000
"""The most calls between two marks: as many as fit into a device's queue before the host has to wait."""

MOST_BATCHES = 100
"""The most batches in a reading; each costs a flush."""

SHORT_SECONDS = 500e-6
"""A kernel shorter than this may end before the host has launched the next one."""

MOST_HOLD_SECONDS = 20e-3
"""The longest time for which the device is kept busy while the host launches ahead."""

ROUGH_SECONDS = 100e-6
"""The least time of the calls together from which the rough time of a call is taken."""


@dataclass(frozen=True)
class Plan:
    """How one reading is taken."""

    calls: int
    """Calls between two marks."""
    batches: int
    """Pairs of marks in a reading."""
    sets: int
    """Sets of inputs and outputs, used in turn; with cold caches one for each call."""
    graph: bool
    """Whether the kernel is so short that launching would show in its time, and a graph is to be used."""


def most_sets(bytes_per_set: int, free_bytes: int, caches: Caches) -> int:
    """How many sets of inputs and outputs fit into a quarter of the free memory."""
    if caches == "warm":
        return 1
    return max(1, min(MOST_SETS, free_bytes // 4 // max(bytes_per_set, 1)))


def plan(seconds: float, sets: int, caches: Caches, resolution: float) -> Plan:
    """The plan for a kernel of about ``seconds`` a call, with at most ``sets`` sets of tensors."""
    seconds = max(seconds, 1e-9)
    wanted = math.ceil(resolution / RELATIVE_RESOLUTION / seconds)
    calls = max(1, min(wanted, sets if caches == "cold" else MOST_CALLS))
    batches = max(1, min(MOST_BATCHES, math.ceil(READING_SECONDS / (calls * seconds))))
    return Plan(calls, batches, calls if caches == "cold" else 1, graph=seconds < SHORT_SECONDS)


class Apparatus(Protocol):
    """What a timer needs from a device."""

    events: EventSource
    flush_bytes: int
    """Size of the buffer that :meth:`flush` writes."""

    def flush(self) -> None:
        """Let the device overwrite its last-level cache, without waiting for that."""

    def hold(self, seconds: float) -> None:
        """Keep the device busy for about so long, so that its queue fills meanwhile."""

    def capture(self, run: Callable[[], None]) -> Callable[[], None]:
        """A function that replays all launches of ``run`` as one. Raises :class:`CannotCapture`."""

    def free_bytes(self) -> int:
        """Free memory of the device."""

    def relocate(self, gap_bytes: int) -> None:
        """Let later allocations lie elsewhere in memory, behind a gap of this size."""


class CannotCapture(Exception):  # noqa: N818 - an answer
    """This device, or this kernel, has no graphs; the text says why."""


class Timer:
    """Takes the readings of one kernel: ``calls[i]`` launches it once on its ``i``-th inputs and outputs.

    ``verify`` is called with the replay of a captured batch, and returns what is wrong with it (work on
    another stream is not in a graph); an empty text: nothing.
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
        """Submits the calls between two marks.

        Not an attribute: a timer that refers to its own method keeps its tensors until garbage is collected.
        """
        return self._replay or self._launch

    def describe(self) -> dict[str, object]:
        """How its readings are taken, as JSON."""
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
        """One reading, in seconds a call. Work that ``behind`` submits after it is not waited for."""
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
        """Where launching is slower than running, keep the device busy first, so it never awaits the host."""
        events = self._apparatus.events
        begun = perf_counter()
        start = events.record()
        self.batch()
        end = events.record()
        launching = perf_counter() - begun
        events.synchronise()
        if launching > 0.5 * events.elapsed(start, end):
            self._hold = min(1.5 * launching * self.plan.batches, MOST_HOLD_SECONDS)


def rough_seconds(apparatus: Apparatus, call: Callable[[], None]) -> float:
    """The rough time of a call, from several calls in a row; the first is not counted."""
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
        if seconds >= ROUGH_SECONDS or count >= MOST_CALLS:
            return seconds / count
        count = min(MOST_CALLS, max(count + 1, math.ceil(1.5 * count * ROUGH_SECONDS / max(seconds, 1e-9))))
