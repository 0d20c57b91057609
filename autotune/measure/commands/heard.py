"""What a program has sent through :func:`autotune.run`, and what it means for its trial. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autotune.errors import listed, nearest
from autotune.measure.diagnostics import lacks_memory
from autotune.measure.facts import OWN_DEFAULTS
from autotune.measure.objective import SIGNALS, OutOfMemory, Signal


@dataclass
class Heard:
    """What the runs that one start of the program has opened have sent."""

    runs: int = 0
    """How many runs there were; 0: the program does not use the hook."""
    ended: int = 0
    unfinished: bool = False
    """Whether the last run has neither ended nor come to a trial's last step: reports are sent now and then,
    so that its last one may be missing."""
    values: dict[str, float] = field(default_factory=dict)
    """The last value of each metric."""
    asked: dict[str, object] = field(default_factory=dict)
    """The knobs that it asked for, in that order, with its own defaults; known once its runs have ended."""
    given: dict[str, object] = field(default_factory=dict)
    """The facts of the trial that it gave."""
    failed: Mapping[str, Any] = field(default_factory=dict)
    """``kinds``, ``message`` and perhaps ``status`` of the exception that ended its last run."""

    def begin(self) -> None:
        """Note that a run has begun."""
        self.runs += 1
        self.unfinished = True

    def end(self, message: Mapping[str, Any]) -> None:
        """Note that a run has ended. Raises, and notes nothing, where part of the message is unreadable."""
        values, asked = numbers(message["values"]), dict(message["asked"])
        failed = dict(message["failed"])
        self.ended += 1
        self.unfinished = False
        self.values |= values
        self.asked |= asked
        self.failed = failed

    def failure(self) -> Signal | None:
        """The signal that the program's exception stands for, if it does."""
        if kind := SIGNALS.get(str(self.failed.get("status", ""))):
            return kind(self.message)
        if lacks_memory(self.failed.get("kinds", ()), self.message):
            return OutOfMemory(self.message)
        return None

    @property
    def message(self) -> str:
        """What the exception that ended its last run says; empty if none did."""
        return str(self.failed.get("message", ""))

    @property
    def has_failed(self) -> bool:
        """Whether an error ended its last run. ``SystemExit`` and the like are ends, and no errors."""
        return "status" in self.failed or "Exception" in self.failed.get("kinds", ())

    @property
    def facts(self) -> dict[str, object]:
        """Facts of the trial."""
        plain = {name: default for name, default in self.asked.items() if default is not None}
        return {**self.given, OWN_DEFAULTS: plain} if plain else dict(self.given)

    def never_asked(self, knobs: Sequence[str]) -> str:
        """The message that a program with the hook did not ask for some of ``knobs``; empty if it did."""
        left = [name for name in knobs if name not in self.asked]
        if not left or not self.runs or self.ended < self.runs:
            return ""
        others = [name for name in self.asked if name not in knobs]
        hints = dict.fromkeys(nearest(name, others) for name in left)
        said = "; ".join([f"it asked for: {listed(self.asked) or 'none'}", *filter(None, hints)])
        first = left[0]
        return (
            f"the program never asked for the knob {listed(map(repr, left))} ({said}): ask for it with"
            f" run.knob({first!r}, default) or pass it as {{{first}}}; if it exists only sometimes, give"
            " it a 'when'"
        )


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Values of metrics, by name. Flags stay flags: whether they count as numbers depends on the goals."""
    return {str(name): value if isinstance(value, bool) else float(value) for name, value in values.items()}
