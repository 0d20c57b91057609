"""Ranges that hold others, and values that are brought into them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from autotune.interop.for_optuna.ranges import current, hull, moves, nearest

INTEGERS = st.builds(
    lambda low, places, step: IntDistribution(low, low + places * step, step=step),
    st.integers(-9, 9),
    st.integers(0, 9),
    st.integers(1, 4),
)
FLOATS = st.builds(
    lambda low, places, step: FloatDistribution(low / 4, low / 4 + places / 4, step=step),
    st.integers(-9, 9),
    st.integers(0, 9),
    st.sampled_from([None, 0.25]),
)


@given(st.one_of(st.tuples(INTEGERS, INTEGERS), st.tuples(FLOATS, FLOATS)), st.integers(0, 9))
def test_a_hull_holds_what_both_hold(pair: tuple[BaseDistribution, BaseDistribution], place: int) -> None:
    both = hull(*pair)
    assert both == hull(*reversed(pair)) == hull(both, pair[0])
    for own in pair:
        value = nearest(place / 2, own)
        assert own._contains(value) and both._contains(value)
        assert nearest(value, own) == value


@given(INTEGERS, st.integers(-20, 60))
def test_no_value_of_a_range_is_nearer_than_the_nearest(own: IntDistribution, place: int) -> None:
    values = range(own.low, own.high + 1, own.step)
    assert abs(nearest(place / 2, own) - place / 2) == min(abs(one - place / 2) for one in values)


def test_a_logarithmic_range_stays_one() -> None:
    one, other = FloatDistribution(1e-6, 1e-3, log=True), FloatDistribution(1e-4, 1.0, log=True)
    assert hull(one, other) == FloatDistribution(1e-6, 1.0, log=True)


def test_a_step_is_kept_where_the_values_of_both_lie_on_it() -> None:
    one = FloatDistribution(0.0, 1.0, step=0.25)
    assert hull(one, FloatDistribution(0.5, 2.0, step=0.25)) == FloatDistribution(0.0, 2.0, step=0.25)
    assert hull(one, FloatDistribution(0.125, 1.125, step=0.25)) == FloatDistribution(0.0, 1.125)
    above = FloatDistribution(0.125, 1.125, step=0.5)
    assert hull(above, FloatDistribution(0.625, 2.625, step=0.5)) == FloatDistribution(0.125, 2.625, step=0.5)
    fours = IntDistribution(0, 8, step=4)
    assert hull(fours, IntDistribution(2, 10, step=4)) == IntDistribution(0, 10, step=2)


def test_what_has_nothing_in_common() -> None:
    for other in (FloatDistribution(0, 9), IntDistribution(1, 9, log=True), CategoricalDistribution([1, 2])):
        for pair in ((IntDistribution(1, 9), other), (other, IntDistribution(1, 9))):
            with pytest.raises(ValueError, match="no range in common"):
                hull(*pair)
    with pytest.raises(ValueError, match="no range in common"):
        hull(FloatDistribution(1, 9), FloatDistribution(1, 9, log=True))
    same = CategoricalDistribution([1, 2])
    assert hull(same, CategoricalDistribution([1, 2])) == same
    with pytest.raises(ValueError, match="is no range"):
        nearest(1, CategoricalDistribution([1, 2]))


def test_one_change_is_an_edit_and_two_are_a_range_that_moves() -> None:
    a, b, c = (IntDistribution(1, high) for high in (4, 9, 6))
    assert not moves([a] * 3 + [b] * 3) and current([a, b]) == b
    assert moves([a, b, a]) and moves([a, b, c]) and current([a, b, c]) == b
    assert not moves([a, b, *[c] * 10]) and current([a, b, *[c] * 10]) == c
