"""When to stop: small conditions over the state of a search that compose with ``|``.

A budget counts for the study as a whole, so that an interrupted search goes on with what is left
of it, and one that has spent its budget ends at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from autotune.space.spec import Budget


@dataclass(frozen=True)
class Spent:
    """What a study has used so far, over all its sessions."""

    trials: int = 0
    """Trials proposed (finished or in flight)."""
    seconds: float = 0.0
    """Wall-clock time spent searching."""
    since_improvement: int = 0
    """Finished trials since the best one."""


class Condition(ABC):
    """Says why the search should stop, or an empty text to go on."""

    @abstractmethod
    def reached(self, spent: Spent) -> str: ...

    def __or__(self, other: Condition) -> Condition:
        return AnyOf((self, other))


@dataclass(frozen=True)
class TrialLimit(Condition):
    trials: int

    def reached(self, spent: Spent) -> str:
        return say_trials(self.trials) if spent.trials >= self.trials else ""


@dataclass(frozen=True)
class TimeLimit(Condition):
    seconds: float

    def reached(self, spent: Spent) -> str:
        return f"{self.seconds:g} s of searching" if spent.seconds >= self.seconds else ""


@dataclass(frozen=True)
class Patience(Condition):
    """Stop after so many finished trials without an improvement."""

    trials: int

    def reached(self, spent: Spent) -> str:
        enough = spent.since_improvement >= self.trials
        return f"{say_trials(self.trials)} without an improvement" if enough else ""


@dataclass(frozen=True)
class AnyOf(Condition):
    conditions: tuple[Condition, ...]

    def reached(self, spent: Spent) -> str:
        return next((reason for c in self.conditions if (reason := c.reached(spent))), "")


def stop_condition(budget: Budget) -> Condition:
    """The condition that a space file's ``budget:`` asks for; with no limit at all it never stops."""
    conditions: list[Condition] = []
    if budget.trials is not None:
        conditions.append(TrialLimit(budget.trials))
    if budget.time is not None:
        conditions.append(TimeLimit(budget.time))
    if budget.patience is not None:
        conditions.append(Patience(budget.patience))
    return AnyOf(tuple(conditions))


def say_trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"
