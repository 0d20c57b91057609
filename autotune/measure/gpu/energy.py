"""Energy per run from a counter that only moves every so often. Pure.

NVML's counter of total energy is exact, but is written to every 20 to 100 ms. So the kernel is run again
and again while the counter is watched, and only the time from one of its steps to a later one counts: there
the energy belongs to exactly those runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

STEPS = 5
"""Of the counter, that a window of energy has."""

LEAST_SECONDS = 0.3
MOST_SECONDS = 2.0
"""A window lasts as long as the one at least, since few steps say little, and as the other at most."""

PIECE_SECONDS = 2e-3
"""The counter is looked at so often: how far a step may be away from when it is seen."""


@dataclass(frozen=True)
class Look:
    """One look at the counter."""

    at: float
    """Seconds on some clock."""
    joules: float
    runs: int
    """How many runs had ended."""


@dataclass(frozen=True)
class Energy:
    """What a run used, from the window between two steps of the counter."""

    joules: float
    """A run."""
    watts: float
    seconds: float
    """Length of the window."""
    steps: int


def steps_in(looks: Sequence[Look]) -> list[int]:
    """The looks that were the first to see a new number."""
    return [i for i in range(1, len(looks)) if looks[i].joules != looks[i - 1].joules]


def enough(looks: Sequence[Look], steps: int = STEPS) -> bool:
    """Whether the counter has been watched for long enough, or for too long."""
    seconds = looks[-1].at - looks[0].at if looks else 0.0
    return seconds >= MOST_SECONDS or (seconds >= LEAST_SECONDS and len(steps_in(looks)) > steps)


def energy_per_run(looks: Sequence[Look]) -> Energy | None:
    """Between the first and the last step; ``None`` where the counter has stepped less than three times."""
    steps = steps_in(looks)
    if len(steps) < 3:
        return None
    first, last = looks[steps[0]], looks[steps[-1]]
    runs, seconds = last.runs - first.runs, last.at - first.at
    if runs <= 0 or seconds <= 0:
        return None
    joules = last.joules - first.joules
    return Energy(joules / runs, joules / seconds, seconds, len(steps) - 1)
