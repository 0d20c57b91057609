"""The problems are the same for every strategy, and a search of them can be repeated."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.many_knobs import search, table
from benchmarks.many_knobs_problems import PROBLEMS


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_problem_is_drawn_from_its_seed_and_has_something_to_find(name: str) -> None:
    one, again, other = (PROBLEMS[name](np.random.default_rng(seed)) for seed in (0, 0, 1))
    tries = one.space.sample(np.random.default_rng(2), 60)
    times = [one.log_time(c) for c in tries]
    assert times == [again.log_time(c) for c in tries] != [other.log_time(c) for c in tries]
    assert min(times) < one.log_time(one.space.default())
    assert len(set(times)) > 50


def test_a_search_is_repeated_by_its_seed() -> None:
    once, again = (search("30 levels", "random", seed=3, tries=12)[0] for _ in range(2))
    assert once == again == sorted(once, reverse=True) and once[0] == 0.0


def test_the_table_has_a_line_for_each_problem() -> None:
    runs = {(name, way): [[-n / 100] * 100 for n in range(2)] for name in PROBLEMS for way in ("a", "b")}
    assert len(table(["a", "b"], runs, {"a": 1.0, "b": 2.0})) == len(PROBLEMS) + 4
