"""The front of a study: which trials are on it, and what improves it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.outcome import Estimate
from autotune.session.front import GrowingFront, front_numbers, front_of
from autotune.space.configuration import Configuration
from autotune.space.spec import MetricSpec
from autotune.status import Status
from autotune.store.records import TrialRecord

TIME, RATE = MetricSpec("time", "minimize", "s"), MetricSpec("rate", "maximize", "1/s")


def estimates(**values: float) -> Mapping[str, Estimate]:
    return {name: Estimate(value, value, value, 1) for name, value in values.items()}


def trial(number: int, status: Status = Status.OK, **values: float) -> TrialRecord:
    own = Configuration({"x": number})
    return TrialRecord(number, 1, number, 1, 1, "search", own, own.hash, status, metrics=estimates(**values))


TRIALS = [
    trial(0, time=2.0, rate=5.0),
    trial(1, time=1.0, rate=3.0),
    trial(2, time=3.0, rate=5.0),
    trial(3, time=0.1, rate=9.0, status=Status.WRONG),
    trial(4, time=0.5),
    trial(5, time=1.0, rate=3.0),
]


def test_the_front_starts_with_the_best_by_the_first_goal() -> None:
    assert [t.number for t in front_of(TRIALS, (TIME, RATE))] == [1, 5, 0]
    assert [t.number for t in front_of(TRIALS, (RATE, TIME))] == [0, 1, 5]


def test_with_one_goal_it_is_the_best_trial() -> None:
    assert [t.number for t in front_of(TRIALS, (TIME,))] == [4]


def test_nothing_that_succeeded_has_no_front() -> None:
    assert front_of([TRIALS[3], TRIALS[4]], (TIME, RATE)) == () == front_of([], (TIME,))


def test_a_front_grows_by_what_it_does_not_beat() -> None:
    front = GrowingFront((TIME, RATE))
    assert front.improves(estimates(time=2.0, rate=5.0))
    assert not front.improves(estimates(time=2.0, rate=5.0))
    assert not front.improves(estimates(time=3.0, rate=4.0))
    assert front.improves(estimates(time=3.0, rate=6.0))
    assert front.improves(estimates(time=1.0, rate=7.0))
    assert not front.improves(estimates(time=2.0, rate=6.0))
    assert not front.improves(estimates(time=0.5))


@given(st.lists(st.tuples(st.integers(-2, 2), st.sampled_from([-1.0, 0.0, 1.0, math.inf, math.nan]))))
def test_all_three_agree_on_what_is_on_the_front(values: list[tuple[int, float]]) -> None:
    """As it grows, as it is read of trials, and as it is read of values alone."""
    goals = (TIME, RATE)
    trials = [trial(number, time=time, rate=rate) for number, (time, rate) in enumerate(values, 7)]
    last = front_of(trials, goals)
    numbers = front_numbers([(number, own) for number, own in enumerate(values, 7)], goals)
    assert sorted(numbers) == sorted(own.number for own in last)
    front = GrowingFront(goals)
    for place, own in enumerate(trials):
        before, now = (
            {values[t.number - 7] for t in front_of(trials[:end], goals)} for end in (place, place + 1)
        )
        assert front.improves(own.metrics) is (before != now)
