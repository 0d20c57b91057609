"""Spaces: built, checked, sampled, walked, encoded and told apart."""

import json
import pickle
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    Rule,
    Space,
)
from autotune.space.steps import drawn_of, some_neighbours

MIXED = Space(
    [
        FloatRange("momentum", 0, 0.99, when="optimizer == 'sgd' and decay"),
        OrderedValues("tile", (1, 2, 4, 8), default=2),
        IntegerRange("depth", 1, 8, scale="log2", when="tile > 1"),
        Choice("optimizer", ("sgd", "adam", "lion")),
        Flag("decay", when="depth >= 2"),
        Permutation("order", ("i", "j", "k")),
        Assignment("place", ("embed", "head"), ("cpu", "gpu")),
        FloatRange("lr", 1e-5, 1, scale="log", default=1e-3),
    ],
    constraints=["tile * depth <= 16", "lr * tile < 2", "place['embed'] != 'gpu' or order[0] != 'k'"],
)
DISCRETE = Space(
    [
        OrderedValues("a", (1, 2, 3, 4, 6)),
        IntegerRange("b", 1, 6),
        Choice("c", ("x", "y", "z")),
        Flag("d"),
    ],
    constraints=["a * b % 2 == 0", "c != 'y' or a > 2", "not d or b <= 4"],
)
CONDITIONAL = Space(
    [
        Choice("kind", ("plain", "tiled")),
        OrderedValues("tile", (1, 2, 4), when="kind == 'tiled'"),
        Flag("unroll", when="tile > 1"),
    ],
    constraints=["not unroll or tile == 4"],
)
SEEDS = st.integers(0, 2**32)


def listed(space):
    """Every feasible configuration, by brute force."""
    names = [knob.name for knob in space.knobs]
    indices = [product(*(range(len(cell.values)) for cell in knob.cells)) for knob in space.knobs]
    values = [[knob.join(i) for i in every] for knob, every in zip(space.knobs, indices, strict=True)]
    found = {}
    for chosen in product(*values):
        complete = dict(zip(names, chosen, strict=True))
        kept = {name: complete[name] for name in space.active(complete)}
        if not space.violated(kept):
            found[Configuration(kept)] = None
    return list(found)


# -- building


def test_the_example_of_the_documentation():
    space = Space(
        [OrderedValues("tile", (1, 2, 4)), FloatRange("lr", 1e-5, 1, scale="log", when="tile > 1")],
        constraints=["tile * 2 <= 8"],
    )
    assert space.default() == {"tile": 1}
    assert space.configuration({"tile": 2}) == {"tile": 2, "lr": 1e-5}
    assert space.continuous == ("lr",)
    assert repr(space) == "Space(2 knobs, 1 constraints)"


def test_a_knob_comes_after_what_its_condition_mentions():
    names = [knob.name for knob in MIXED.knobs]
    assert names == ["tile", "depth", "optimizer", "decay", "momentum", "order", "place", "lr"]
    untouched = Space([Flag("b"), Flag("a", when="b"), Flag("c")])
    assert [knob.name for knob in untouched.knobs] == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("knobs", "constraints", "message"),
    [
        ([], [], "a space needs at least one knob"),
        ([Flag("a"), Flag("a")], [], "two knobs are called 'a'"),
        ([Flag("a"), "b"], [], "'b' is no knob"),
        ([Flag("a", when="a")], [], "whether 'a' exists depends on itself"),
        ([Flag("a", when="b"), Flag("b", when="c"), Flag("c", when="a")], [], "a -> b -> c -> a"),
        ([Flag("x"), Flag("d", when="b"), Flag("b", when="c"), Flag("c", when="b")], [], "b -> c -> b"),
        ([Flag("a", when="bb")], [], "when of 'a': there is no knob or workload fact 'bb'"),
        ([Flag("a", when="1 > 2")], [], "when of 'a': this rule is always false"),
        ([Flag("a")], ["a == 2 and", "b"], "found the end of the rule"),
        ([Flag("a")], "not a", r"constraints must be a list of rules\n  expected: \['not a'\]"),
        ([Flag("a")], [True], "True is no constraint"),
    ],
)
def test_what_makes_no_space(knobs, constraints, message):
    with pytest.raises(InputError, match=message):
        Space(knobs, constraints)


def test_every_wrong_rule_is_reported():
    with pytest.raises(InputError) as caught:
        Space([Flag("a", when="x"), Flag("b", when="y")])
    assert len(caught.value.problems) == 2
    with pytest.raises(InputError) as caught:
        Space([Flag("a")], ["x", "a", "y +"])
    assert len(caught.value.problems) == 2


# -- configurations


def test_a_configuration_is_completed_and_ordered():
    found = MIXED.configuration({"optimizer": "adam", "tile": 4.0})
    assert list(found) == ["tile", "depth", "optimizer", "order", "place", "lr"]
    assert type(found["tile"]) is int and found["depth"] == 1 and found["lr"] == 1e-3
    assert list(MIXED.configuration({"tile": 1})) == ["tile", "optimizer", "order", "place", "lr"]
    nested = MIXED.configuration({"depth": 2})
    assert nested["decay"] is True and nested["momentum"] == 0.0


def test_what_is_no_configuration():
    with pytest.raises(InputError) as caught:
        MIXED.configuration({"tyle": 1, "tile": 3, "optimizer": "adm", "lr": 7})
    told = str(caught.value)
    assert "there is no knob 'tyle'" in told and "did you mean 'tile'?" in told
    assert "tile cannot be 3\n  expected: one of 1, 2, 4, 8" in told
    assert "optimizer cannot be 'adm'" in told and "did you mean 'adam'?" in told
    assert "lr cannot be 7\n  expected: a number from 1e-05 to 1.0" in told
    with pytest.raises(InputError, match="'depth' has a value, but does not exist") as caught:
        MIXED.configuration({"tile": 1, "depth": 2})
    assert "it exists only when tile > 1" in str(caught.value)


@given(SEEDS)
def test_configuration_is_idempotent(seed):
    (one,) = MIXED.sample(np.random.default_rng(seed))
    again = MIXED.configuration(one)
    assert again == one and list(again) == list(one)
    assert MIXED.configuration(json.loads(json.dumps(dict(one), default=dict))) == one
    assert one in MIXED and MIXED.violated(one) == ()
    assert MIXED.active(one) == tuple(one)


def test_membership_is_strict():
    default = MIXED.default()
    assert default in MIXED and dict(default) in MIXED
    assert {**default, "extra": 1} not in MIXED
    assert {name: default[name] for name in list(default)[1:]} not in MIXED
    assert {**default, "tile": 3} not in MIXED
    assert MIXED.configuration({"tile": 8, "depth": 8}) not in MIXED
    assert 3 not in MIXED and "tile" not in MIXED


def test_a_default_that_violates_constraints():
    space = Space([OrderedValues("a", (4, 2)), Flag("b")], ["a < 3", "a < 9", "not (b and a == 4)"])
    with pytest.raises(InputError) as caught:
        space.default()
    assert [p.message for p in caught.value.problems] == [
        "the default configuration violates the constraint 'a < 3'",
        "the default configuration violates the constraint 'not (b and a == 4)'",
    ]
    assert caught.value.problems[1].hint == "with a = 4, b = True"
    assert space.sample(np.random.default_rng(0))[0]["a"] == 2
    assert space.neighbours(space.configuration({})) == [{"a": 2, "b": True}]


def test_a_violated_default_shows_the_knobs_that_exist():
    knobs = [IntegerRange("a", 4, 8), IntegerRange("b", 1, 8, when="a > 5")]
    with pytest.raises(InputError) as caught:
        Space(knobs, ["a < 4 and b > 3"]).default()
    assert [p.hint for p in caught.value.problems] == ["with a = 4"]


def test_knobs_by_name():
    assert MIXED.knob("tile").default == 2
    with pytest.raises(InputError, match="did you mean 'tile'"):
        MIXED.knob("tle")


# -- sampling


@pytest.mark.parametrize("space", [DISCRETE, CONDITIONAL])
def test_samples_are_uniform_over_the_feasible_set(space):
    """Chi-square; the limit is five standard deviations above its mean (fixed seed)."""
    every, n = listed(space), 8000
    assert space.feasible.size == len(every)
    counts = Counter(space.sample(np.random.default_rng(7), n))
    assert set(counts) <= set(every)
    expected = n / len(every)
    statistic = sum((counts[one] - expected) ** 2 / expected for one in every)
    freedom = len(every) - 1
    assert statistic < freedom + 5 * (2 * freedom) ** 0.5


def test_samples_of_continuous_knobs_are_uniform_under_constraints():
    """Over a triangle: each of its sixteen small triangles and squares gets its share."""
    space = Space([FloatRange("x", 0, 1), FloatRange("y", 0, 1), Choice("c", ("p", "q"))], ["x + y <= 1"])
    drawn = space.sample(np.random.default_rng(3), 8000)
    assert all(one in space for one in drawn)
    counts = Counter((one["c"], int(one["x"] * 4), int(one["y"] * 4)) for one in drawn)
    areas = {(c, i, j): 1.0 if i + j < 3 else 0.5 for c in "pq" for i in range(4) for j in range(4 - i)}
    expected = {cell: 8000 * area / 16 for cell, area in areas.items()}
    assert set(counts) == set(areas)
    assert sum((counts[cell] - e) ** 2 / e for cell, e in expected.items()) < 19 + 5 * 38**0.5


def test_samples_are_reproducible_and_of_the_number_asked():
    assert MIXED.sample(np.random.default_rng(5), 30) == MIXED.sample(np.random.default_rng(5), 30)
    assert len(MIXED.sample(np.random.default_rng(5), 30)) == 30
    assert len(MIXED.sample(np.random.default_rng(5))) == 1
    assert MIXED.sample(np.random.default_rng(5), 0) == []


@pytest.mark.parametrize("space", [DISCRETE, CONDITIONAL, MIXED])
def test_draws_are_samples_built_one_by_one(space):
    draws = space.draws(np.random.default_rng(5), 30)
    assert list(draws) == space.sample(np.random.default_rng(5), 30)


def test_a_knob_that_exists_only_for_some_value_of_a_continuous_one():
    space = Space([FloatRange("x", 0, 1), Flag("high", when="x > 0.5"), Flag("top", when="high and x > 0.9")])
    drawn = space.sample(np.random.default_rng(0), 2000)
    assert all(one in space and ("high" in one) == (one["x"] > 0.5) for one in drawn)
    assert {"top" in one for one in drawn} == {True, False}
    assert all("high" not in n for n in space.neighbours(space.default()))


def test_nothing_to_draw_is_said():
    hopeless = Space([FloatRange("x", 0, 1)], ["x * x < -1"])
    with pytest.raises(InputError, match=r"only 0 of 10,0\d\d random configurations satisfy 'x \* x < -1'"):
        hopeless.sample(np.random.default_rng(0))


# -- neighbours


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


# -- geometry


@given(SEEDS)
def test_distances(seed):
    one, other = MIXED.sample(np.random.default_rng(seed), 2)
    assert MIXED.distance(one, one) == 0
    assert 0 <= MIXED.distance(one, other) <= 1
    assert MIXED.distance(one, other) == MIXED.distance(other, one)


def test_a_knob_that_only_one_of_them_has_is_a_distance():
    assert MIXED.distance(MIXED.configuration({"tile": 1}), MIXED.configuration({"tile": 2})) > 1 / 8


# -- identity


def test_the_hash_forgets_order_and_spelling_only():
    knobs = [OrderedValues("a", (1, 2)), Flag("b", when="a == 2")]
    space = Space(knobs, ["a * 2 < 9", "a > 0"])
    assert space == Space(knobs[::-1], ["a  >  0", "(a*2) < (4 + 5)", "a > 0"])
    assert hash(space) == hash(Space(knobs, ["a > 0", "a * 2 < 9"]))
    others = [
        Space(knobs, ["a > 0"]),
        Space([OrderedValues("a", (1, 2, 4)), knobs[1]], ["a * 2 < 9", "a > 0"]),
        Space([OrderedValues("a", (2, 1)), knobs[1]], ["a * 2 < 9", "a > 0"]),
        Space([OrderedValues("a", (1, 2), default=2), knobs[1]], ["a * 2 < 9", "a > 0"]),
        Space([Choice("a", (1, 2)), knobs[1]], ["a * 2 < 9", "a > 0"]),
        Space([knobs[0], Flag("b")], ["a * 2 < 9", "a > 0"]),
        space.limited_to([{"a": 1}]),
    ]
    assert len({space, *others}) == 8
    assert space != "a space"


def test_facts_count_where_a_rule_mentions_them():
    knobs = [OrderedValues("a", (1, 2))]
    one = Space(knobs, ["a < m"], workload={"m": 9, "n": 1}, device={"cores": 2})
    assert one == Space(knobs, ["a < m"], workload={"m": 9, "n": 7}, device={"cores": 64})
    assert one != Space(knobs, ["a < m"], workload={"m": 8})
    assert one.to_document()["facts"] == {"workload.m": 9}


def test_facts_decide_what_exists():
    def space(simd):
        knobs = [OrderedValues("tile", (1, 2, 4)), Flag("wide", when="device.simd == 'avx512'")]
        return Space(knobs, ["m % tile == 0"], workload={"m": 6}, device={"simd": simd})

    assert space("avx512").knob("wide").when is None  # always there
    assert space("avx512").feasible.size == 4
    condition = space("sse").knob("wide").when  # never there, which is no mistake
    assert condition is not None and condition.never and dict(condition.facts) == {"device.simd": "sse"}
    assert space("sse").feasible.size == 2 and {"tile": 1, "wide": True} not in space("sse")
    assert space("sse").default() == {"tile": 1}


def test_the_document_is_plain_json():
    document = MIXED.to_document()
    assert json.loads(json.dumps(document)) == document
    assert document["knobs"]["depth"] == {"range": [1, 8], "scale": "log2", "default": 1, "when": "tile > 1"}
    assert document["knobs"]["place"] == {
        "assign": ["embed", "head"],
        "to": ["cpu", "gpu"],
        "default": {"embed": "cpu", "head": "cpu"},
    }
    assert document["constraints"][0] == "tile * depth <= 16"


def test_a_space_can_be_pickled_with_or_without_its_feasible_set():
    assert pickle.loads(pickle.dumps(DISCRETE)) == DISCRETE
    DISCRETE.feasible.size  # noqa: B018
    again = pickle.loads(pickle.dumps(DISCRETE))
    assert again.sample(np.random.default_rng(1)) == DISCRETE.sample(np.random.default_rng(1))


def test_bound_rules_can_be_given_again():
    again = Space(MIXED.knobs, MIXED.constraints)
    assert again == MIXED and again.constraints == MIXED.constraints
    loose = Space([Flag("a"), Flag("b", when=Rule.parse("a"))], [Rule.parse("a or not b")])
    assert loose.feasible.size == 3


# -- recorded spaces


def test_only_recorded_rows_exist():
    rows = [{"a": 1, "b": 2.0, "c": "x", "d": True}, {"d": False, "a": 2, "b": 1, "c": "z"}]
    space = DISCRETE.limited_to([*rows, rows[0]])
    assert len(space.rows) == 2 and repr(space).endswith("2 rows)")
    assert space.rows[0] == {"a": 1, "b": 2, "c": "x", "d": True}
    assert rows[0] in space and {**rows[0], "d": False} not in space
    assert space.feasible.size == 2
    assert set(space.sample(np.random.default_rng(0), 50)) == set(space.rows)
    assert space.neighbours(space.rows[0]) == []
    elsewhere = Space(DISCRETE.knobs).limited_to(rows)
    with pytest.raises(InputError, match="none of those that were recorded"):
        elsewhere.default()
    with_default = [*rows, {"a": 1, "b": 1, "c": "x", "d": True}]
    assert Space(DISCRETE.knobs).limited_to(with_default).default()["b"] == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "at least one row"),
        ([{"a": 1, "b": 2, "c": "x"}], "row 1: there is no value for d"),
        ([{"a": 5, "b": 2, "c": "x", "d": True}], "row 1: a cannot be 5"),
        ([{"a": 1, "b": 2, "c": "x", "d": True, "e": 1}], "row 1: there is no knob 'e'"),
        ([{"a": 1, "b": [2], "c": "x", "d": True}], "row 1: b cannot be"),
    ],
)
def test_rows_that_cannot_be(rows, message):
    with pytest.raises(InputError, match=message):
        DISCRETE.limited_to(rows)


def test_rows_and_continuous_knobs_do_not_go_together():
    with pytest.raises(InputError, match="no continuous knobs, but this one has x"):
        Space([FloatRange("x", 0, 1)], rows=[{"x": 0.5}])


def test_rows_with_conditions():
    space = CONDITIONAL.limited_to([{"kind": "plain"}, {"kind": "tiled", "tile": 1}])
    assert space.neighbours({"kind": "plain"}) == [{"kind": "tiled", "tile": 1}]
    with pytest.raises(InputError, match="row 1: 'tile' has a value, but does not exist"):
        CONDITIONAL.limited_to([{"kind": "plain", "tile": 1}])
