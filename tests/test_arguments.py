"""What is no count and no time is said once, with what was expected."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.arguments import is_whole, no_time, no_whole


@pytest.mark.parametrize("value", [1, 7, np.int64(3), 10**30, None])
def test_what_can_be_used_is_no_problem(value: object) -> None:
    assert not list(no_whole("trials", value, 1))
    assert not list(no_time(value))


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", float("nan")])
def test_what_is_no_count_is_a_problem(value: object) -> None:
    (problem,) = no_whole("trials", value, 1)
    assert f"trials is {value!r}" in str(problem) and "1 or more" in str(problem)
    assert not is_whole(value, 1)


@pytest.mark.parametrize("value", [0, -2.0, float("inf"), float("nan"), True, "1m"])
def test_what_is_no_time_is_a_problem(value: object) -> None:
    (problem,) = no_time(value)
    assert f"time is {value!r}" in str(problem) and "seconds" in str(problem)
