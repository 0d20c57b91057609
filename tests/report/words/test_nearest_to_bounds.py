"""Where every trial was past a bound, the one that came nearest is named."""

from __future__ import annotations

import math
from typing import Any

import pytest

from autotune.measure.outcome import Estimate
from autotune.report.words.nearest_to_bounds import nearest_to_bounds
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.records import TrialRecord

RATIO: dict[str, Any] = {"name": "ratio", "at_most": None, "at_least": 3.2}
ERROR: dict[str, Any] = {"name": "error", "at_most": 0.1, "at_least": None}


def trial(number: int, status: Status = Status.WRONG, **values: float) -> TrialRecord:
    metrics = {name: Estimate.of_one(value) for name, value in values.items()}
    return TrialRecord(number, 1, number, 1, 1, "search", Configuration({}), "", status, metrics=metrics)


@pytest.mark.parametrize(
    ("trials", "numbers"),
    [
        ([trial(0, ratio=3.0), trial(1, ratio=3.1), trial(2, ratio=2.9)], [1]),
        ([trial(0, ratio=3.0), trial(1, ratio=3.0), trial(2, ratio=3.0, error=math.nan)], [0]),
        ([trial(0, ratio=3.0, error=0.3), trial(1, ratio=3.1), trial(2, error=0.2)], [1, 2]),
        ([trial(0, ratio=3.0), trial(1, Status.CRASHED), trial(2, ratio=9.0)], []),
        ([trial(0), trial(1)], []),
    ],
)
def test_the_nearest_of_several(trials: list[TrialRecord], numbers: list[int]) -> None:
    assert [found.number for found, _ in nearest_to_bounds(trials, [RATIO, ERROR])] == numbers


def test_of_a_trial_past_two_bounds_each_is_said_for_itself() -> None:
    """The message of a trial names the first of them: two lines had told of the same one."""
    trials = [trial(0, ratio=3.0, error=0.9), trial(1, ratio=2.0, error=0.2)]
    assert [(found.number, said) for found, said in nearest_to_bounds(trials, [RATIO, ERROR])] == [
        (0, "ratio is 3, allowed is at least 3.2"),
        (1, "error is 0.2, allowed is at most 0.1"),
    ]
