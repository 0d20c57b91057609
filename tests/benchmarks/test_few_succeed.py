"""The problems are the same for every strategy, most of each fails, and its default does not."""

from __future__ import annotations

import math

import pytest

from benchmarks.few_succeed import PROBLEMS, Found, drawn, search, succeeding, table


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_default_works_and_something_better_is_to_be_found(name: str) -> None:
    problem, again = drawn(name, 3), drawn(name, 3)
    default = problem.space.default()
    share, optimum = succeeding(problem)
    assert 0.005 < share < 0.7
    assert optimum < problem.log_time(default) == again.log_time(default) < math.inf


def test_a_search_counts_its_failures_and_is_repeated_by_its_seed() -> None:
    once, again = (search("sizes, memory not measured", "random", seed=3, tries=12) for _ in range(2))
    assert once == again
    assert list(once.above) == sorted(once.above, reverse=True)
    assert 0 < once.failed < 12 and math.isfinite(once.above[0])


def test_a_search_stops_breaking_rules_that_nobody_stated() -> None:
    """Some 70 of 80 tries had failed: what divides evenly looks scattered."""
    assert search("tiles, rules not stated", "auto", seed=3).failed < 50


def test_the_table_says_who_found_the_best() -> None:
    runs = {(name, "a"): [Found((0.5,) * 79 + (0.0,), 7), Found((0.5,) * 80, 9)] for name in PROBLEMS}
    assert all("1 of 2; 8" in line for line in table(["a"], runs)[2:])
