"""Rules: bound to knobs and facts, checked, folded, and true or false."""

import math
import pickle
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import InputError, Location
from autotune.space import (
    Assignment,
    Choice,
    Flag,
    FloatRange,
    FrozenMap,
    IntegerRange,
    OrderedValues,
    Permutation,
    Space,
)
from autotune.space.language.binding import bind_rule
from autotune.space.language.syntax import Binary, Comparison, Item, ListOf, Literal, Name

KNOBS = (
    OrderedValues("tile", (1, 2, 4, 8)),
    OrderedValues("level", ("O1", "O2", "O3")),
    IntegerRange("depth", 0, 16),
    FloatRange("lr", 0, 1),
    Choice("layout", ("row", "column")),
    Choice("threads", (1, 2, "auto")),
    Choice("block", ((16, 16), (32, 8))),
    Flag("fused"),
    Permutation("order", ("i", "j", "k")),
    Assignment("place", ("embed", "head"), ("cuda:0", "cpu")),
)
WORKLOAD = FrozenMap({"m": 960, "zero": 0, "dtype": "float32", "tile": 5, "sizes": [1, 4], "shape": {"h": 7}})
DEVICE = {"l1_bytes": 32768, "name": "cpu"}
VALUES = {
    "tile": 4,
    "level": "O2",
    "depth": 3,
    "lr": 0.5,
    "layout": "row",
    "threads": "auto",
    "block": (16, 16),
    "fused": True,
    "order": ("j", "i", "k"),
    "place": FrozenMap({"embed": "cuda:0", "head": "cpu"}),
}


def bind(text, where=None):
    return bind_rule(text, knobs=KNOBS, workload=WORKLOAD, device=DEVICE, where=where)


HOLDS = [
    ("tile * 2 <= 8", True),
    ("tile * 2 < 8", False),
    ("1 < tile <= 4 < 5", True),
    ("tile in [1, 4, depth]", True),
    ("depth + 1 in (tile, 7)", True),
    ("tile not in (1, 2)", True),
    ("tile in sizes", True),
    ("m % tile == 0", True),
    ("workload.tile == tile + 1", True),
    ("workload.shape.h == 7 and tile == 4", True),
    ("workload.sizes[1] == tile and workload.sizes[-2] == 1", True),
    ("workload.shape['h'] > tile", True),
    ("tile * 4 * 2048 <= device.l1_bytes", True),
    ("layout == 'row'", True),
    ("layout != 'row'", False),
    ("'row' == layout", True),
    ("layout in ['row']", True),
    ("level == 'O2' or level == 'O3'", True),
    ("threads == 'auto'", True),
    ("threads in [1, 'auto']", True),
    ("block == (16, 16)", True),
    ("block in [(16, 16)]", True),
    ("fused", True),
    ("not fused", False),
    ("fused == true", True),
    ("fused + 1 == 2", True),
    ("depth and fused", True),
    ("depth", True),
    ("not (depth - 3)", True),
    ("(depth or tile) == true", True),
    ("order[0] == 'j'", True),
    ("order[-1] == 'k'", True),
    ("order[0] == order[1]", False),
    ("order == ['j', 'i', 'k']", True),
    ("order != ('j', 'i', 'k')", False),
    ("['i', 'j', 'k'] == order", False),
    ("len(order) == depth", True),
    ("len(place) + len([1, 2]) == tile", True),
    ("place['embed'] == 'cuda:0'", True),
    ("place['embed'] != place['head']", True),
    ("count(place, 'cuda:0') == 1", True),
    ("count(place, place['head']) == 1", True),
    ("count(place, device.name) < 2", True),
    ("min(tile, depth, 9) == 3", True),
    ("max([tile, depth]) == 4", True),
    ("min(sizes) <= tile", True),
    ("max([tile]) == 4", True),
    ("abs(depth - tile) == 1", True),
    ("ceildiv(depth, 2) == 2", True),
    ("log2(tile) == 2", True),
    ("tile / 8 == 0.5", True),
    ("2 ** tile == 16", True),
    ("-tile < +depth", True),
    ("true", True),
    ("lr <= 0.5 and (layout == 'column' or not fused or tile > 2)", True),
    # What cannot be computed is not satisfied ...
    ("depth % (tile - 4) == 0", False),
    ("depth // (tile - 4) != 0", False),
    ("log2(tile - 4) < 1", False),
    ("not log2(tile - 5) < 1", False),
    ("(depth - 4) ** lr < 9", False),
    ("tile < 1 / workload.zero", False),
    ("tile ** 999999 > 0", False),
    ("1e308 * 10 ** depth >= 0", True),
    ("(tile + 0.5) ** 99999 > 0", False),
    # ... unless it is not needed.
    ("workload.zero == 0 or m % workload.zero == tile", True),
    ("tile == 4 or depth % (tile - 4) == 0", True),
    ("tile == 5 and depth % (tile - 4) == 0", False),
    ("not 2 < 1 < 1 / workload.zero", True),
]


@pytest.mark.parametrize(("text", "holds"), HOLDS)
def test_a_rule_holds_or_not(text, holds):
    assert bind(text).holds(VALUES) is holds


OF_KNOBS_ALONE = ("workload.tile", "threads in", "count(", "1e308", "not 2 < 1")
"""A fact of that name has another value or type, is no assignment, or is not computed beforehand."""


@pytest.mark.parametrize(
    ("text", "holds"), [row for row in HOLDS if row[0] != "depth" and not row[0].startswith(OF_KNOBS_ALONE)]
)
def test_what_is_computed_beforehand_of_facts_is_the_same(text, holds):
    """What holds of knobs with such values holds of facts; what then never holds is refused."""
    facts = FrozenMap({**WORKLOAD, **VALUES})
    if holds:
        rule = bind_rule(text, knobs=(), workload=facts, device=DEVICE, where=None)
        assert isinstance(rule.tree, Literal) and rule.tree.value is True
    else:
        with pytest.raises(InputError, match=r"this rule is always false|too large"):
            bind_rule(text, knobs=(), workload=facts, device=DEVICE, where=None)


ERRORS = [
    ("tyle < 3", 1, "there is no knob or workload fact 'tyle'", "did you mean 'tile'?"),
    ("l1_bytes < tile", 1, "no knob or workload fact 'l1_bytes'", "did you mean 'device.l1_bytes'?"),
    ("device.l1 < tile", 1, "the device has no fact 'l1'", "expected: one of l1_bytes, name"),
    ("workload.n < tile", 1, "the workload has no fact 'n'", "one of m, zero"),
    ("workload.shape.w < tile", 1, "has no fact 'shape.w'", ""),
    ("workload < tile", 1, "'workload' is no value by itself", "workload.NAME"),
    ("tile.m < 3", 1, "the knob 'tile' has no parts", ""),
    ("layout == row", 11, "there is no knob 'row'", "to mean the text, write 'row' in quotes"),
    ("layout == 'rwo'", 11, "'layout' is never 'rwo'", "one of 'row', 'column'\n  did you mean 'row'?"),
    ("'rwo' != layout", 1, "'layout' is never 'rwo'", ""),
    ("layout in ['row', 'colum']", 19, "'layout' is never 'colum'", "did you mean 'column'?"),
    ("level == 'O22'", 10, "'level' is never 'O22'", "did you mean 'O2'?"),
    ("threads == 3", 12, "'threads' is never 3", "one of 1, 2, 'auto'"),
    ("order[0] == 'x'", 13, "'order[0]' is never 'x'", "one of 'i', 'j', 'k'"),
    ("order == ['i', 'j', 'x']", 10, "'order[2]' is never 'x'", ""),
    ("order == ['i', 'j']", 10, "'order' is never ['i', 'j']", "a list of its 3 items"),
    ("place['embed'] == 'cpu:0'", 19, "is never 'cpu:0'", "did you mean"),
    ("count(place, 'gpu') < 2", 14, "is never 'gpu'", ""),
    ("layout < 'row'", 1, "'layout' is a text; only numbers have an order", "== or !="),
    ("threads < 3", 1, "'threads' is a number or a text; only numbers have an order", ""),
    ("layout + 1 < 3", 1, "'+' needs numbers, but 'layout' is a text", ""),
    ("-layout < 3", 2, "'-' needs numbers", ""),
    ("min(layout, 3) < 3", 5, "min needs numbers", ""),
    ("layout == 3", 8, "'layout' is a text and 3 is a number: they are never equal", ""),
    ("tile in ['a']", 10, "'tile' is a number and is never 'a'", ""),
    ("layout and fused", 1, "'layout' is a text, which is neither true nor false", "a comparison"),
    ("layout", 1, "which is neither true nor false", ""),
    ("tile * 2", 0, "this is a number, not a condition", "a comparison such as"),
    ("5", 0, "this is a number, not a condition", ""),
    ("tile in layout", 9, "'layout' is a text", "a list that is written out, such as [1, 2, 4]"),
    ("'i' in order", 8, "'order' is a list", "a list that is written out, such as [1, 2, 4]"),
    ("'cpu' in place", 10, "'place' is a map", "write count(place, 'cpu') > 0"),
    ("place == 'cpu'", 1, "'place' cannot be compared as a whole", "single items"),
    ("order in [1]", 1, "'order' cannot be compared as a whole", ""),
    ("[tile, 1] == [1, 1]", 1, "cannot be compared as a whole", ""),
    ("(depth or 1) * tile < 9", 8, "'depth or 1' is true or false here", "write min or max"),
    ("2 == (tile and (depth or fused))", 12, "'tile and (depth or fused)' is true or false here", ""),
    ("tile > 1 and 3 in [1, not fused or m]", 33, "'(not fused) or m' is true or false here", ""),
    ("-(depth or 1) < 0", 9, "'depth or 1' is true or false here", ""),
    ("[tile, depth] in [[1, 1], [2, 4]]", 1, "'[tile, depth]' cannot be compared as a whole", "y == 2 or x"),
    ("block in [[16, 16], [tile, 8]]", 21, "'[tile, 8]' cannot be compared as a whole", "single items"),
    ("block in [[16, 16], order]", 21, "'order' cannot be compared as a whole", "single items"),
    ("tile[0] == 1", 1, "'tile' has no items", "a permutation or an assignment"),
    ("m[0] == 1", 1, "'m' is 960, which has no items", ""),
    ("workload.sizes[2] == tile", 1, "'workload.sizes' has no item 2", "one of 0, 1"),
    ("workload.shape['w'] == tile", 1, "has no item 'w'", "one of 'h'"),
    ("order[3] == 'i'", 1, "'order' has no position 3", "an integer from 0 to 2"),
    ("order['i'] == 0", 1, "'order' has no position 'i'", ""),
    ("place['embd'] == 'cpu'", 1, "'embd' is no item of 'place'", "did you mean 'embed'?"),
    ("place[0] == 'cpu'", 1, "0 is no item of 'place'", ""),
    ("len(tile) == 3", 5, "'tile' is a number, which has no length", "a list, or a knob with items"),
    ("len(layout) == 3", 5, "which has no length", ""),
    ("count(order, 'i') == 1", 7, "count needs an assignment first", "count(KNOB, OPTION)"),
    ("count(place) == 1", 1, "count takes 2 arguments, but 1 were given", ""),
    ("count(place, 3) == 1", 14, "3 is a number and is no option of 'place'", ""),
    ("log2() < 1", 1, "log2 takes 1 argument, but 0 were given", ""),
    ("min() < tile", 1, "min takes at least one argument", ""),
    ("min(tile) < 3", 1, "min takes two numbers or more, or a list of them", ""),
    ("1 == 2", 0, "this rule is always false", "a condition that some configuration meets"),
    ("m % 7 == 0", 0, "always false", "here workload.m is 960"),
    ("tile > 2 and m == 959", 0, "always false", "here workload.m is 960"),
    ("1 / workload.zero < 2", 0, "always false: it cannot be computed", "here workload.zero is 0"),
    ("false", 1, "always false", ""),
    ("tile < 9 ** 9 ** 9", 10, "the power is too large", "write a smaller number"),
    ("tile < 2 ** 1000 * 2 ** 1000", 18, "the number is too large", ""),
    ("tile < 1e200 * 1e200", 14, "the number is too large", ""),
]


@pytest.mark.parametrize(("text", "column", "message", "advice"), ERRORS)
def test_what_is_wrong_is_said_at_its_place(text, column, message, advice):
    with pytest.raises(InputError) as caught:
        bind(text, Location("space.yaml", 8, 6))
    problem = caught.value.problems[0]
    assert message in problem.message
    assert advice in str(problem)
    if column:
        assert problem.where == Location("space.yaml", 8, 6 + column - 1)
    else:
        assert problem.where is not None and problem.where.line == 8


def test_where_no_facts_were_given_it_is_said_how_they_are():
    with pytest.raises(InputError, match=r"no facts of a device; in Python they are given as device=\{"):
        bind_rule("tile < device.l1_bytes", knobs=KNOBS, workload=WORKLOAD, device={})


def test_every_problem_of_a_rule_is_found():
    with pytest.raises(InputError) as caught:
        bind("tyle < 3 and layout == 'rwo' or min(device.l3, dept) > m")
    found = [problem.message for problem in caught.value.problems]
    assert found == [
        "there is no knob or workload fact 'tyle'",
        "'layout' is never 'rwo'",
        "the device has no fact 'l3'",
        "there is no knob or workload fact 'dept'",
    ]


def test_facts_and_constants_are_folded():
    rule = bind("tile * (4 + 4) <= device.l1_bytes // 2 and workload.dtype == 'float32'")
    assert rule.canonical == "((tile * 8) <= 16384)"
    assert rule.facts == {"device.l1_bytes": 32768, "workload.dtype": "float32"}
    assert rule.knobs == {"tile"}
    assert rule.text.startswith("tile * (4 + 4)") and str(rule) == rule.text
    assert bind("tile <= 4 or workload.dtype == 'float32'").knobs == {"tile"}
    assert bind("workload.dtype == 'float32' or tile <= 4").tree == Literal(True)
    assert bind("not (workload.dtype == 'bf16') and tile > 1").canonical == "(tile > 1)"


def test_a_knob_shadows_a_fact():
    assert bind("tile == 4").facts == {}
    assert bind("workload.tile == 5").tree == Literal(True)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("depth and not tile or fused", "(((depth != 0) and (not (tile != 0))) or fused)"),
        ("not (depth and len(order))", "(not (depth != 0))"),
        (
            "order == ['i', 'j', 'k'] or m < depth",
            "(((order[0] == 'i') and (order[1] == 'j') and (order[2] == 'k')) or (960 < depth))",
        ),
        ("max([tile]) < min(sizes) + depth", "(tile < (1 + depth))"),
        ("tile in sizes", "(tile in [1, 4])"),
    ],
)
def test_bound_trees_are_plain(text, bound):
    """What readers of bound trees rely on: no len, no facts, truth values under and, or, not."""
    assert bind(text).canonical == bound


def test_what_needs_a_knob_that_does_not_exist():
    constraint = bind("lr < 0.1")
    condition = constraint.as_condition()
    without = {name: value for name, value in VALUES.items() if name != "lr"}
    assert not constraint.holds(VALUES) and not condition.holds(VALUES)
    assert constraint.holds(without)
    assert not condition.holds(without)
    # Short-circuit decides what is needed.
    assert not bind("tile == 1 and lr < 0.1").holds(without)
    assert bind("tile == 4 and lr < 0.1").holds(without)
    assert bind("tile == 4 or lr < 0.1").as_condition().holds(without)
    assert not bind("tile == 1 or lr < 0.1").as_condition().holds(without)
    assert bind("place['embed'] == 'cpu'").holds({})


def test_binding_again_changes_nothing():
    for text in [
        "tile * 2 <= device.l1_bytes",
        "order == ['i', 'j', 'k']",
        "workload.dtype == layout or depth",
    ]:
        if "dtype" in text:  # a fact may be anything, also a layout that is not to be chosen
            assert not bind(text).holds({**VALUES, "depth": 0})
        once = bind(text)
        again = bind_rule(once, knobs=KNOBS)
        assert again.canonical == once.canonical and again.facts == once.facts
        assert pickle.loads(pickle.dumps(once)) == once
        assert pickle.loads(pickle.dumps(once)).holds(VALUES) == once.holds(VALUES)


def test_a_choice_may_be_a_map_of_the_workload():
    space = Space([Choice("mesh", ({"x": 1}, {"x": [1, 2]}))], ["mesh in [wide]"], {"wide": {"x": [1, 2]}})
    assert list(space.feasible) == [{"mesh": FrozenMap({"x": [1, 2]})}]
    assert not space.constraints[0].holds({"mesh": FrozenMap({"x": 1})})


def test_a_rule_may_be_given_as_a_tree():
    tree = Comparison(("<=",), (Binary("*", Name("tile"), Literal(2)), Literal(8)))
    rule = bind_rule(tree, knobs=KNOBS)
    assert rule.text == "((tile * 2) <= 8)" and rule.holds(VALUES)
    assert bind("tile in [1, depth]").tree == Comparison(
        ("in",), (Name("tile", 1), ListOf((Literal(1, 10), Name("depth", 13)), 9)), 6
    )
    assert bind("order[-1] == 'i'").tree == Comparison(("==",), (Item("order", 2, 1), Literal("i", 14)), 11)


NUMBERS = st.sampled_from(["tile", "depth", "lr", "fused", "m", "workload.zero", "2", "3", "0.5"])


def _numeric(inner):
    return st.one_of(
        st.tuples(inner, st.sampled_from([" + ", " - ", " * ", " / ", " // ", " % "]), inner).map("".join),
        inner.map("(-{})".format),
        inner.map("abs({})".format),
        st.tuples(inner, inner).map(lambda pair: f"min({pair[0]}, {pair[1]})"),
        inner.map("({})".format),
        inner.map("log2({})".format),
    )


ARITHMETIC = st.recursive(NUMBERS, _numeric, max_leaves=5)
COMPARISONS = st.tuples(ARITHMETIC, st.sampled_from([" < ", " <= ", " == ", " != ", " > "]), ARITHMETIC).map(
    "".join
) | st.sampled_from(["layout == 'row'", "order[0] == 'i'", "depth in [1, m, tile]", "tile"])
CONDITIONS = st.recursive(
    COMPARISONS,
    lambda inner: (
        st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map("".join)
        | inner.map("(not ({}))".format)
        | inner.map("({})".format)
    ),
    max_leaves=5,
)


@given(CONDITIONS, st.integers(0, 2**32))
def test_binding_keeps_the_meaning(text, seed):
    """Against Python's own evaluation of the text, with the facts as variables."""
    rng = np.random.default_rng(seed)
    values = {knob.name: knob.sample(rng) for knob in KNOBS}
    names = {
        **values,
        "m": 960,
        "workload": types.SimpleNamespace(zero=0),
        "abs": abs,
        "min": min,
        "log2": math.log2,
    }
    try:
        expected = bool(eval(text, {"__builtins__": {}}, names))
    except (ArithmeticError, ValueError):
        expected = False
    try:
        rule = bind(text)
    except InputError as error:
        assert "always false" in str(error)
        assert not expected
    else:
        assert rule.holds(values) is expected


def test_a_rule_is_one_piece_of_code():
    """It runs in a microsecond or less: no call into this package, no name looked up but the values."""
    rule = bind("tile * 2 <= 8 and depth % tile == 0 and layout == 'row' and order[0] == 'j'")
    rule.holds(VALUES)
    code = rule._compiled.__code__
    assert code.co_names == () and code.co_varnames == ("values",)
    assert rule._compiled is rule._compiled  # compiled once


def test_only_values_reach_the_compiled_code():
    """Nothing that Python offers is in reach of a rule's text."""
    for text in [
        "__import__('os')",
        "values",
        "tile.__class__",
        "open('x')",
        "().__class__",
        "power(2, 3) < tile",
    ]:
        with pytest.raises(InputError):
            bind(text)
    assert bind("level == 'O1'")._compiled.__globals__["__builtins__"] == {}
