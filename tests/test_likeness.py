"""How unlike two workloads are."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.likeness import apart, distance


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ({"m": 64}, {"m": 64}, 0),
        ({"m": 64}, {"m": 128}, 1),
        ({"m": 8, "n": 8}, {"m": 64, "n": 128}, 5),
        ({"shape": (8, 8)}, {"shape": (64, 128)}, 5),
        ({"shape": (8, 8)}, {"shape": (8, 8, 8)}, 10),
        ({"m": 64}, {"m": 0}, 10),
        ({"m": 64}, {}, 10),
        ({}, {"m": 64}, 10),
        ({"t": "half"}, {"t": "single"}, 10),
        ({"t": True}, {"t": 1}, 10),
    ],
)
def test_distance_counts_factors_of_two(one: dict[str, Any], other: dict[str, Any], expected: float) -> None:
    assert distance(one, other) == pytest.approx(expected)


def test_a_group_of_named_facts_counts_as_its_facts() -> None:
    link = {"bandwidth": 1e9, "latency": 1e-3}
    assert apart(link, {"latency": 2e-3, "bandwidth": 1e9}) == pytest.approx(1.0)
    assert apart(link, {"bandwidth": 1e9}) is None


ALONE = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(["a", "b"])
FACTS = st.recursive(
    ALONE, lambda few: st.lists(few, max_size=3) | st.dictionaries(st.sampled_from("mn"), few), max_leaves=4
)


@given(FACTS, FACTS)
def test_any_two_facts_are_as_far_apart_alone_as_both_ways_and_beside_others(one: Any, other: Any) -> None:
    found = apart(one, other)
    assert apart(other, one) == found == apart([1, one], [1, other]) == apart({"a": one}, {"a": other})
    assert apart(one, one) == 0.0


@pytest.mark.parametrize("other", [0, -4, "4", True, math.inf])
def test_numbers_without_a_ratio_are_not_near(other: Any) -> None:
    assert apart(4, other) is None
    assert apart(other, other) == 0.0


def test_a_number_past_those_of_floats_is_far_away() -> None:
    assert apart(1, 10**400) == pytest.approx(400 * math.log2(10))


@pytest.mark.parametrize(("one", "other"), [(2**60, 2**60 + 1), (0.001, 0.0010000000000000002)])
def test_two_that_differ_are_apart_however_near(one: float, other: float) -> None:
    """Of another seed, or number of bytes, the recipe was said to be for this very workload."""
    assert 0.0 < distance({"seed": one}, {"seed": other}) < 1e-6
