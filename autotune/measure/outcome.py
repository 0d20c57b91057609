"""What came of a trial: its status, its metrics with their uncertainty, and every raw reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from autotune.status import Status


@dataclass(frozen=True)
class Reading:
    """One raw measurement of one metric.

    ``at`` is in seconds since the trial's first reading began; ``discarded`` says why the reading
    does not count (``"throttled"``, ``"warm-up"``), and is empty where it does. ``context`` holds what
    the machine looked like (pressure, clock, temperature), as numbers.
    """

    metric: str
    value: float
    at: float = 0.0
    discarded: str = ""
    context: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """What a trial says while it runs: its metrics after ``step`` steps of the resource (epochs, say)."""

    step: int
    metrics: Mapping[str, float]
    at: float = 0.0
    """Seconds since its run began."""


@dataclass(frozen=True)
class Estimate:
    """A metric's value with a confidence interval: ``low <= value <= high``, from ``n`` readings."""

    value: float
    low: float
    high: float
    n: int
    error: float = 0.0
    """Standard error of ``value``; 0 where it is unknown (a single reading)."""

    @classmethod
    def of_one(cls, value: float) -> Estimate:
        """What a single reading says."""
        return cls(value, value, value, 1)

    @property
    def interval(self) -> tuple[float, float, float]:
        """Value and ends."""
        return self.value, self.low, self.high

    def off_by(self, share: float) -> Estimate:
        """The same with an interval that is wider by this share of its ends, either way."""
        ends = (self.low - share * abs(self.low), self.high + share * abs(self.high))
        return replace(self, low=ends[0], high=ends[1])


@dataclass(frozen=True)
class Outcome:
    """Status, metrics and readings of a trial. A failure is never a large number in a metric."""

    status: Status
    metrics: Mapping[str, Estimate] = field(default_factory=dict)
    readings: tuple[Reading, ...] = ()
    phases: Mapping[str, float] = field(default_factory=dict)
    """Seconds spent in each phase: ``prepare``, ``check``, ``warmup``, ``measure``."""
    message: str = ""
    """Why it ended as it did, in a sentence; empty for ``ok``."""
    phase: str = ""
    """The phase in which a failure happened."""
    stderr: str = ""
    """The last lines (at most 8 KiB) that the trial wrote."""
    exit_code: int | None = None
    signal: int | None = None
    peak_memory: int | None = None
    """Bytes, the largest resident size in the trial of the measuring process, or of a program that it ran."""
    facts: Mapping[str, object] = field(default_factory=dict)
    """What else is known, as JSON: the bytes the compiler made, the cores pinned to, ``replayed`` ..."""
    artifacts: Mapping[str, bytes] = field(default_factory=dict)
    """Files worth keeping, by role (``"source"``, ``"compiler output"``); stored by content."""
    worker: str = ""


def added(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """The seconds of each phase in two parts of a trial together."""
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in {**one, **other}}
