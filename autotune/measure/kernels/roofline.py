"""What a kernel's problem costs at least, and how near to that a time comes: the roofline. Pure.

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
    """Moved between the device and its memory: each input read once, each output written once."""
    operations: float
    """Arithmetic operations; a multiplication with an addition counts as two."""
    arithmetic: str = "float32"
    """The type that the operations are done in, and so the peak that they are held against: ``float32``,
    ``tf32``, ``float16``, ``bfloat16``, ``float8_e4m3fn`` ..."""


@dataclass(frozen=True)
class Peaks:
    """What a device was measured to reach. Bytes and operations a second."""

    bandwidth: float
    operations: Mapping[str, float]
    """By the type of the arithmetic."""


@dataclass(frozen=True)
class Roofline:
    """The floor under the time of a problem on a device, and what sets it."""

    floor: float
    """Seconds."""
    bound: str
    """``"memory"`` or ``"arithmetic"``."""

    def share(self, seconds: float) -> float:
        """The part of the peak that a kernel of ``seconds`` reaches: 1 is the roof."""
        return self.floor / seconds if seconds > 0 else 0.0


def roofline(work: Work, peaks: Peaks) -> Roofline | None:
    """The floor of ``work``; of its bytes alone where the peak of its arithmetic is not known.

    ``None`` where there is neither anything to move nor to compute.
    """
    moving = work.bytes / peaks.bandwidth if peaks.bandwidth > 0 else 0.0
    peak = peaks.operations.get(work.arithmetic, 0.0)
    computing = work.operations / peak if peak > 0 else 0.0
    if moving <= 0 and computing <= 0:
        return None
    return Roofline(moving, "memory") if moving >= computing else Roofline(computing, "arithmetic")
