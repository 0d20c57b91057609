"""The ranks of a process group note their progress in memory that they share with their starter.

A note takes about a microsecond and no system call, and wakes nobody up while something is being measured.
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass
from io import FileIO

from autotune.measure.clocks import monotonic

_SLOT = struct.Struct("=dqd48s")
_STRIDE = 128
"""Bytes a rank: two cache lines, so that ranks do not slow one another down."""


@dataclass(frozen=True)
class Beat:
    """A sign of life: when (monotonic seconds), at which step, in which phase."""

    at: float
    step: int
    phase: str
    within: float = 0.0
    """Seconds within which the next one comes; 0: within the ``stall`` of the group."""


class Board:
    """One slot for each rank. Each rank writes its own; the starter reads all."""

    def __init__(self, descriptor: int, world: int) -> None:
        self._memory = mmap.mmap(descriptor, world * _STRIDE)

    @staticmethod
    def make(world: int) -> FileIO:
        """A new file of shared memory for ``world`` ranks. A board outlives it."""
        memory = FileIO(os.memfd_create("autotune-board", os.MFD_CLOEXEC), "r+")
        memory.truncate(world * _STRIDE)
        return memory

    def write(self, rank: int, step: int, phase: str, within: float = 0.0) -> float:
        """Note a sign of life; returns its time."""
        at = monotonic()
        # In one assignment: pack_into would clear the slot first, while the starter may be reading it.
        packed = _SLOT.pack(at, step, within, phase.encode()[:48])
        self._memory[rank * _STRIDE : rank * _STRIDE + _SLOT.size] = packed
        return at

    def read(self, rank: int) -> Beat:
        at, step, within, phase = _SLOT.unpack_from(self._memory, rank * _STRIDE)
        return Beat(at, step, phase.rstrip(b"\0").decode(errors="replace"), within)

    def close(self) -> None:
        self._memory.close()
