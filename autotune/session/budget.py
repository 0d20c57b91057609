"""When to stop: what a study has used, compared with the budget in its space file.

A budget is for the study as a whole, so that an interrupted search goes on with the rest of it, and one that
has spent its budget ends at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from autotune.space.spec import Budget

GRACE_SECONDS = 5.0
"""How long trials in flight may at least go on after the time is up, before they are given up."""


@dataclass(frozen=True)
class Spent:
    """What a study has used so far, over all its sessions."""

    trials: int = 0
    """Trials proposed (finished or in flight)."""
    seconds: float = 0.0
    """Wall-clock time spent searching."""
    since_improvement: int = 0
    """Finished trials since the best one."""
    finished: int = 0
    """How many of ``trials`` have a result."""
    reached: int | None = None
    """The trial that reached the budget's target; ``None`` if none did."""
    paused: int = 0
    """How many of the others this session has paused: they wait at a rung for the rest of their bracket."""


def limit_reached(budget: Budget, spent: Spent) -> str:
    """Why no new trial may begin; an empty text if the search goes on."""
    if budget.target is not None and spent.reached is not None:
        return f"trial {spent.reached} {reached_target(budget.target)}"
    late = out_of_time(budget, spent)
    given_up = late and spent.finished < spent.trials
    if budget.trials is not None and spent.trials >= budget.trials and not given_up:
        return say_trials(budget.trials)
    if late:
        return f"{budget.time:g} s of searching"
    if budget.patience is not None and spent.since_improvement >= budget.patience:
        return out_of_patience(budget.patience)
    return ""


def out_of_patience(patience: int) -> str:
    """The reason of a search that ended because its patience was exhausted."""
    return f"{say_trials(patience)} without an improvement"


def reached_target(target: float) -> str:
    """The end of the reason of a search that a good enough trial ended."""
    return f"reached the target of {target:g}"


def out_of_time(budget: Budget, spent: Spent) -> bool:
    return budget.time is not None and spent.seconds >= budget.time


def overdue(budget: Budget, spent: Spent) -> bool:
    """Whether the time has been up for so long that trials in flight are given up."""
    grace = max(GRACE_SECONDS, 0.05 * (budget.time or 0.0))
    return budget.time is not None and spent.seconds >= budget.time + grace


def say_trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"
