"""When a search stops."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from autotune.session.budget import Spent, limit_reached, out_of_time, overdue
from autotune.space.spec import Budget


def test_no_limit_never_stops() -> None:
    spent = Spent(10**9, 1e9, 10**9)
    assert limit_reached(Budget(), spent) == ""
    assert not out_of_time(Budget(), spent) and not overdue(Budget(), spent)


@given(st.integers(1, 100), st.integers(0, 200))
def test_the_trial_limit_counts_trials(limit: int, spent: int) -> None:
    assert bool(limit_reached(Budget(trials=limit), Spent(trials=spent))) == (spent >= limit)


def test_the_reason_names_the_limit_that_was_reached() -> None:
    budget = Budget(trials=10, time=60.0, patience=5)
    assert limit_reached(budget, Spent(trials=10)) == "10 trials"
    assert limit_reached(budget, Spent(seconds=60.0)) == "60 s of searching"
    assert limit_reached(budget, Spent(since_improvement=5)) == "5 trials without an improvement"
    assert limit_reached(budget, Spent(9, 59.0, 4)) == ""
    assert limit_reached(budget, Spent(9, 59.0, 4, reached=3)) == "", "no target was set"
    assert limit_reached(Budget(10, target=0.5), Spent(9, reached=3)) == "trial 3 reached the target of 0.5"
    assert limit_reached(Budget(trials=1), Spent(trials=1)) == "1 trial"


def test_where_the_last_trials_are_given_up_the_time_was_the_limit() -> None:
    budget = Budget(trials=4, time=40.0)
    assert limit_reached(budget, Spent(trials=4, seconds=45.0, finished=2)) == "40 s of searching"
    assert limit_reached(budget, Spent(trials=4, seconds=45.0, finished=4)) == "4 trials"
    assert limit_reached(budget, Spent(trials=4, seconds=39.0, finished=2)) == "4 trials"


def test_trials_in_flight_have_a_moment_more_than_the_time() -> None:
    for limit, grace in ((60.0, 5.0), (600.0, 30.0)):
        budget = Budget(time=limit)
        assert not overdue(budget, Spent(seconds=limit + grace - 0.1))
        assert overdue(budget, Spent(seconds=limit + grace))
