"""What a rule of early stopping is: from the curves so far to go on, stop or pause. Pure.

A rule is told, in the order of the store's record, which trials there are (:meth:`Rule.joined`), what they
report (:meth:`Rule.heard`) and which of them are over (:meth:`Rule.ended`). What it then decides follows
from that alone, so that a session that is resumed decides as one that was never interrupted.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum


class Verdict(StrEnum):
    """What becomes of a trial at a report."""

    GO = "go on"
    STOP = "stop"
    PAUSE = "pause"
    """Neither yet: its worker is free for others, and :meth:`Rule.moves` will say."""


@dataclass(frozen=True)
class Decision:
    """The verdict, and the reason for it in a sentence."""

    verdict: Verdict
    reason: str = ""


GO = Decision(Verdict.GO)


def say_steps(steps: int, resource: str) -> str:
    """``3 epochs``, ``1 epoch``: the resource is named in the plural."""
    return f"{steps} {_ENDING.sub('', resource) if steps == 1 else resource}"


_ENDING = re.compile(r"(?<=ch|sh|ss)es$|(?<=[^s])s$")


@dataclass(frozen=True)
class Moves:
    """What becomes of paused trials, by number: those that go on, and why others are over."""

    promoted: tuple[int, ...] = ()
    stopped: dict[int, str] = field(default_factory=dict)


class Rule(ABC):
    """Decides which trials go on. Values are such that lower is better; trials are known by number."""

    pauses = False
    """Whether trials are paused: then :meth:`moves` has to be asked for them."""

    @abstractmethod
    def decide_at(self, number: int) -> tuple[int, ...] | None:
        """The steps at which this trial is decided upon; ``None``: at each report."""

    @abstractmethod
    def heard(self, number: int, step: int, value: float) -> None:
        """A trial has reported. One that begins anew reports its steps again."""

    @abstractmethod
    def decide(self, number: int, step: int) -> Decision:
        """What becomes of the trial whose report of ``step`` was heard last."""

    def joined(self, number: int) -> None:  # noqa: B027 - most rules have no use for it
        """A trial was proposed."""

    def ended(self, number: int, value: float | None) -> None:  # noqa: B027
        """A trial is over; ``value`` is its result where it used the whole resource, ``None`` elsewhere."""

    def moves(self, closed: bool) -> Moves:
        """What becomes of the trials that are paused; ``closed``: no trial will join any more."""
        return Moves()


class Board:
    """Who stood where at each rung: the value of the first report at or past it.

    A run that begins anew passes the rungs again. What was decided by the first value stands.
    """

    def __init__(self, rungs: tuple[int, ...]) -> None:
        self.rungs = rungs
        self.values: dict[int, dict[int, float]] = {rung: {} for rung in rungs}
        """By rung, then by trial; only finite numbers."""

    def heard(self, number: int, step: int, value: float) -> list[int]:
        """The rungs that the trial got to with this report."""
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
        """Trials from the best to the worst at a rung; of two alike the earlier is the better."""
        there = self.values[rung]
        numbers = there if among is None else among & there.keys()
        return sorted(numbers, key=lambda number: (there[number], number))


def place(position: int) -> str:
    """``1st``, ``2nd``, ``3rd``, ``11th``."""
    ending = "th" if 10 <= position % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(position % 10, "th")
    return f"{position}{ending}"
