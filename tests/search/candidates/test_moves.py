"""Small changes stay possible values; crossings keep what both parents share; repairs end feasible."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.search.candidates.moves import crossed, moved, repaired, stepped
from autotune.space.knobs import (
    Assignment,
    Choice,
    Flag,
    FloatRange,
    IntegerRange,
    OrderedValues,
    Permutation,
)
from autotune.space.space import Space

KNOBS = [
    OrderedValues("tile", (1, 2, 4, 8)),
    IntegerRange("width", 1, 1_000_000, scale="log"),
    IntegerRange("depth", 0, 5),
    FloatRange("rate", 1e-5, 1.0, scale="log"),
    FloatRange("share", 0.0, 1.0, step=0.01),
    Choice("layout", ("row", "column", "tiled")),
    Flag("fused"),
    Permutation("order", tuple("abcdef")),
    Assignment("place", ("x", "y", "z", "w"), ("cpu", "gpu")),
]
ONE_VALUE = [
    OrderedValues("tile", (4,)),
    Choice("layout", ("row",)),
    FloatRange("rate", 0.5, 0.5),
    Permutation("order", ("a",)),
    Assignment("place", ("x", "y"), ("cpu",)),
]
seeds = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
class TestEveryKind:
    @given(seed=seeds)
    def test_moves_to_another_possible_value(self, knob, seed):  # type: ignore[no-untyped-def]
        rng = np.random.default_rng(seed)
        here = knob.sample(rng)
        there = moved(knob, here, rng)
        assert there in knob
        assert there != here or not knob.cells  # a continuous knob at its end may be held there

    @given(seed=seeds)
    def test_crosses_to_a_possible_value(self, knob, seed):  # type: ignore[no-untyped-def]
        rng = np.random.default_rng(seed)
        one, other = knob.sample(rng), knob.sample(rng)
        assert crossed(knob, one, other, rng) in knob
        assert knob.distance(crossed(knob, one, one, rng), one) == pytest.approx(0.0, abs=1e-9)

    def test_reaches_every_value_by_small_moves(self, knob):  # type: ignore[no-untyped-def]
        if not knob.cells or (knob.cardinality or 0) > 800:
            return
        rng = np.random.default_rng(0)
        seen, here = {knob.default}, knob.default
        for _ in range(40_000):
            here = moved(knob, here, rng)
            seen.add(here)
            if len(seen) == knob.cardinality:
                return
        pytest.fail(f"only {len(seen)} of {knob.cardinality} values were reached")


@pytest.mark.parametrize("knob", ONE_VALUE, ids=lambda knob: knob.name)
def test_stays_where_there_is_nowhere_to_go(knob):  # type: ignore[no-untyped-def]
    assert moved(knob, knob.default, np.random.default_rng(0)) == knob.default


@given(seed=seeds)
def test_crossed_assignments_take_each_item_from_a_parent(seed: int) -> None:
    rng = np.random.default_rng(seed)
    knob = Assignment("place", tuple("abcdefgh"), (0, 1, 2))
    one, other = knob.sample(rng), knob.sample(rng)
    child = crossed(knob, one, other, rng)
    assert all(child[item] in (one[item], other[item]) for item in knob.items)  # type: ignore[index,call-overload]


@given(seed=seeds)
def test_crossed_orders_keep_the_order_that_both_parents_share(seed: int) -> None:
    """What stands first in both parents stands first in the child, whatever is kept."""
    rng = np.random.default_rng(seed)
    knob = Permutation("order", tuple("abcdef"))
    one = ("a", *rng.permutation(list("bcdef")).tolist())
    other = ("a", *rng.permutation(list("bcdef")).tolist())
    assert crossed(knob, one, other, rng)[0] == "a"  # type: ignore[index]


def test_repairs_most_of_what_breaks_a_limit() -> None:
    rng = np.random.default_rng(0)
    items = tuple("abcdefgh")
    load = " + ".join(f"{n + 1} * (place['{item}'] == 'gpu')" for n, item in enumerate(items))
    space = Space([Assignment("place", items, ("cpu", "gpu"))], constraints=[f"{load} <= 12"])
    wishes = [{"place": space.knob("place").sample(rng)} for _ in range(100)]
    broken = [wish for wish in wishes if wish not in space]
    mended = [repaired(space, wish, rng) for wish in broken]
    assert len(broken) > 50
    assert all(one is None or one in space for one in mended)
    assert sum(one is not None for one in mended) > 0.9 * len(broken)


def test_leaves_alone_what_needs_no_repair() -> None:
    space = Space([OrderedValues("a", (1, 2, 3))], constraints=["a < 3"])
    assert repaired(space, {"a": 2}, np.random.default_rng(0)) == {"a": 2}


def test_gives_up_where_nothing_is_feasible() -> None:
    space = Space([OrderedValues("a", (1, 2, 3))], constraints=["a > 5"])
    assert repaired(space, {"a": 2}, np.random.default_rng(0)) is None


def test_steps_over_values_that_are_not_feasible() -> None:
    space = Space([OrderedValues("a", (1, 2, 3, 4, 6, 12))], constraints=["12 % a == 0", "a != 2"])
    rng = np.random.default_rng(0)
    knob = space.knob("a")
    steps = {stepped(space, space.configuration({"a": 3}), knob, rng) for _ in range(50)}
    assert steps == {space.configuration({"a": 1}), space.configuration({"a": 4})}


def test_a_branch_that_opens_has_all_of_its_knobs() -> None:
    space = Space(
        [
            Choice("solver", ("direct", "iterative")),
            IntegerRange("sweeps", 1, 9, when="solver == 'iterative'"),
            Flag("damped", when="solver == 'iterative' and sweeps > 4"),
        ]
    )
    rng = np.random.default_rng(0)
    found = {stepped(space, space.configuration({}), space.knob("solver"), rng) for _ in range(60)}
    assert all(child is not None and child in space for child in found)
    assert len(found) > 3  # at the default, and elsewhere in the branch
