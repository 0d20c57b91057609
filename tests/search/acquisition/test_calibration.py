"""Whether tries succeed as often as was predicted of them."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from autotune.search.acquisition.calibration import LATEST, SURE, overconfidence
from autotune.search.contract import Observation
from autotune.space.knobs import OrderedValues
from autotune.space.space import Space
from autotune.status import Status

SPACE = Space([OrderedValues("size", tuple(range(1, 1001)))])
TRIES = st.lists(st.tuples(st.floats(1e-6, 1.0), st.booleans()), max_size=2 * LATEST)


def told(tries: list[tuple[object, bool]]) -> list[Observation]:
    """One observation for each probability that was predicted, and whether the try succeeded."""
    return [
        Observation(
            SPACE.configuration({"size": number + 1}),
            Status.OK if kept else Status.OUT_OF_MEMORY,
            {"time": 1.0} if kept else {},
            reason={} if predicted is None else {"success": predicted},
        )
        for number, (predicted, kept) in enumerate(tries)
    ]


def test_where_nothing_was_predicted_nothing_was_overrated() -> None:
    assert overconfidence(told([])) == 1.0
    assert overconfidence(told([(None, False)] * 5)) == 1.0


def test_tries_that_succeed_as_often_as_predicted_were_not_overrated() -> None:
    assert overconfidence(told([(0.5, True), (0.5, False)] * 5)) == 1.0
    assert overconfidence(told([(0.5, True)] * 10)) == 1.0


def test_tries_that_fail_more_often_than_predicted_were_overrated() -> None:
    once_in_four = overconfidence(told([(0.5, number % 4 == 0) for number in range(12)]))
    never = overconfidence(told([(0.5, False)] * 12))
    assert 1.0 < once_in_four < never
    # What was expected of them then comes near what happened.
    assert 0.2 < 0.5**once_in_four < 0.4


def test_what_was_sure_says_nothing_of_doubtful_tries() -> None:
    assert overconfidence(told([(SURE, False), (1.0, False), (math.nan, False), ("no number", False)])) == 1.0


def test_only_the_latest_doubtful_tries_count() -> None:
    failures, successes = [(0.6, False)] * LATEST, [(0.6, True)] * LATEST
    assert overconfidence(told([*failures, *successes])) == 1.0
    latest = overconfidence(told([*successes, *failures]))
    assert latest == overconfidence(told(failures)) > 1.0
    assert overconfidence(told([*failures, *[(1.0, True)] * 50])) == latest


@given(TRIES)
def test_a_further_failure_never_lowers_the_power(tries: list[tuple[float, bool]]) -> None:
    fewer = tries[-(LATEST - 1) :]
    power = overconfidence(told(list(fewer)))
    assert power >= 1.0 and np.isfinite(power)
    assert overconfidence(told([*fewer, (0.5, False)])) >= power
