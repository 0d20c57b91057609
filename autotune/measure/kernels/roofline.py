"""The least time that a kernel's problem can take on a device, and how near a time comes to it. Pure.

The model is S. Williams, A. Waterman and D. Patterson, *Roofline: an insightful visual performance model
for multicore architectures*, CACM 52(4), 2009.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Work:
    """The least that any kernel must do for this problem, whatever its configuration."""

    bytes: float
    """Bytes moved between the device and its memory: each input read once, each output written once."""
    operations: float
    """Arithmetic operations; a multiplication with an addition counts as two."""
    arithmetic: str = "float32"
    """The type of the operations, and so the peak that counts for them: ``float32``, ``tf32``, ``float16``,
    ``bfloat16``, ``float8_e4m3fn`` ..."""


@dataclass(frozen=True)
class Peaks:
    """The measured peaks of a device, in bytes and operations a second."""

    bandwidth: float
    operations: Mapping[str, float]
    """One peak for each type of arithmetic."""


@dataclass(frozen=True)
class Roofline:
    """The least time of a problem on a device, and what limits it."""

    floor: float
    """The least time in seconds."""
    bound: str
    """``"memory"`` or ``"arithmetic"``."""

    def share(self, seconds: float) -> float:
        """The fraction of the peak that a kernel of ``seconds`` reaches: 1 is the roof."""
        return self.floor / seconds if seconds > 0 else 0.0


def roofline(work: Work, peaks: Peaks) -> Roofline | None:
    """The roofline of ``work``; by its bytes alone where the peak of its arithmetic is not known.

    ``None`` where there is nothing to move and nothing to compute.
    """
    moving = work.bytes / peaks.bandwidth if peaks.bandwidth > 0 else 0.0
    peak = peaks.operations.get(work.arithmetic, 0.0)
    computing = work.operations / peak if peak > 0 else 0.0
    if moving <= 0 and computing <= 0:
        return None
    return Roofline(moving, "memory") if moving >= computing else Roofline(computing, "arithmetic")
