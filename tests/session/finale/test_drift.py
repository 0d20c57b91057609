"""Whether a machine was another one in the finale, for all or for one."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.outcome import Estimate
from autotune.session.finale.drift import drift, say_drift, say_shift
from autotune.session.finale.drift import shift as shift_of


@pytest.mark.parametrize(
    ("searched", "again", "factor"),
    [
        ({"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 5.0}, 2.5),
        ({"a": 1.0, "b": 2.0}, {"a": 0.5, "b": 0.5}, 0.5),
        ({"a": 1.0, "b": 2.0}, {"a": 3.0, "b": 1.9}, 1.0),
        ({"a": 1.0, "b": 2.0}, {"a": 3.0, "c": 5.0}, 1.0),
        ({"a": -1.0, "b": 2.0}, {"a": 3.0, "b": 5.0}, 1.0),
        ({"a": 1.0, "b": 2.0}, {"a": math.inf, "b": 5.0}, 1.0),
        ({}, {}, 1.0),
    ],
)
def test_it_is_what_all_have_in_common(
    searched: dict[str, float], again: dict[str, float], factor: float
) -> None:
    assert drift(searched, again) == factor


@given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from([0.25, 0.5, 0.9, 1.0, 1.1, 2.0, 4.0])))
def test_all_have_moved_by_at_least_so_much_and_one_by_no_more(moved: dict[str, float]) -> None:
    factor = drift(dict.fromkeys("abcd", 3.0), {own: 3.0 * times for own, times in moved.items()})
    nearest = min(moved.values(), key=lambda times: abs(math.log(times)), default=1.0)
    alike = len(moved) > 1 and (min(moved.values()) > 1 or max(moved.values()) < 1)
    assert factor == pytest.approx(nearest if alike else 1.0)


def test_only_what_is_much_is_said() -> None:
    assert say_drift(1.4) == say_drift(1.0) == say_drift(0.7) == ""
    assert "2 times as large" in say_drift(2.0)
    assert "4 times as small" in say_drift(0.25)


def shift(
    searched: dict[str, float], again: dict[str, float], one: str = "default", *, minimize: bool = True
) -> float:
    known = {own: Estimate(value, 0.99 * value, 1.01 * value, 5) for own, value in searched.items()}
    return shift_of(known, again, one, "best", minimize=minimize)


def test_a_load_that_falls_on_one_alone_is_said() -> None:
    """Of a busy machine: 24 ms became 710 ms, 3 ms stayed 3 ms, and the answer was 231 times as fast."""
    factor = shift({"default": 0.024, "best": 0.003}, {"default": 0.71, "best": 0.003})
    assert factor == pytest.approx(0.71 / 0.024)
    assert "30 times as large as in the search" in say_shift(factor)
    assert "4 times as small" in say_shift(0.25)


def test_a_search_that_was_disturbed_casts_no_doubt_on_the_finale() -> None:
    """Of a busy machine: the winner took 6.3 ms in the search, and 2.2 ms without the load."""
    searched, again = {"default": 2.565, "best": 6.266}, {"default": 2.532, "best": 2.214}
    assert shift(searched, again) == 1.0
    assert shift(searched, again, minimize=False) == pytest.approx(2.79, abs=0.01)  # a rate that fell


def test_a_search_that_knew_little_of_a_value_casts_no_doubt_on_the_finale() -> None:
    """Of a server under load: 4733 and 1615 requests/s in the search, and then 1516 in eight rounds."""
    searched = {"default": Estimate(1145, 62, 2227, 2), "best": Estimate(3174, 0, 22980, 2)}
    again = {"default": 1251.0, "best": 1516.0}
    assert shift_of(searched, again, "default", "best", minimize=False) == 1.0

    searched["best"] = Estimate(3174, 3000, 3300, 8)
    factor = shift_of(searched, again, "default", "best", minimize=False)
    assert factor == pytest.approx(3174 / 1516), "the default is not known to have moved"


def test_default_and_winner_may_compare_a_little_otherwise() -> None:
    both = {"default": 3.0, "best": 1.0}
    assert shift(both, {"default": 9.0, "best": 3.0}) == pytest.approx(1.0)
    assert shift(both, {"default": 9.0}) == 1.0
    assert shift({"best": -1.0, "default": 3.0}, both) == 1.0
    assert shift(both, {"default": 3.0, "best": 1.0}, "") == 1.0
    assert shift({"best": 1.0}, both) == 1.0, "the default was not searched"
    assert say_shift(1.0) == say_shift(1.9) == say_shift(0.6) == ""
