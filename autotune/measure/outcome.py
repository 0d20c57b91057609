"""What came of a trial: its status, its metrics with their uncertainty, and every raw reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from autotune.status import Status

CODE = "code"
"""In the facts of a trial: the fingerprint of the code that it ran."""

SURE = "sure"
"""In the facts of a trial that failed by a mistake: true where its configuration cannot be the reason."""

UNREACHED = "unreached"
"""In the facts of a trial of a command: the names of the knobs that never reached it."""

OWN_DEFAULTS = "own_defaults"
"""In the facts of a trial of a script with :func:`autotune.run`: the defaults that it gave, by knob."""

LEFT_RUNNING = "left_running"
"""In the facts of a trial of a command: the names of processes that its runs left; they were ended."""

RESOURCES = "resources"
"""In the facts of a trial: what its code takes, a number by name (registers, say)."""

SAME_CODE_AS = "same_code_as"
"""In the facts of a trial that was not measured: the number of the trial whose code, and result, it has."""

READY_THREADS = "ready_threads"
"""In the facts of a trial: how many threads of its program were ready to run at once, where that was more
than the cores it was pinned to, and the machine has others
(:mod:`autotune.measure.cores.oversubscription`)."""

NETWORK, NOT_SHAPED, MISSING = "network", "not_shaped", "missing"
"""In the facts of a trial of several processes: what connected them, why these are not the links that were
asked for, and what else could not be had (:mod:`autotune.measure.groups.group`)."""

MISTAKE = "mistake"
"""In the facts of a failed trial: what was raised and where, if that is a mistake in the code that was run
or something missing on the machine (:mod:`autotune.measure.phases.mistakes`)."""

CONSTANT_INPUTS = "constant_inputs"
"""In the facts of a trial of a kernel: the inputs of its check that were one number throughout, by name."""

TIMELINE = "timeline"
"""In the facts of a trial: ``{stage: [began, ended, lane]}``, times in seconds since the epoch. The stages
are ``prepare``, ``check`` (where it came before the trial's turn) and ``measure``; the lane is the number of
the worker among those that do this stage side by side."""


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
