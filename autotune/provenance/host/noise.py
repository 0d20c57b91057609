"""The noise floor: how much a fixed piece of work varies on this machine when nothing is wrong.

A smaller difference between two configurations cannot be seen. The work is SHA-256 of a fixed buffer: all of
it in C, in the first-level cache, without allocating memory.
"""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from autotune.provenance.document import Documented
from autotune.provenance.host.pressure import pressure

_BUFFER_BYTES = 16 * 1024
_READING_SECONDS = 1e-3
_MINIMUM = 10
"""The fewest readings, however short the time: the spread of fewer means little."""

ADJECTIVES = ((0.002, "quiet"), (0.01, "good"), (0.03, "noisy"))
"""Upper limits of the spread and the drift, whichever is larger, and what such a machine is called."""
LOUDEST = "very noisy"


@dataclass(frozen=True)
class NoiseFloor(Documented):
    """How a fixed workload varied. Fractions of the median reading unless said otherwise."""

    readings: int
    seconds: float
    """Median time of a reading."""
    spread: float
    """Median absolute deviation from the median."""
    drift: float
    """Median of the last third against that of the first; positive: it became slower."""
    outliers: float
    """The share of the readings more than a tenth slower than the median."""
    adjective: str
    pressure: Mapping[str, float] = field(default_factory=dict)
    """What changed of the pressure meanwhile: stalls and steal in seconds, context switches."""


def noise_floor(seconds: float = 1.0) -> NoiseFloor:
    """Repeat a fixed workload for about ``seconds`` and say how much its time varied."""
    buffer = bytes(_BUFFER_BYTES)
    once = _time(lambda: _hash(buffer, 8)) / 8
    blocks = max(1, round(_READING_SECONDS / max(once, 1e-9)))
    before = pressure()
    readings: list[float] = []
    end = time.perf_counter() + seconds
    while len(readings) < _MINIMUM or time.perf_counter() < end:
        readings.append(_time(lambda: _hash(buffer, blocks)))
    after = pressure()
    counted = ("cpu_stall", "memory_stall", "io_stall", "steal", "switches", "own_switches")
    return describe(readings, {n: after[n] - before[n] for n in counted if n in after and n in before})


def describe(readings: Sequence[float], during: Mapping[str, float]) -> NoiseFloor:
    """The noise in ``readings`` (seconds, in the order taken, at least three). Pure."""
    middle = statistics.median(readings)
    third = max(1, len(readings) // 3)
    spread = statistics.median(abs(reading - middle) for reading in readings) / middle
    drift = statistics.median(readings[-third:]) / statistics.median(readings[:third]) - 1
    return NoiseFloor(
        readings=len(readings),
        seconds=middle,
        spread=spread,
        drift=drift,
        outliers=sum(reading > 1.1 * middle for reading in readings) / len(readings),
        adjective=_adjective(max(spread, abs(drift))),
        pressure=dict(during),
    )


def _adjective(noise: float) -> str:
    return next((word for limit, word in ADJECTIVES if noise < limit), LOUDEST)


def _time(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _hash(buffer: bytes, times: int) -> bytes:
    state = hashlib.sha256()
    for _ in range(times):
        state.update(buffer)
    return state.digest()
