"""The feasible set against brute force: what is in it, its numbers and its samples."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autotune.errors import AutotuneError
from autotune.space.configuration import Configuration
from autotune.space.feasible_set.feasible import FeasibleSet
from autotune.space.knobs import (
    Choice,
    Flag,
    IntegerRange,
    OrderedValues,
    Permutation,
)
from autotune.space.space import Space
from tests.space.spaces import (
    SmallSpace,
    brute_force,
    feasible,
    key,
    printed_under_hash_seeds,
    small_spaces,
    when,
)

THOROUGH = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


# --- against brute force ---------------------------------------------------------------------------


@THOROUGH
@given(small_spaces())
def test_agrees_with_brute_force(space: SmallSpace) -> None:
    expected = {key(values): values for values in brute_force(space)}
    found = FeasibleSet(space.knobs, space.constraints)
    assert found.size == len(found) == len(expected)
    assert found.bounds == (len(expected), len(expected))
    listed = list(found)
    assert [key(values) for values in listed] == list(dict.fromkeys(key(values) for values in listed))
    assert {key(values) for values in listed} == expected.keys()
    for number, values in enumerate(listed[:40]):
        assert values in found
        assert found.index(values) == number
        assert found[number] == values
    matrix = found.matrix()
    assert matrix.shape == (len(expected), len(found.cells))
    assert found.configurations(matrix) == listed


@THOROUGH
@given(small_spaces(conditions=False), st.data())
def test_membership_of_what_is_not_in_it(space: SmallSpace, data: st.DataObject) -> None:
    everything = brute_force(SmallSpace(space.knobs, ()))
    inside = {key(values) for values in brute_force(space)}
    found = FeasibleSet(space.knobs, space.constraints)
    for values in data.draw(st.lists(st.sampled_from(everything), max_size=20)):
        assert (values in found) == (key(values) in inside)


@THOROUGH
@given(small_spaces(), st.integers(1, 12))
def test_a_relaxed_set_bounds_samples_and_lists_the_same(space: SmallSpace, limit: int) -> None:
    expected = {key(values) for values in brute_force(space)}
    found = FeasibleSet(space.knobs, space.constraints, limit=limit)
    low, high = found.bounds
    assert low <= len(expected) <= high
    listed = [key(values) for values in found]
    assert len(listed) == len(expected)
    assert set(listed) == expected
    for values in brute_force(SmallSpace(space.knobs, ()))[:30]:
        assert (values in found) == (key(values) in expected)
    if len(expected) * 50 > high:
        assert {key(values) for values in found.sample(np.random.default_rng(1), 20)} <= expected


@THOROUGH
@given(small_spaces(), st.data())
def test_rows_are_exactly_the_set(space: SmallSpace, data: st.DataObject) -> None:
    everything = brute_force(space)
    if not everything:
        return
    rows = data.draw(st.lists(st.sampled_from(everything), max_size=15))
    found = FeasibleSet(space.knobs, space.constraints, rows=rows)
    assert {key(values) for values in found} == {key(values) for values in rows}
    assert len(found) == len({key(values) for values in rows})
    for number, values in enumerate(found):
        assert found.index(values) == number and found[number] == values
    for values in everything[:20]:
        assert (values in found) == (key(values) in {key(row) for row in rows})


# --- sampling ----------------------------------------------------------------------------------


def chi_square_is_plausible(counts: Counter[str], cells: int, draws: int) -> bool:
    """Whether the counts are within six standard deviations of what a uniform draw gives."""
    expected = draws / cells
    statistic = sum((count - expected) ** 2 / expected for count in counts.values())
    statistic += (cells - len(counts)) * expected
    return statistic < (cells - 1) + 6 * math.sqrt(2 * (cells - 1))


MIXED = (
    [
        IntegerRange("a", 1, 6),
        IntegerRange("b", 1, 6),
        Choice("c", ("x", "y")),
        when(IntegerRange("d", 1, 3), "c == 'x'", Choice("c", ("x", "y"))),
        Permutation("order", ("i", "j", "k")),
    ],
    ("a * b <= 12", "order[0] != 'i' or a == 1", "d <= a"),
)


@pytest.mark.parametrize("limit", [2_000_000, 8], ids=["counted", "relaxed"])
def test_sampling_is_uniform(limit: int) -> None:
    knobs, constraints = MIXED
    exact = feasible(list(knobs), *constraints)
    found = feasible(list(knobs), *constraints, limit=limit)
    assert (found.size is None) == (limit == 8)
    draws = 40 * len(exact)
    counts = Counter(key(values) for values in found.sample(np.random.default_rng(7), draws))
    assert counts.keys() <= {key(values) for values in exact}
    assert chi_square_is_plausible(counts, len(exact), draws)


def test_a_biased_sample_would_be_noticed() -> None:
    rng = np.random.default_rng(0)
    fair = Counter(str(n) for n in rng.integers(200, size=8000))
    assert chi_square_is_plausible(fair, 200, 8000)
    slanted = Counter(str(n) for n in np.minimum(rng.integers(200, size=8000), rng.integers(400, size=8000)))
    assert not chi_square_is_plausible(slanted, 200, 8000)


def test_the_same_seed_draws_the_same() -> None:
    knobs, constraints = MIXED
    found = feasible(list(knobs), *constraints)
    one, other = (found.sample(np.random.default_rng(3), 50) for _ in range(2))
    assert one == other


# --- the edges -------------------------------------------------------------------------------------


def test_an_empty_set_says_so() -> None:
    found = feasible([IntegerRange("a", 1, 3), IntegerRange("b", 1, 3)], "a * b > 9")
    assert found.size == 0 and not found and list(found) == []
    with pytest.raises(AutotuneError, match="no configuration satisfies"):
        found.sample(np.random.default_rng(0))
    assert found.matrix().shape == (0, 2)


def test_no_knobs_is_one_configuration() -> None:
    found = FeasibleSet([])
    assert found.size == 1 and list(found) == [{}] and {} in found and found[0] == {}


def test_the_number_of_a_configuration_or_none() -> None:
    knobs = [OrderedValues("a", (1, 2, 4)), Flag("b", when="a > 1")]
    feasible = Space(knobs, ["a != 4 or b"]).feasible
    numbers = {Configuration(values): place for place, values in enumerate(feasible)}
    outside = [{"a": 4, "b": False}, {"a": 1, "b": True}, {"a": 3}, {"a": 2}, {"c": 1}]
    for _ in range(2):
        assert {one: feasible.number(one) for one in numbers} == numbers
        assert all(feasible.number(Configuration(values)) is None for values in outside)


def test_numbers_out_of_range_and_strangers() -> None:
    found = feasible([IntegerRange("a", 1, 3)])
    assert found[-1] == {"a": 3}
    with pytest.raises(IndexError, match="3 configurations"):
        found[3]
    with pytest.raises(ValueError, match="no knob 'b'"):
        found.index({"a": 1, "b": 2})
    assert {"a": 9} not in found and {} not in found and 5 not in found
    with pytest.raises(ValueError, match="not in the feasible set"):
        feasible([IntegerRange("a", 1, 3)], "a > 1").index({"a": 1})


def test_numbers_do_not_depend_on_the_hash_seed() -> None:
    """The order of sets of texts must not reach the numbering."""
    program = (
        "from tests.space.feasible_set.test_feasible import MIXED, feasible\n"
        "knobs, rules = MIXED\n"
        "print(feasible(list(knobs), *rules)[77])"
    )
    assert len(printed_under_hash_seeds(program)) == 1
