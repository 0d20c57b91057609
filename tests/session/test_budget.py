"""When a search stops."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from autotune.session.budget import Patience, Spent, TimeLimit, TrialLimit, stop_condition
from autotune.space.spec import Budget


def test_no_limit_never_stops() -> None:
    assert stop_condition(Budget()).reached(Spent(10**9, 1e9, 10**9)) == ""


@given(st.integers(1, 100), st.integers(0, 200))
def test_the_trial_limit_counts_trials(limit: int, spent: int) -> None:
    assert bool(stop_condition(Budget(trials=limit)).reached(Spent(trials=spent))) == (spent >= limit)


def test_the_reason_names_the_limit_that_was_reached() -> None:
    condition = stop_condition(Budget(trials=10, time=60.0, patience=5))
    assert condition.reached(Spent(trials=10)) == "10 trials"
    assert condition.reached(Spent(seconds=60.0)) == "60 s of searching"
    assert condition.reached(Spent(since_improvement=5)) == "5 trials without an improvement"
    assert condition.reached(Spent(9, 59.0, 4)) == ""
    assert stop_condition(Budget(trials=1)).reached(Spent(trials=1)) == "1 trial"


def test_conditions_compose() -> None:
    both = TrialLimit(3) | TimeLimit(1.0) | Patience(2)
    assert both.reached(Spent(seconds=2.0)) and both.reached(Spent(since_improvement=2))
    assert not both.reached(Spent(2, 0.5, 1))
