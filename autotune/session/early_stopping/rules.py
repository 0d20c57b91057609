"""What a rule of early stopping is: it decides from the curves so far whether a trial goes on. Pure.

A rule is told, in the order of the store, which trials there are (:meth:`Rule.joined`), what they report
(:meth:`Rule.heard`) and which of them have ended (:meth:`Rule.ended`). Its decisions depend on that alone,
so that a resumed session decides as one that was never interrupted.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """What a trial does after a report."""

    GO = "go on"
    STOP = "stop"
    PAUSE = "pause"
    """Not decided yet: the worker is free for other trials, and :meth:`Rule.moves` will decide."""


@dataclass(frozen=True)
class Decision:
    """The verdict, and the reason for it in a sentence."""

    verdict: Verdict
    reason: str = ""


GO = Decision(Verdict.GO)


def say_steps(steps: int, resource: str) -> str:
    """``3 epochs``, ``1 epoch``: the resource is named in the plural."""
    return f"{steps} {_ENDING.sub('', resource) if steps == 1 else resource}"


_ENDING = re.compile(r"(?:(?<=ch|sh|ss)|(?<=x))es$|(?<=[^s])s$")


@dataclass(frozen=True)
class Moves:
    """Decisions on paused trials, by number: those that go on, and why others are stopped."""

    promoted: tuple[int, ...] = ()
    stopped: dict[int, str] = field(default_factory=dict)


class Rule(ABC):
    """Decides which trials go on. Values are such that lower is better; trials are known by number."""

    pauses = False
    """Whether the rule pauses trials; then :meth:`moves` says what becomes of them."""

    @abstractmethod
    def decide_at(self, number: int) -> tuple[int, ...] | None:
        """The steps at which a decision on this trial is made; ``None`` means at every report."""

    @abstractmethod
    def heard(self, number: int, step: int, value: float) -> None:
        """A trial has reported. One that is started again reports its steps again."""

    @abstractmethod
    def decide(self, number: int, step: int) -> Decision:
        """The decision on the trial, whose last report was of ``step``."""

    def joined(self, number: int) -> None:  # noqa: B027 - most rules have no use for it
        """A trial was proposed."""

    def ended(self, number: int, value: float | None) -> None:  # noqa: B027
        """A trial has ended; ``value`` is its result if it used the whole resource, or else ``None``."""

    def moves(self, closed: bool) -> Moves:
        """Decisions on the trials that are paused. ``closed``: no trial will join any more."""
        return Moves()


class Board:
    """The value of each trial at each rung: that of its first report at or past the rung.

    A run that is started again passes the rungs again; the first value stays.
    """

    def __init__(self, rungs: tuple[int, ...]) -> None:
        self.rungs = rungs
        self.values: dict[int, dict[int, float]] = {rung: {} for rung in rungs}
        """By rung, then by the trial's number; only finite values."""

    def heard(self, number: int, step: int, value: float) -> list[int]:
        """Take a report; returns the rungs that the trial reached with it."""
        if not math.isfinite(value):
            return []
        reached = [rung for rung in self.rungs if rung <= step and number not in self.values[rung]]
        for rung in reached:
            self.values[rung][number] = value
        return reached

    def reached(self, step: int) -> int | None:
        """The last rung up to ``step``."""
        return max((rung for rung in self.rungs if rung <= step), default=None)

    def ranking(self, rung: int, among: set[int] | None = None) -> list[int]:
        """The numbers of trials at a rung, the best first; of equal ones the earlier trial is better."""
        there = self.values[rung]
        numbers = there if among is None else among & there.keys()
        return sorted(numbers, key=lambda number: (there[number], number))


def place(position: int) -> str:
    """``1st``, ``2nd``, ``3rd``, ``11th``."""
    ending = "th" if 10 <= position % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(position % 10, "th")
    return f"{position}{ending}"
