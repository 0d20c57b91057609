"""The state of a GPU during a reading, and whether the reading counts. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from operator import or_

THROTTLED = "throttled"
"""Why a reading is discarded."""

REASONS: Mapping[str, int] = {
    "idle": 0x1,
    "application_clocks": 0x2,
    "power_cap": 0x4,
    "hardware_slowdown": 0x8,
    "sync_boost": 0x10,
    "thermal": 0x20,
    "hardware_thermal": 0x40,
    "power_brake": 0x80,
    "display_clocks": 0x100,
}
"""NVML's bits of ``nvmlClocksEventReasons``."""

ABNORMAL = ("hardware_slowdown", "thermal", "hardware_thermal", "power_brake")
"""Reasons that do not come from the kernel: the device is too hot, or gets too little power.

``power_cap`` is not among them: a kernel that draws as much power as the board may is slowed down wherever it
runs, and that is its true speed.
"""

LEAST_CLOCK = 0.75
"""A reading at less than this fraction of the steady clock is discarded. nvbench uses the same fraction."""


@dataclass(frozen=True)
class Conditions:
    """How a GPU stands at one moment; ``None`` is unknown."""

    sm_clock_mhz: float | None = None
    memory_clock_mhz: float | None = None
    temperature_c: float | None = None
    power_watts: float | None = None
    throttle_reasons: int | None = None
    """NVML's bit mask, see :data:`REASONS`."""

    def numbers(self) -> dict[str, float]:
        """The known values by name, for the context of a reading."""
        return {name: float(value) for name, value in asdict(self).items() if value is not None}


def reasons_in(mask: int | None) -> tuple[str, ...]:
    """The names of the reasons in NVML's mask."""
    return tuple(name for name, bit in REASONS.items() if mask is not None and mask & bit)


def why_throttled(before: Conditions, after: Conditions, steady_mhz: float | None) -> str:
    """Why a reading between two moments does not count, in a few words; empty where it does.

    ``steady_mhz``: the SM clock at the end of the warm-up of this kernel; ``None`` is unknown.
    """
    for conditions in (before, after):
        abnormal = [reason for reason in reasons_in(conditions.throttle_reasons) if reason in ABNORMAL]
        if abnormal:
            return abnormal[0].replace("_", " ")
    clock = after.sm_clock_mhz
    capped = "power_cap" in reasons_in(after.throttle_reasons)  # by this kernel, or the one just before it
    if clock is not None and steady_mhz and clock < LEAST_CLOCK * steady_mhz and not capped:
        return f"the clock fell to {clock:.0f} MHz from {steady_mhz:.0f}"
    return ""


def together(before: Conditions, after: Conditions) -> Conditions:
    """The conditions for the context of a reading: as after it, with the throttle reasons of both moments."""
    masks = [c.throttle_reasons for c in (before, after) if c.throttle_reasons is not None]
    return replace(after, throttle_reasons=reduce(or_, masks) if masks else None)


@dataclass(frozen=True)
class WarmUp:
    """When a kernel has run for long enough to be read: once its time and the clock have become steady.

    Clocks need some hundred milliseconds to rise, and a power cap takes as long to pull them down again. The
    first milliseconds of a kernel may be off by a third either way.
    """

    least_seconds: float = 0.2
    most_seconds: float = 2.0
    window: int = 5
    """How many pieces: the last so many are compared with as many before them."""
    tolerance: float = 0.01

    def done(self, at: Sequence[float], times: Sequence[float], clocks: Sequence[float | None]) -> bool:
        """Whether to stop, ``at[-1]`` seconds after the beginning; ``times``: of a call, in each piece."""
        if not at or at[-1] < self.least_seconds:
            return False
        if at[-1] >= self.most_seconds:
            return True
        return self._steady(times) and self._steady([clock for clock in clocks if clock is not None])

    def _steady(self, values: Sequence[float]) -> bool:
        if not values:
            return True  # unknown: the other one decides
        if len(values) < 2 * self.window:
            return False
        late = statistics.median(values[-self.window :])
        early = statistics.median(values[-2 * self.window : -self.window])
        return abs(late - early) <= self.tolerance * abs(late)
