"""What a worker notes during a request, in memory that it shares with the session.

A trial whose process dies is not lost with it: the phase in which it died, every reading that it had
taken and the facts that its program gave are here. Writing costs some microseconds, no system call, and
wakes nobody up while something is being measured.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from autotune.measure.clocks import monotonic
from autotune.measure.outcome import Reading
from autotune.measure.workers.channel import BrokenChannel, Splitter, frame, loads_plain
from autotune.measure.workers.messages import Noted

SIZE = 8 << 20
"""The size of the memory in bytes; readings that do not fit are only in the answer."""

MOST_WAITED = 3600.0
"""Seconds for which a trial may wait for another search without that counting towards its time limit."""

_USED = struct.Struct("=Q")
_WAITED = struct.Struct("=dd")
"""Seconds that were spent waiting for another search, and when the present wait began; 0: there is none."""
_HEAD = _USED.size + _WAITED.size


class SharedNotes:
    """The same memory in both processes: the worker writes, the session reads."""

    def __init__(self, descriptor: int) -> None:
        self._memory = mmap.mmap(descriptor, SIZE)

    @staticmethod
    def make() -> int:
        """A new descriptor of shared memory."""
        descriptor = os.memfd_create("autotune-notes", os.MFD_CLOEXEC)
        try:
            os.ftruncate(descriptor, SIZE)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def clear(self) -> None:
        self._memory[:_HEAD] = _USED.pack(0) + _WAITED.pack(0.0, 0.0)

    def phase(self, name: str) -> None:
        """A phase begins."""
        self._write((name, monotonic()))

    def reading(self, reading: Reading) -> None:
        self._write(reading)

    def facts(self, facts: Mapping[str, object]) -> None:
        self._write(dict(facts))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around a wait for another search: that time does not count for the trial."""
        since = monotonic()
        waited, _ = _WAITED.unpack_from(self._memory, _USED.size)
        self._memory[_USED.size : _HEAD] = _WAITED.pack(waited, since)
        try:
            yield
        finally:
            self._memory[_USED.size : _HEAD] = _WAITED.pack(waited + monotonic() - since, 0.0)

    def waited(self, now: float) -> float:
        """Seconds of :meth:`waiting` since :meth:`clear`, up to ``now`` (monotonic)."""
        waited, since = _WAITED.unpack_from(self._memory, _USED.size)
        total = waited + (now - since if since else 0.0)
        return float(total) if 0.0 <= total <= MOST_WAITED else 0.0  # a stray write may have hit them

    def read(self, now: float) -> Noted:
        """What was written since :meth:`clear`; the last phase lasted until ``now`` (monotonic)."""
        begun: list[tuple[str, float]] = []
        readings = []
        facts: dict[str, object] = {}
        try:
            (used,) = _USED.unpack_from(self._memory)
            for payload in Splitter().feed(self._memory[_HEAD : min(_HEAD + used, SIZE)]):
                entry = loads_plain(payload)
                if isinstance(entry, Reading):
                    readings.append(entry)
                elif isinstance(entry, dict):
                    facts |= entry
                else:
                    begun.append(entry)
        except BrokenChannel:
            pass  # a stray write has hit the notes: what comes before it counts
        ends = [at for _, at in begun[1:]] + [now]
        phases: dict[str, float] = {}
        for (name, start), end in zip(begun, ends, strict=True) if begun else ():
            phases[name] = phases.get(name, 0.0) + max(end - start, 0.0)
        return Noted(begun[-1][0] if begun else "", phases, tuple(readings), facts)

    def close(self) -> None:
        self._memory.close()

    def _write(self, entry: object) -> None:
        data = frame(entry)
        (used,) = _USED.unpack_from(self._memory)
        start = _HEAD + used
        if start + len(data) <= SIZE:
            self._memory[start : start + len(data)] = data
            self._memory[: _USED.size] = _USED.pack(used + len(data))
