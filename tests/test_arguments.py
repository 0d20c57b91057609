"""What is no count and no time is said once, with what was expected."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.arguments import count_problems, is_whole, time_problems


@pytest.mark.parametrize("value", [1, 7, np.int64(3), 10**30, None])
def test_what_can_be_used_is_no_problem(value: object) -> None:
    assert not list(count_problems("trials", value, 1))
    assert not list(time_problems(value))


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "3", float("nan")])
def test_what_is_no_count_is_a_problem(value: object) -> None:
    (problem,) = count_problems("trials", value, 1)
    assert f"trials is {value!r}" in str(problem) and "1 or more" in str(problem)
    assert not is_whole(value, 1)


@pytest.mark.parametrize("value", [0, -2.0, float("inf"), float("nan"), True, "1m"])
def test_what_is_time_problems_is_a_problem(value: object) -> None:
    (problem,) = time_problems(value)
    assert f"time is {value!r}" in str(problem) and "seconds" in str(problem)
