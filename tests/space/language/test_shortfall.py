"""By how much values miss a rule."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.space import Choice, Flag, FloatRange
from autotune.space.language.binding import bind_rule
from autotune.space.language.shortfall import MISSED, shortfall

KNOBS = (FloatRange("x", -4, 4), FloatRange("y", -4, 4), Flag("on"), Choice("kind", ("a", "b")))
VALUES = {"x": 1.0, "y": 2.0, "on": True, "kind": "a"}


def missed(text: str, **changed: object) -> float:
    return shortfall(bind_rule(text, knobs=KNOBS))({**VALUES, **changed})


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("x + y <= 3", 0.0),
        ("x + y <= 1", 2.0),
        ("x > y", 1.0),
        ("x == y", 1.0),
        ("4 <= x <= y < 1", 4.0),
        ("x >= 3 and y >= 3", 3.0),
        ("x >= 3 or y >= 3", 1.0),
        ("not (x < 3)", 2.0),
        ("not (x < 3 or y < 3)", 3.0),
        ("not (0 < x < 3)", 1.0),
        ("x != 1", MISSED),
        ("kind == 'b'", MISSED),
        ("kind in ['b']", MISSED),
        ("not on", MISSED),
        ("not on or x == 5", 1.0),
        ("x / (y - 2) >= 0", math.inf),
    ],
)
def test_is_in_the_units_of_what_is_compared(text: str, by: float) -> None:
    assert missed(text) == by


def test_is_nothing_where_a_knob_of_a_constraint_does_not_exist() -> None:
    rule = bind_rule("x <= -1", knobs=KNOBS)
    assert shortfall(rule)({"y": 1.0}) == 0.0
    assert shortfall(rule.as_condition())({"y": 1.0}) == math.inf


def test_an_infinite_difference_is_an_infinite_miss() -> None:
    assert missed("x * 1e308 * y >= y * 1e308 * 10 + 1", x=-4.0, y=4.0) == math.inf


NUMBERS = st.floats(-4, 4)
COMPARED = st.builds(
    "{} {} {}".format,
    st.sampled_from(["x", "x + y", "x * y", "x - 0.1"]),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    st.sampled_from(["y", "0", "x / y", "1"]),
)
RULES = st.recursive(
    COMPARED | st.sampled_from(["on", "kind == 'a'"]),
    lambda inner: (
        st.builds("({} and {})".format, inner, inner)
        | st.builds("({} or {})".format, inner, inner)
        | st.builds("not ({})".format, inner)
    ),
    max_leaves=5,
)


@given(RULES, NUMBERS, NUMBERS, st.booleans(), st.sampled_from(["a", "b"]))
def test_is_nothing_just_where_the_rule_holds(text: str, x: float, y: float, on: bool, kind: str) -> None:
    values = {"x": x, "y": y, "on": on, "kind": kind}
    assert (missed(text, **values) == 0.0) == bind_rule(text, knobs=KNOBS).holds(values)
