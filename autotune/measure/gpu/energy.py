"""Energy per run, from a counter that is updated only now and then. Pure.

NVML's counter of total energy is exact, but is updated only every 20 to 100 ms. So the kernel is run again
and again while the counter is watched, and only the time from one step of the counter to a later one is used:
the energy between them belongs to exactly the runs between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

STEPS = 5
"""How many steps of the counter a window of energy has."""

LEAST_SECONDS = 0.3
MOST_SECONDS = 2.0
"""The least and the most time that the counter is watched; few steps say little."""

PIECE_SECONDS = 2e-3
"""The time between two looks at the counter, by which the time of a step may be off."""


@dataclass(frozen=True)
class Look:
    """One look at the counter."""

    at: float
    """When, in seconds on some clock; later than any look before it."""
    joules: float
    runs: int
    """How many runs had ended by then: more than at any look before it."""


@dataclass(frozen=True)
class Energy:
    """The energy of a run, from a window between two steps of the counter."""

    joules: float
    """Joules a run."""
    watts: float
    seconds: float
    """The length of the window."""
    steps: int


def steps_in(looks: Sequence[Look]) -> list[int]:
    """The indices of the looks that were the first to see a new value."""
    return [i for i in range(1, len(looks)) if looks[i].joules != looks[i - 1].joules]


def enough(looks: Sequence[Look]) -> bool:
    """Whether the counter has been watched for long enough, or for too long."""
    seconds = looks[-1].at - looks[0].at if looks else 0.0
    return seconds >= MOST_SECONDS or (seconds >= LEAST_SECONDS and len(steps_in(looks)) > STEPS)


def energy_per_run(looks: Sequence[Look]) -> Energy | None:
    """The energy between the first and the last step; ``None`` with fewer than three steps."""
    steps = steps_in(looks)
    if len(steps) < 3:
        return None
    first, last = looks[steps[0]], looks[steps[-1]]
    joules, seconds = last.joules - first.joules, last.at - first.at
    return Energy(joules / (last.runs - first.runs), joules / seconds, seconds, len(steps) - 1)
