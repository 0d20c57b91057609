"""A place on a range and the number there."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from autotune.search.candidates.assemble import at
from autotune.search.candidates.axes import from_unit, knob_axes
from autotune.search.candidates.scales import between
from autotune.space import FloatRange


@given(st.floats(1e-9, 1e9), st.floats(1e-9, 1e9), st.booleans())
def test_the_ends_of_a_range_are_its_bounds(one: float, other: float, log: bool) -> None:
    low, high = min(one, other), max(one, other)
    assume(low < high)
    assert [between(low, high, place, log=log) for place in (-0.1, 0.0, 1e-17)] == [low] * 3
    assert [between(low, high, place, log=log) for place in (1.0 - 1e-16, 1.0, 1.1)] == [high] * 3
    assert low <= between(low, high, 0.5, log=log) <= high


def test_a_low_bound_has_no_tail() -> None:
    """``eta=0.00010000000000000009`` had been written for it."""
    knob = FloatRange("eta", 1e-4, 1.0, scale="log")
    assert at(knob, 0.0) == from_unit(knob_axes(knob)[0], 0.0) == 1e-4
    assert at(knob, 0.5) == pytest.approx(math.sqrt(1e-4))
