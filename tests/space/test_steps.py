"""From a configuration to its neighbours."""

import numpy as np
import pytest
from hypothesis import given, settings

from autotune.space import (
    Assignment,
    Flag,
    IntegerRange,
    OrderedValues,
    Permutation,
    Space,
)
from autotune.space.steps import drawn_of, some_neighbours
from tests.space.spaces import CONDITIONAL, DISCRETE, MIXED, SEEDS, listed


@pytest.mark.parametrize("space", [DISCRETE, CONDITIONAL, MIXED])
@given(seed=SEEDS)
@settings(max_examples=40)
def test_neighbours_are_feasible_and_differ_in_one_knob(space, seed):
    (here,) = space.sample(np.random.default_rng(seed))
    near = space.neighbours(here)
    assert len(set(near)) == len(near) and here not in near
    for other in near:
        assert other in space
        both = [name for name in here if name in other]
        changed = [name for name in both if here[name] != other[name]]
        assert len(changed) == 1
        if set(here) != set(other):
            gone = set(here) ^ set(other)
            conditions = set.union(*(set(space.knob(name).when.knobs) for name in gone))
            assert conditions & {changed[0], *gone}


def test_neighbours_are_mutual_and_reach_everything():
    every = listed(DISCRETE)
    near = {one: set(DISCRETE.neighbours(one)) for one in every}
    assert all(one in near[other] for one in every for other in near[one])
    reached, edge = {every[0]}, [every[0]]
    while edge:
        edge = [n for one in edge for n in near[one] if n not in reached and not reached.add(n)]
    assert reached == set(every)


def test_an_ordered_knob_steps_over_what_is_not_feasible():
    space = Space([IntegerRange("n", 1, 40), Flag("f")], ["n % 12 == 4 or n == 1"])
    assert {one["n"] for one in space.neighbours({"n": 4, "f": True})} == {1, 16, 4}


def test_knobs_appear_with_their_default_or_near_it():
    assert CONDITIONAL.neighbours({"kind": "plain"}) == [{"kind": "tiled", "tile": 1}]
    # With its default, true, unroll would need a tile of 4.
    assert {"kind": "tiled", "tile": 2, "unroll": False} in CONDITIONAL.neighbours(
        {"kind": "tiled", "tile": 1}
    )
    four = {"kind": "tiled", "tile": 4, "unroll": True}
    assert {"kind": "plain"} in CONDITIONAL.neighbours(four)


def test_an_assignment_of_one_item_appears_with_another_option_where_its_default_is_not_feasible():
    place = Assignment("place", ("head",), ("cpu", "gpu"), when="n == 1")
    space = Space([OrderedValues("n", (0, 1)), place], ["place['head'] != 'cpu'"])
    assert space.neighbours({"n": 0}) == [{"n": 1, "place": {"head": "gpu"}}]


def test_of_many_neighbours_some_are_drawn():
    order = Permutation("order", tuple(range(200)))
    place = Assignment("place", ("x", "y"), ("gpu", "cpu"))
    space = Space([order, place, Flag("f")], ["order[0] != 7"])
    drawn = drawn_of(space)
    assert drawn.keys() == {"order"}, "there are few ways to place two items"
    here = space.default()
    near = some_neighbours(space, here, np.random.default_rng(0))
    others = [one for one in near if one["order"] == here["order"]]
    assert len(others) == 3
    assert 0.9 * drawn["order"] < len(near) - len(others) <= drawn["order"]
    assert all(one in space and one != here for one in near)


def test_what_has_few_neighbours_has_them_all():
    space = Space([Permutation("order", tuple(range(30))), Flag("f")])
    here = space.default()
    assert some_neighbours(space, here, np.random.default_rng(0)) == space.neighbours(here)
