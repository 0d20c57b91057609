"""When a slow configuration has been read often enough."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.rules.worth import Worth
from autotune.space.spec import Budget, Share

HURRIED = Worth(Budget(time=600.0).share)


def enough(
    worth: Worth,
    count: int,
    last: float,
    *,
    paid: float = 0.0,
    beaten: bool = True,
    spent: float | None = None,
) -> bool:
    return bool(worth.enough(count, count * last if spent is None else spent, last, paid, beaten=beaten))


def test_what_is_slow_is_read_once_and_again_only_before_it_is_believed() -> None:
    assert enough(HURRIED, 1, 10.0)
    assert not enough(HURRIED, 1, 10.0, beaten=False)
    assert enough(HURRIED, 2, 10.0, beaten=False)


def test_short_readings_are_as_good_as_free() -> None:
    assert not enough(HURRIED, 4, 0.1)
    assert not enough(HURRIED, 5, 0.1)
    assert enough(HURRIED, 5, 0.1, spent=12.1), "a trial's share of the time is used up"


def test_so_are_those_that_take_no_longer_than_compiling_did() -> None:
    assert not enough(HURRIED, 1, 10.0, paid=50.0), "five fit into as long again"
    assert not enough(HURRIED, 1, 10.0, paid=20.0)
    assert enough(HURRIED, 2, 10.0, paid=20.0)


def test_a_number_of_trials_says_how_long_each_may_take() -> None:
    worth = Worth(Budget(trials=10, time=600.0).share)
    assert not enough(worth, 2, 20.0)
    assert enough(worth, 3, 20.0)
    assert not enough(worth, 5, 10.0, spent=59.0)


@pytest.mark.parametrize("share", [Budget().share, Budget(trials=10).share])
def test_without_a_limit_of_time_nothing_is_hurried(share: Share) -> None:
    assert share == Share()
    assert not enough(Worth(share), 99, 100.0)


@given(asked=st.integers(1, 20), count=st.integers(1, 20), last=st.floats(0.001, 100), paid=st.floats(0, 100))
def test_as_many_as_were_asked_for_there_are(asked: int, count: int, last: float, paid: float) -> None:
    share = Budget(time=600.0).share
    assert enough(Worth(share, asked), count, last, paid=paid) == (count >= asked and count * last > 12.0)


@given(count=st.integers(1, 20), last=st.floats(0.001, 100), paid=st.floats(0, 100))
def test_what_looks_better_is_read_no_less(count: int, last: float, paid: float) -> None:
    better = enough(HURRIED, count, last, paid=paid, beaten=False)
    assert not better or enough(HURRIED, count, last, paid=paid, beaten=True)
    assert not better or count >= 2
