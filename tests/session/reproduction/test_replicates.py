"""When two results differ by more than runs of the same thing do."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.session.reproduction.replicates import (
    Interval,
    apart,
    expected_spread,
    resolution,
    spread_of,
    widened,
)

VALUES = st.floats(1e-6, 1e6)
WIDTHS = st.floats(1.0, 2.0)
INTERVALS = st.builds(lambda value, low, high: (value, value / low, value * high), VALUES, WIDTHS, WIDTHS)


@settings(deadline=None)
@given(INTERVALS, INTERVALS, st.floats(0, 0.1))
def test_it_does_not_matter_which_was_first(one: Any, other: Any, precision: float) -> None:
    assert apart(one, other, precision) == apart(other, one, precision)
    assert not apart(one, one, precision)


@settings(deadline=None)
@given(INTERVALS, INTERVALS, st.floats(0, 0.1), st.floats(1e-3, 1e3))
def test_units_do_not_matter(one: Any, other: Any, precision: float, scale: float) -> None:
    distance = math.log(max(one[0], other[0]) / min(one[0], other[0]))
    if abs(distance - precision) < 1e-9:
        return
    scaled = [tuple(x * scale for x in interval) for interval in (one, other)]
    sure = apart(one, other, precision + 1e-9) == apart(one, other, max(precision - 1e-9, 0))
    if sure:
        assert apart(scaled[0], scaled[1], precision) == apart(one, other, precision)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ((1.4, 1.39, 1.41), (1.4, 1.39, 1.41), False),
        ((1.4, 1.4, 1.4), (1.41, 1.41, 1.41), False),  # within the precision of 1 %
        ((1.4, 1.4, 1.4), (1.43, 1.43, 1.43), True),
        ((1.4, 1.3, 1.5), (1.5, 1.4, 1.6), False),
        ((1.4, 1.3, 1.5), (2.0, 1.9, 2.1), True),
        ((1.4, 1.3, math.inf), (20.0, 19.0, 21.0), False),  # no end, no difference
        ((1.4, 1.3, 1.5), (math.inf, 1.6, math.inf), False),
        ((math.inf, 1.3, math.inf), (math.inf, 1.6, math.inf), False),
        ((1.4, 0.0, 1.5), (0.5, 0.0, 0.6), False),  # it may be 0
        ((-2.0, -2.1, -1.9), (-1.0, -1.1, -0.9), True),
        ((-0.1, -0.6, 0.4), (0.1, -0.4, 0.6), False),
        ((-100.5, -100.5, -100.5), (-100.0, -100.0, -100.0), False),  # within 1 %
        ((-101.005, -101.005, -101.005), (-100.0, -100.0, -100.0), False),  # 1 % of the larger one
        ((-0.0012, -0.0012, -0.0012), (-0.001, -0.001, -0.001), True),
        ((-2.0, -9.0, -1.9), (-1.0, -1.1, 9.0), True),  # only the sides that face each other count
        ((-2.0, -2.1, -1.9), (-1.0, -2.5, -0.9), False),
        ((-2.0, -2.1, -0.5), (-1.0, -1.1, -0.9), False),
    ],
)
def test_intervals_and_precision_explain_a_difference(one: Any, other: Any, differ: bool) -> None:
    assert apart(one, other, 0.01) == differ


# -- the spread of runs


def test_the_spread_is_pooled_over_configurations_of_any_speed() -> None:
    found = spread_of([[1.0, math.e], [100.0, 100.0 * math.e, 100.0 * math.e**2], [7.0]])
    assert found is not None
    assert found.freedom == 3
    assert found.deviation == pytest.approx(math.sqrt((0.5 + 2.0) / 3))
    assert spread_of([[1.0], [2.0], []]) is None
    for pair in ([-1.0, 1.0], [0.0, 2.0]):  # an exact answer has an error of 0
        linear = spread_of([pair])
        assert linear is not None and not linear.logarithmic
        assert linear.deviation == pytest.approx(math.sqrt(2))


@given(st.lists(st.lists(st.floats(1e-3, 1e3), max_size=5), max_size=5), st.floats(1e-3, 1e3))
def test_the_spread_has_no_unit(groups: list[list[float]], scale: float) -> None:
    one, other = spread_of(groups), spread_of([[scale * value for value in group] for group in groups])
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert one.freedom == other.freedom
        assert one.deviation == pytest.approx(other.deviation, rel=1e-6, abs=1e-9)


def test_the_runs_made_now_count_where_too_little_is_known_from_before() -> None:
    before = [[1.0, 1.1], [2.0, 2.1]]
    found = expected_spread(before, [1.0, 1.2, 1.3])
    assert found is not None and found.freedom == 4
    enough = [*before, [3.0, 3.1], [4.0, 4.1]]
    assert expected_spread(enough, [1.0, 9.0]) == spread_of(enough)
    assert expected_spread([], [1.0]) is None


@given(INTERVALS, st.floats(0.0, 3.0))
def test_widening_never_narrows(interval: Any, reach: float) -> None:
    value, low, high = widened(interval, reach, True)
    assert low <= interval[1] and high >= interval[2] and value == interval[0]
    assert high >= value * math.exp(reach) * (1 - 1e-12)


@pytest.mark.parametrize(
    ("interval", "logarithmic", "wider"),
    [
        ((2.0, 1.9, 2.1), False, (2.0, 1.5, 2.5)),
        ((2.0, 1.0, 9.0), False, (2.0, 1.0, 9.0)),
        ((-2.0, -2.1, -1.9), True, (-2.0, -2.5, -1.5)),  # has no logarithm
        ((0.0, -1.0, 0.1), True, (0.0, -1.0, 0.5)),
    ],
)
def test_without_logarithms_it_is_widened_in_its_own_unit(
    interval: Interval, logarithmic: bool, wider: Interval
) -> None:
    assert widened(interval, 0.5, logarithmic) == wider


def test_one_in_twenty_results_of_the_same_thing_is_said_to_differ() -> None:
    """The level of the whole rule, where runs differ by more than their own intervals say."""
    rng = np.random.default_rng(7)
    spread, inside, tries, wrong = 0.02, 0.002, 2000, 0
    for _ in range(tries):
        before = rng.lognormal(0.0, spread, (5, 2)).tolist()
        then, *now = rng.lognormal(0.0, spread, 2)
        known = expected_spread(before, [1.0])
        assert known is not None
        sides = [around(value, inside) for value in (then, now[0])]
        one, other = (widened(side, known.reach(0.95), True) for side in sides)
        wrong += apart(one, other, 0.0)
        if apart(one, other, 0.0):
            assert apart(*sides, 0.0)
    assert 0.025 < wrong / tries < 0.06


def test_without_the_spread_of_runs_half_of_them_would() -> None:
    rng = np.random.default_rng(7)
    pairs = rng.lognormal(0.0, 0.02, (500, 2))
    wrong = sum(apart(around(a, 0.002), around(b, 0.002), 0.01) for a, b in pairs)
    assert wrong / len(pairs) > 0.5


def test_what_would_have_been_noticed_is_said() -> None:
    one: Interval = (1.0, 0.98, 1.02)
    found = resolution(one, one, 0.01)
    assert found is not None and 0.03 < found < 0.05
    value = 1.0 + found
    assert apart(one, (value * 1.001, value * 0.98, value * 1.03), 0.01)
    assert resolution(one, (-1.0, -2.0, 1.0), 0.01) is None
    assert resolution(one, (0.9, 0.0, 1.1), 0.01) is None  # it may be 0
    assert resolution(one, (0.9, 0.5, math.inf), 0.01) is None
    assert resolution(one, (math.inf, 1.6, math.inf), 0.01) is None


@given(INTERVALS, INTERVALS, st.floats(0, 0.1))
def test_a_larger_difference_is_noticed_and_a_smaller_one_is_not(
    one: Interval, other: Interval, precision: float
) -> None:
    low, high = sorted((one, other))
    found = resolution(low, high, precision)
    assert found is not None
    for times, noticed in ((1 + 1e-6, True), (1 - 1e-6, False)):
        factor = low[0] * (1 + found) * times / high[0]
        moved = high[0] * factor, high[1] * factor, high[2] * factor
        if moved[0] > low[0]:
            assert apart(low, moved, precision) is noticed


def around(value: float, part: float) -> Interval:
    return value, value * math.exp(-2 * part), value * math.exp(2 * part)
