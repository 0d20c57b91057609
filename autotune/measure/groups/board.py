"""Where the ranks of a process group note how far they are, in memory that they share with their starter.

A note costs about a microsecond, no system call, and wakes nobody up while something is being measured.
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import dataclass

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
    """Seconds in which the next one comes at the latest; 0: as the group has it."""


class Board:
    """One slot a rank. Each rank writes its own; whoever started them reads all."""

    def __init__(self, descriptor: int, world: int) -> None:
        self._memory = mmap.mmap(descriptor, world * _STRIDE)

    @staticmethod
    def make(world: int) -> int:
        """A new descriptor of shared memory for ``world`` ranks."""
        descriptor = os.memfd_create("autotune-board", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, world * _STRIDE)
        return descriptor

    def write(self, rank: int, step: int, phase: str, within: float = 0.0) -> float:
        """Note a sign of life; returns its time."""
        at = monotonic()
        # At once: pack_into would clear the slot first, and somebody may be reading it.
        packed = _SLOT.pack(at, step, within, phase.encode()[:48])
        self._memory[rank * _STRIDE : rank * _STRIDE + _SLOT.size] = packed
        return at

    def read(self, rank: int) -> Beat:
        at, step, within, phase = _SLOT.unpack_from(self._memory, rank * _STRIDE)
        return Beat(at, step, phase.rstrip(b"\0").decode(errors="replace"), within)

    def close(self) -> None:
        self._memory.close()
