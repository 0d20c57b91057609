"""Draws where constraints leave so little of the continuous knobs that random draws do not meet it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from autotune.errors import InputError
from autotune.space import (
    Assignment,
    Choice,
    Configuration,
    Flag,
    FloatRange,
    IntegerRange,
    OrderedValues,
    Permutation,
    Space,
)

SHARES = [f"w{i}" for i in range(8)]
KNOBS = [FloatRange(name, 0.0, 1.0, default=0.1) for name in SHARES]
TOTAL = " + ".join(SHARES)


def drawn(space: Space, n: int, seed: int = 1) -> list[Configuration]:
    found = space.sample(np.random.default_rng(seed), n)
    assert len(found) == n
    assert all(one in space for one in found)
    return found


def test_shares_of_a_whole_are_uniform() -> None:
    """One draw in 40,320 is one. Each share is distributed as Beta(1, 8), and their sum as Beta(8, 1)."""
    values = np.array([[one[name] for name in SHARES] for one in drawn(Space(KNOBS, [f"{TOTAL} <= 1"]), 600)])
    assert all(stats.kstest(values[:, i], stats.beta(1, 8).cdf).pvalue > 1e-4 for i in range(8))
    assert stats.kstest(values.sum(axis=1), stats.beta(8, 1).cdf).pvalue > 1e-4


def test_a_sliver_aslant_is_travelled_from_end_to_end() -> None:
    space = Space([FloatRange("x", 0.0, 1.0), FloatRange("y", 0.0, 1.0)], ["abs(x - y) <= 1e-7"])
    values = np.array([one["x"] for one in drawn(space, 400)])
    assert stats.kstest(values, "uniform").pvalue > 1e-4


def test_an_equality_of_floats_is_met() -> None:
    space = Space(KNOBS[:3], ["w0 + w1 + w2 == 1"])
    assert len(set(drawn(space, 50))) == 50


def test_what_only_equals_a_strict_bound_is_not_drawn() -> None:
    """It misses by next to nothing, of which nothing was left in units of what is usually missed."""
    knobs = [OrderedValues("tile", (16, 32, 64, 128, 256, 512, 1024)), *KNOBS[:3]]
    found = drawn(Space(knobs, ["tile < 64 and w0 + w1 + w2 <= 0.2"]), 200)
    assert {one["tile"] for one in found} == {16, 32}


def test_other_knobs_take_the_share_that_is_left_to_them() -> None:
    """Of a disc whose area is as ``size`` is, and that is there for two kinds of three."""
    knobs = [
        FloatRange("x", 0.0, 1.0),
        FloatRange("y", 1e-3, 1.0, scale="log"),
        IntegerRange("size", 1, 4),
        Choice("kind", ("a", "b", "c")),
        Permutation("order", ("i", "j", "k")),
        Permutation("alone", ("one",)),
    ]
    rules = ["x <= 1e-3 * size and kind != 'c'", "order[0] != 'k'", "y <= 0.5 or x > 0"]
    found = drawn(Space(knobs, rules), 2000)
    sizes = np.bincount([one["size"] for one in found], minlength=5)[1:] / 2000
    assert np.abs(sizes - np.array([0.1, 0.2, 0.3, 0.4])).max() < 0.08
    assert {one["kind"] for one in found} == {"a", "b"}
    assert len({one["order"] for one in found}) == 4


def test_knobs_that_exist_only_there_are_drawn() -> None:
    knobs = [
        Flag("on"),
        FloatRange("x", 0.0, 1.0),
        FloatRange("z", 0.0, 1.0, when="on"),
        IntegerRange("n", 1, 3, when="x > 0.0005"),
        Assignment("place", ("a", "b"), ("u", "v")),
    ]
    found = drawn(Space(knobs, ["x <= 0.001", "x + z <= 0.5"]), 500)
    assert {one.get("n") for one in found} == {None, 1, 2, 3}
    with_z = sum("z" in one for one in found) / 500
    assert 0.2 < with_z < 0.47  # half as much room as without it


def test_draws_are_the_same_for_the_same_seed_and_need_no_memory_of_others() -> None:
    space, again = (Space(KNOBS, [f"{TOTAL} <= 1"]) for _ in range(2))
    drawn(space, 3, seed=2)
    assert drawn(space, 20) == drawn(again, 20)


def test_draws_stay_what_they_were() -> None:
    """Stored studies are derived again: how closing in is computed may change, what it draws may not."""
    shares = [FloatRange(name, 0.0, 1.0, default=0.0) for name in "abcdefgh"]
    [first] = drawn(Space(shares, [f"{' + '.join('abcdefgh')} <= 0.5"]), 1)
    assert list(first.values()) == pytest.approx(
        [
            0.0936987867944,
            0.0536477532037,
            0.0240925636394,
            0.13065370897,
            0.0437629751985,
            0.0686877947416,
            0.0422865770021,
            0.0330573394893,
        ],
        rel=1e-9,
    )


@pytest.mark.long
def test_what_is_beside_one_is_near_it_along_the_sliver() -> None:
    space, rng = Space(KNOBS, [f"{TOTAL} == 1"]), np.random.default_rng(3)
    [here] = drawn(space, 1)
    found = space.beside(here, rng, 100)
    assert all(one in space for one in found)
    moved = [max(abs(one[name] - here[name]) for name in SHARES) for one in found]
    assert 0 < max(moved) <= 0.2
    assert len(set(found)) > 30
    assert Space(KNOBS, [f"{TOTAL} <= 5"]).beside(here, rng, 100) == []


@pytest.mark.long
def test_twenty_shares_of_a_whole() -> None:
    knobs = [FloatRange(f"w{i}", 0.0, 1.0) for i in range(20)]
    drawn(Space(knobs, [" + ".join(knob.name for knob in knobs) + " <= 1"]), 5)


@pytest.mark.parametrize("rule", ["x - x < -0.5", "x == 0.5 and x > 0.6", "x in [0.123]"])
def test_where_there_is_none_it_ends_and_says_so(rule: str) -> None:
    space = Space([FloatRange("x", 0.0, 1.0)], [rule])
    with pytest.raises(InputError, match="no configuration was found that satisfies"):
        space.sample(np.random.default_rng(0))
