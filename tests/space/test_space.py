"""Spaces: built, sampled, measured and told apart."""

import json
import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from autotune.errors import InputError
from autotune.space import (
    Choice,
    Flag,
    FloatRange,
    OrderedValues,
    Rule,
    Space,
)
from tests.space.spaces import CONDITIONAL, DISCRETE, MIXED, SEEDS, listed

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
        ([Flag("a"), "b"], [], "'b' is not a knob"),
        (Flag("a"), [], "the knobs must be a list"),
        ([Flag("a", when="a")], [], "whether 'a' exists depends on itself"),
        ([Flag("a", when="b"), Flag("b", when="c"), Flag("c", when="a")], [], "a -> b -> c -> a"),
        ([Flag("x"), Flag("d", when="b"), Flag("b", when="c"), Flag("c", when="b")], [], "b -> c -> b"),
        ([Flag("a", when="bb")], [], "when of 'a': there is no knob or workload fact 'bb'"),
        ([Flag("a", when="1 > 2")], [], "when of 'a': this rule is always false"),
        ([Flag("a")], ["a == 2 and", "b"], "found the end of the rule"),
        ([Flag("a")], "not a", r"constraints must be a list of rules\n  expected: \['not a'\]"),
        ([Flag("a")], [True], "True is not a constraint"),
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
    with pytest.raises(InputError, match=r"no configuration satisfies 'x \* x < -1'"):
        hopeless.sample(np.random.default_rng(0))


# -- geometry


@given(SEEDS)
def test_distances(seed):
    one, other = MIXED.sample(np.random.default_rng(seed), 2)
    assert MIXED.distance(one, one) == 0
    assert 0 <= MIXED.distance(one, other) <= 1
    assert MIXED.distance(one, other) == MIXED.distance(other, one)
    to_one = MIXED.distances_to(one)
    assert [to_one(each) for each in (other, one, other)] == [
        MIXED.distance(one, x) for x in (other, one, other)
    ]


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
