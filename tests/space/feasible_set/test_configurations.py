"""Which configurations there are: completed, refused, and those that were recorded."""

import json

import numpy as np
import pytest
from hypothesis import given

from autotune.errors import InputError
from autotune.space import (
    Flag,
    FloatRange,
    IntegerRange,
    OrderedValues,
    Space,
)
from tests.space.spaces import CONDITIONAL, DISCRETE, MIXED, SEEDS


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


def test_a_violated_default_shows_its_knobs_in_the_order_of_the_space():
    knobs = [IntegerRange(f"k{number}", 1, 2) for number in range(12)]
    rule = " + ".join(f"k{number}" for number in range(12)) + " > 20"
    with pytest.raises(InputError) as caught:
        Space(knobs, [rule]).default()
    assert [p.hint for p in caught.value.problems] == [
        "with " + ", ".join(f"k{number} = 1" for number in range(12))
    ]


def test_a_violated_default_shows_the_knobs_that_exist():
    knobs = [IntegerRange("a", 4, 8), IntegerRange("b", 1, 8, when="a > 5")]
    with pytest.raises(InputError) as caught:
        Space(knobs, ["a < 4 and b > 3"]).default()
    assert [p.hint for p in caught.value.problems] == ["with a = 4"]


def test_knobs_by_name():
    assert MIXED.knob("tile").default == 2
    with pytest.raises(InputError, match="did you mean 'tile'"):
        MIXED.knob("tle")


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
