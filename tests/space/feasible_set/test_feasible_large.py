"""Feasible sets of sizes that cannot be listed, against counts that are known otherwise."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.errors import AutotuneError
from autotune.space.feasible_set import factors
from autotune.space.feasible_set.factors import RuledFactor
from autotune.space.feasible_set.layering import IN_ALL, LIMIT
from autotune.space.knobs import (
    Assignment,
    Flag,
    FloatRange,
    IntegerRange,
    OrderedValues,
    Permutation,
)
from autotune.space.knobs.knob import Knob
from tests.space.spaces import feasible, when


def twelve(low: int = 1, high: int = 10) -> list[Knob]:
    return [IntegerRange(f"k{n}", low, high) for n in range(12)]


NAMES = [f"k{n}" for n in range(12)]


def sums_to(total: int, sides: int = 10, dice: int = 12) -> int:
    """In how many ways ``dice`` numbers from 1 to ``sides`` add up to at most ``total``."""
    ways = {0: 1}
    for _ in range(dice):
        after: dict[int, int] = {}
        for value, count in ways.items():
            for side in range(1, sides + 1):
                after[value + side] = after.get(value + side, 0) + count
        ways = after
    return sum(count for value, count in ways.items() if value <= total)


def test_a_sum_over_twelve_knobs_is_counted_exactly() -> None:
    found = feasible(twelve(), f"{' + '.join(NAMES)} <= 50")
    assert found.size == sums_to(50)
    rng = np.random.default_rng(0)
    for values in found.sample(rng, 50):
        assert sum(values.values()) <= 50  # type: ignore[arg-type]
        assert found[found.index(values)] == values


def test_a_modulus_over_twelve_knobs_is_counted_exactly() -> None:
    weighted = " + ".join(f"{7 * n + 3} * {name}" for n, name in enumerate(NAMES))
    found = feasible(twelve(), f"({weighted}) % 10 == 3")
    # k0 has weight 3 and takes every residue modulo 10 once, whatever the other knobs are
    assert found.size == 10**11


def test_more_configurations_than_64_bits_hold() -> None:
    knobs: list[Knob] = [IntegerRange(f"k{n}", 1, 1000) for n in range(12)]
    knobs.append(Permutation("order", tuple(range(30))))
    found = feasible(knobs, "k0 + k1 + k2 <= 1500")
    assert found.size is not None
    assert found.size % (1000**9 * math.factorial(30)) == 0
    for values in found.sample(np.random.default_rng(0), 5):
        assert found[found.index(values)] == values


EIGHT = tuple(f"gpu{number}" for number in range(8))
LAYERS = tuple(f"layer{number}" for number in range(350))


def test_more_configurations_than_a_float_holds() -> None:
    split = Flag("split")
    found = feasible([split, when(Assignment("place", LAYERS, EIGHT), "split", split)])
    assert found.size == 8**350 + 1
    [values] = found.sample(np.random.default_rng(0))
    assert values in found and found[found.index(values)] == values


def test_an_estimate_beyond_what_a_float_holds() -> None:
    ranges: list[Knob] = [IntegerRange("a", 1, 10**6), IntegerRange("b", 1, 10**6)]
    found = feasible([*ranges, Assignment("place", LAYERS, EIGHT)], "a * b <= 10 ** 11")
    alone = feasible(ranges, "a * b <= 10 ** 11").estimate
    assert found.size is None and alone.low < alone.value < alone.high
    assert found.estimate == replace(
        alone, value=alone.value * 8**350, low=alone.low * 8**350, high=alone.high * 8**350
    )
    with pytest.raises(AutotuneError, match=r"about [0-9.]+e\+327\. It can be sampled"):
        len(found)


def test_a_range_of_a_billion_is_never_listed() -> None:
    knobs: list[Knob] = [IntegerRange("n", 0, 10**9 - 1), IntegerRange("m", 0, 10**9 - 1)]
    assert feasible(knobs).size == 10**18
    found = feasible(knobs, "n % 4 == 0", "m >= 999999000")
    assert found.size == 250_000_000 * 1000
    for values in found.sample(np.random.default_rng(0), 20):
        assert values["n"] % 4 == 0 and values["m"] >= 999_999_000  # type: ignore[operator]
        assert found[found.index(values)] == values


def test_a_product_of_two_long_ranges_is_bounded_and_sampled() -> None:
    knobs: list[Knob] = [IntegerRange("n", 1, 100_000), IntegerRange("m", 1, 100_000)]
    found = feasible(knobs, "n * m <= 1000000", limit=100_000)
    truth = sum(min(100_000, 1_000_000 // n) for n in range(1, 100_001))
    low, high = found.bounds
    assert low <= truth <= high
    assert found.estimate.low <= truth <= found.estimate.high
    for values in found.sample(np.random.default_rng(0), 100):
        assert values["n"] * values["m"] <= 1_000_000  # type: ignore[operator]
    if found.size is None:
        with pytest.raises(AutotuneError, match="between"):
            len(found)


def test_cells_of_middling_length_become_digits_where_that_counts() -> None:
    knobs: list[Knob] = [IntegerRange("n", 1, 4000), IntegerRange("m", 1, 4000)]
    found = feasible(knobs, "n * m <= 100000")
    assert found.size == sum(min(4000, 100_000 // n) for n in range(1, 4001))
    divided = feasible([IntegerRange("n", 1, 1000), IntegerRange("m", 1, 1000)], "n % m == 0")
    assert divided.size == sum(1000 // m for m in range(1, 1001))


@pytest.mark.long
def test_a_chain_of_products_is_bounded_within_a_bound_of_work() -> None:
    """With digits, whose states tell dozens of settled rules apart, layers would grow and grow."""
    chain = [IntegerRange(f"k{n}", 1, 1000) for n in range(20)]
    rules = [f"k{n} * k{n + 1} <= 1000 * k{n + 2}" for n in range(18)]
    found = feasible(chain, *rules, "k0 + k10 <= 100")
    (factor,) = (one for one in found.factors if isinstance(one, RuledFactor))
    assert 0 < found.bounds[1] < 1000**20
    assert sum(len(layer.value) for layer in factor.diagram.layers) <= IN_ALL


def test_a_long_float_grid_in_a_rule() -> None:
    found = feasible([FloatRange("x", 0.0, 1.0, step=1e-5), Flag("f")], "x <= 0.25 or f")
    assert found.size == 25_001 + 100_001


def test_a_permutation_of_which_one_position_is_read() -> None:
    items = tuple("abcdefghijklmnopqrst")
    found = feasible([Permutation("order", items)], "order[3] in ['a', 'b']")
    assert found.size == 2 * math.factorial(19)
    values = found.sample(np.random.default_rng(0))[0]
    assert sorted(values["order"]) == sorted(items)  # type: ignore[arg-type]
    assert found[found.index(values)] == values


@pytest.mark.parametrize(
    ("knob", "right", "wrong"),
    [
        (Permutation("order", ("ij",)), "order[0] == 'ij'", "order[0] != 'ij'"),
        (Permutation("order", (3,)), "order[0] == 3", "order[0] != 3"),
        (Assignment("place", ("embed",), ("gpu",)), "place['embed'] == 'gpu'", "count(place, 'gpu') == 0"),
    ],
)
def test_a_permutation_or_an_assignment_of_one_item(knob: Knob, right: str, wrong: str) -> None:
    knobs = [knob, Flag("f")]
    assert feasible(knobs, right).size == feasible(knobs, f"{right} and f or not f").size == 2
    assert feasible(knobs, wrong).size == 0
    assert feasible(knobs, f"{wrong} or f").size == 1


def test_two_positions_of_a_permutation_of_more_than_64_items() -> None:
    items = tuple(f"item{number}" for number in range(70))
    found = feasible([Permutation("order", items)], "order[0] != 'item1' or order[1] != 'item69'")
    assert found.size == math.factorial(70) - math.factorial(68)
    assert all(values in found for values in found.sample(np.random.default_rng(0), 10))
    assert {"order": (items[1], items[69], items[0], *items[2:69])} not in found


def test_an_assignment_with_a_count() -> None:
    place = Assignment("place", tuple(f"layer{n}" for n in range(20)), ("gpu0", "gpu1"))
    found = feasible([place], "count(place, 'gpu0') == 10")
    assert found.size == math.comb(20, 10)


def placed(limits: dict[str, tuple[int, int]], items: int) -> int:
    """In how many ways ``items`` go to devices, each of which takes at least and at most so many."""
    ways = {0: 1}
    for low, high in limits.values():
        after: Counter[int] = Counter()
        for done, count in ways.items():
            for more in range(low, min(high, items - done) + 1):
                after[done + more] += count * math.comb(items - done, more)
        ways = after
    return ways.get(items, 0)


LIMITS = st.tuples(st.integers(0, 3), st.integers(2, 9))


@settings(deadline=None, max_examples=40)
@given(st.lists(LIMITS, min_size=2, max_size=4), st.integers(1, 12))
def test_counts_of_several_devices(ends: list[tuple[int, int]], items: int) -> None:
    limits = dict(zip("abcd", ends, strict=False))
    place = Assignment("place", tuple(f"layer{n}" for n in range(items)), tuple(limits))
    rules = [f"{low} <= count(place, '{to}') <= {high}" for to, (low, high) in limits.items()]
    assert feasible([place], *rules).size == placed(limits, items)


@pytest.mark.long
def test_two_hundred_items_under_counts_are_counted() -> None:
    place = Assignment("place", tuple(f"layer{n}" for n in range(200)), ("a", "b", "c", "d"))
    found = feasible([place], "count(place, 'a') <= 66", "count(place, 'b') >= 40")
    assert found.size == placed({"a": (0, 66), "b": (40, 200), "c": (0, 200), "d": (0, 200)}, 200)
    [values] = found.sample(np.random.default_rng(0))
    assert found[found.index(values)] == values


def test_counts_with_too_many_states_are_estimated_within_a_bound_of_work() -> None:
    items = tuple(f"layer{n}" for n in range(100))
    rules = [f"count(place, '{to}') <= 33" for to in "abcd"]
    found = feasible([Assignment("place", items, tuple("abcd"))], *rules, limit=LIMIT // 10)
    truth = placed(dict.fromkeys("abcd", (0, 33)), 100)
    low, high = found.bounds
    assert found.size is None and low <= truth <= high
    assert found.estimate.low <= truth <= found.estimate.high
    [factor] = found.factors
    assert isinstance(factor, RuledFactor)
    assert sum(len(layer.value) for layer in factor.diagram.layers) <= 2 * IN_ALL // 10
    for values in found.sample(np.random.default_rng(0), 20):
        assert max(Counter(values["place"].values()).values()) <= 33  # type: ignore[union-attr]


SPACES = Path(__file__).parents[4] / "shared" / "spaces" / "kernel-spaces.json"


@pytest.mark.skipif(not SPACES.exists(), reason=f"the spaces of real kernels are not at {SPACES}")
@pytest.mark.parametrize("name", ["gemm", "hotspot", "hotspot-large"])
def test_spaces_of_real_kernels_have_the_known_counts(name: str) -> None:
    space = json.loads(SPACES.read_text())[name]
    knobs: list[Knob] = [OrderedValues(n, tuple(values)) for n, values in space["knobs"].items()]
    found = feasible(knobs, *space["constraints"])
    assert found.size == space["valid"]
    matrix = found.matrix()
    assert len(np.unique(matrix, axis=0)) == space["valid"]
    for number in (0, 12_345, space["valid"] - 1):
        values = found[number]
        assert found.index(values) == number and values in found
        assert all(rule.holds(values) for rule in found.constraints)
        assert found.configurations(matrix[[number]]) == [values]


def test_no_fewer_are_estimated_than_are_there_for_sure():
    """Of a share of one in a million that random draws do not meet it had said that there are about 0."""
    knobs = [IntegerRange(name, 1, 100) for name in "xyzabc"]
    rare = "(a*a*7919 + b*b*104729 + c*c*c*1299709 + x*y*z) % 1000003 == 1"
    found = feasible(knobs, f"(x == 1 and y == 1 and z == 1) or {rare}", limit=10_000)
    assert found.bounds[0] == 100**3 and found.size is None
    assert found.bounds[0] <= found.estimate.low <= found.estimate.value <= found.estimate.high


def test_of_a_set_that_is_hardly_ever_hit_some_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    knobs: list[Knob] = [IntegerRange(f"k{n}", 1, 97) for n in range(8)]
    tangle = " + ".join(f"{n + 2} * k{n} * k{(n + 3) % 8}" for n in range(8))
    found = feasible(knobs, f"({tangle}) % 1009 == 7")
    assert found.size is None
    monkeypatch.setattr(factors, "_MOST_DRAWS", 40_000)
    drawn = found.sample(np.random.default_rng(0), 600)
    assert all(values in found for values in drawn)
    assert 10 < len({tuple(values.values()) for values in drawn}) < 120
    monkeypatch.setattr(factors, "_MOST_DRAWS", 0)
    with pytest.raises(AutotuneError, match="too tight to sample"):
        found.sample(np.random.default_rng(0), 1)
