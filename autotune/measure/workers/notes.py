"""What a worker writes down while it goes, in memory that it shares with the session.

A trial whose process dies is not lost with it: the phase in which it died and every reading that it
had taken are here. Writing costs some microseconds, no system call, and wakes nobody up while something is
being measured.
"""

from __future__ import annotations

import mmap
import os
import struct

from autotune.measure.clocks import monotonic
from autotune.measure.outcome import Reading
from autotune.measure.workers.channel import BrokenChannel, Splitter, frame, loads_plain
from autotune.measure.workers.messages import Noted

SIZE = 8 << 20
"""Bytes; readings that do not fit any more are only in the answer."""

_USED = struct.Struct("=Q")


class SharedNotes:
    """The worker's pen and the session's eye on the same memory."""

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
        self._memory[: _USED.size] = _USED.pack(0)

    def phase(self, name: str) -> None:
        """A phase begins."""
        self._write((name, monotonic()))

    def reading(self, reading: Reading) -> None:
        self._write(reading)

    def read(self, now: float) -> Noted:
        """What was written since :meth:`clear`; the last phase lasted until ``now`` (monotonic)."""
        begun: list[tuple[str, float]] = []
        readings = []
        try:
            (used,) = _USED.unpack_from(self._memory)
            for payload in Splitter().feed(self._memory[_USED.size : min(_USED.size + used, SIZE)]):
                entry = loads_plain(payload)
                if isinstance(entry, Reading):
                    readings.append(entry)
                else:
                    begun.append(entry)
        except BrokenChannel:
            pass  # a stray write has hit the notes: what stands before it counts
        ends = [at for _, at in begun[1:]] + [now]
        phases: dict[str, float] = {}
        for (name, start), end in zip(begun, ends, strict=True) if begun else ():
            phases[name] = phases.get(name, 0.0) + max(end - start, 0.0)
        return Noted(begun[-1][0] if begun else "", phases, tuple(readings))

    def close(self) -> None:
        self._memory.close()

    def _write(self, entry: object) -> None:
        data = frame(entry)
        (used,) = _USED.unpack_from(self._memory)
        start = _USED.size + used
        if start + len(data) <= SIZE:
            self._memory[start : start + len(data)] = data
            self._memory[: _USED.size] = _USED.pack(used + len(data))
