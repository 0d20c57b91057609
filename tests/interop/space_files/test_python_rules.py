"""A condition in Python and the rule made of it say the same of every configuration."""

from __future__ import annotations

import math
from itertools import product

import pytest

from autotune.errors import InputError, Location
from autotune.interop.space_files.python_rules import rule_text
from autotune.interop.space_files.space_text import knob_of
from autotune.space.configuration import Value
from autotune.space.knobs import Choice, Flag, OrderedValues
from autotune.space.language.binding import bind_rule
from autotune.space.language.parser import parse
from autotune.space.language.syntax import render
from autotune.space.space import Space

KNOBS: dict[str, tuple[Value, ...]] = {
    "a": (1, 2, 3, 8),
    "b": (0, 2, 5),
    "f": (True, False),
    "t": ("x", "y"),
    "r": (0.25, 0.5),
    "n": (-3, -1, 2),
    "d": (0.3, 1.0, 1.5),
    "s": ("a!b", "p||q", "u && v"),
}
KINDS = [
    OrderedValues("a", KNOBS["a"]),
    OrderedValues("b", KNOBS["b"]),
    Flag("f"),
    Choice("t", KNOBS["t"]),
    OrderedValues("r", KNOBS["r"]),
    OrderedValues("n", KNOBS["n"]),
    OrderedValues("d", KNOBS["d"]),
    Choice("s", KNOBS["s"]),
]
WHERE = Location("t1.json", 7, 10)


class Whole(dict):  # type: ignore[type-arg]
    """``p["a"]`` and ``p.a``, as conditions of other tools have them."""

    def __getattr__(self, name: str) -> object:
        return self[name]


@pytest.mark.parametrize(
    "text",
    [
        "a * b <= 8",
        "a % 2",
        "not a % 2",
        "a and b",
        "f",
        "not f and t == 'x'",
        "p['a'] > p['b'] or p['f']",
        "p.a > 2",
        "(a > 1) & (b > 1) | (f == False)",
        "a << 2 >= 8",
        "a >> 1 == b >> 1",
        "b == 2 if a > 2 else b > 2",
        "math.ceil(b / a) >= 2",
        "int(b / a) == 0",
        "int((b + 1) * a / abs(n)) == 1",
        "int((a + b - 1) / a) <= 2",
        "int((b - r + a) / a) <= 2",
        "n // 2 == -1",
        "s == 'a!b'",
        "s in ('p||q', 'u && v') and a > 1",
        "math.floor(b / a) == 2",
        "a in (1, 8)",
        "a not in [2, 3]",
        "a in range(1, 9, 7)",
        "1 < a <= 3",
        "min(a, b) > 1",
        "pow(a, 2) > 8",
        "(a > 2) == (b > 2)",
        "f is True",
        "True",
        "1",
        "int(a * 2) == 4",
        "int(p['a'] * p.b) > 4",
        "int(2 ** b + pow(a, 2)) > 9",
        "int(a > 2 and b > 2) == 1",
        "floor(max(a, b) - abs(int(b / a))) >= 2",
        "a == 99 or t != 'z'",
        "t == 'z' or b > 1",
        "t in ('x', 'z')",
        "t",
        "f & (a > 1)",
        "any([a > 2, b > 2])",
        "all([a > 2, b > 2]) or not all((f,)) or any([])",
        "all(x % 2 == 0 for x in [a, b])",
        "any([x > 2 for x in (a, p.b) if x != 5])",
        "all(a != x for x in range(2, 4) if f)",
        "any(v > 2 for v in sorted([a, b]))",
        "all((p['a'] | a) <= p['b'] + c for a in (1, 2) for c in (1, 3))",  # loops have names of their own
        "all((p.a | a) <= p.b + c for a in (1, 2) for c in (1, 3))",
        "p.a == 1 or any((1 if a > 1 else 0) > c for a in (1,) for c in (0, 1))",
        "sum([a > 1, b > 1, f]) >= 2",
        "len({a, b}) == 2",
        "(a if f else b) <= 2",
        "(1 if t == 'x' else 2) * (a if f else b) == 2",
        "a <= (2 if b > 2 else 3 if f else 8) < 9",
        "a & 3 == 0",
        "a & 3",
        "7 & n != 2",
        "(a & (a - 1)) == 0",
        "a & b == 2 or a ^ 1 == 3 and a | b > 8",
        "~n & 2 == 0",
        "b != 0 and (a // b) & 1 == 0",
        "a & 1 << 3",
        "a & 8 == 0",
        "n & 6 == 4",
        "a & 5 == 1",
        "math.gcd(a, 6) == 2 and a.bit_length() < 3",
        "round(b / 3) == 2",
        "int(n / 2) == -1",
        "int((a - b) / 2) == -1",
        "a in range(1000)",
        "int(math.log2(a)) == 1",
        "int(p['r'] * 2) == 1",
        "max([a, b]) > 2",
        "t.startswith('x')",
        "(a, b) in [(1, 2), (3, 5)]",
        "int(d / 0.1) == 10",
        "math.floor(d / r) == 4",
        "math.ceil(d / 0.3) == 5",
        "a is not True",
        "int(f) is True or math.floor(f) is not False and b > 1",
        "a <= 1e400",
        "b * 9223372036854775809 < 2 ** 65",
        "(t != ['z']) == (b in [a, b])",
    ],
)
def test_the_rule_holds_where_the_condition_does(text: str) -> None:
    rule = rule_text(text, KNOBS, WHERE).text
    bound = bind_rule(rule, knobs=KINDS)
    for values in product(*KNOBS.values()):
        row = dict(zip(KNOBS, values, strict=True))
        names = {"math": math, "floor": math.floor, "p": Whole(row)}
        assert bound.holds(row) == bool(eval(text, {**names, **row})), row


@pytest.mark.parametrize("text", ["f != 1024", "f == False or b > 1", "f in (1, 2)", "f in range(3)", "u"])
def test_a_choice_may_be_compared_with_what_it_never_is(text: str) -> None:
    """Rules refuse that, and the condition was kept as it is: there was no space."""
    knobs: dict[str, tuple[Value, ...]] = {"f": (True,), "b": (1, 2), "u": (1, "a")}
    space = Space([knob_of(name, values, values[0]) for name, values in knobs.items()], [])
    rule = rule_text(text, knobs, WHERE).text
    left = Space(space.knobs, [rule]).feasible
    for row in space.feasible:
        assert (row in left) == bool(eval(text, {**row})), row


def test_what_both_languages_share_stays_as_it_was() -> None:
    assert rule_text("(a * b) <= 1024", KNOBS, WHERE).text == "(a * b) <= 1024"


def test_signs_of_c() -> None:
    assert rule_text("a > 1 && !(b == 2 || b == 5)", KNOBS, WHERE).text == "a > 1 and not (b == 2 or b == 5)"
    assert rule_text("a >\n 1 &&\n f", KNOBS, WHERE).text == "a >  1 and f"
    assert rule_text("f == true && a > 1", KNOBS, WHERE).text == "f == true and a > 1"


@pytest.mark.parametrize(
    ("text", "says", "column"),
    [
        ("a + c > 1", "there is no parameter 'c'", 14),
        ("a ^ b > 1", "there is no ^", 10),
        ("a > 1 and foo(b)", "no function foo", 20),
        ("a in range(1000)", "1,000 items", 15),
        ("int(n / 2) == -1", "rounds towards 0", 10),
        ("int((a - b) / 2) == -1", "rounds towards 0", 10),
        ("int((a * b - 2) / 2) == 1", "rounds towards 0", 10),
        ("int(c * 2) == 4", "there is no parameter 'c'", 14),
        ("int(math.log2(a)) == 1", "no function int", 10),
        ("int(sqrt(a)) == 1", "no function int", 10),
        ("b > 1 or ceil(log2(a)) == 1", "no function ceil", 19),
        ("int(a * 2 ** -1) == 1", "no function int", 10),
        ("int(a * 2 ** (b - 2)) == 1", "no function int", 10),
        ("int(p['r'] * 2) == 1", "no function int", 10),
        ("a > 1 and len({a, b}) == 2", "a set has what is equal only once", 20),
        ("a @ 2", "there is no @", 10),
        ("'a > 1'", "a text is no condition", 10),
        ("a > > 1", "is no condition in Python", 14),
        ("f and t == 'z'", "is false for all values", 10),
    ],
)
def test_what_has_no_counterpart_is_said_with_its_place(text: str, says: str, column: int) -> None:
    """Where the knobs have too many values for those that satisfy it to be listed."""
    many: dict[str, tuple[Value, ...]] = {name: (*KNOBS[name], *range(100, 10_100)) for name in "abnr"}
    with pytest.raises(InputError) as raised:
        rule_text(text, {**KNOBS, **many}, WHERE)
    [problem] = raised.value.problems
    assert says in str(problem)
    unknown = "no parameter" in says or "foo" in says or "@" in says or "no condition" in says
    unknown |= "is false" in says or "a text" in says
    assert ("too many to be listed" in str(problem)) != unknown
    assert problem.where == Location("t1.json", 7, column)


@pytest.mark.parametrize(
    "text", ["!a == 1", "b > 1 && !a + b", "!(a) == 1", "(a + 1 + 1 + (b)\n > 1) && !b == 2"]
)
def test_a_not_of_c_that_binds_tighter_than_that_of_python_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="in C the ! would be of its first operand alone"):
        rule_text(text, KNOBS, WHERE)


def test_texts_in_a_condition_of_c_are_left_alone() -> None:
    assert rule_text('s != "p||q" && !f', KNOBS, WHERE).text == 's != "p||q" and not f'


@pytest.mark.parametrize("text", ["not " * 100_000 + "a", "-" * 5_000 + "a > 0", "a+" * 50_000 + "a > 0"])
def test_what_pythons_parser_cannot_take_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match="nested too deep") as raised:
        rule_text(text, KNOBS, WHERE)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    ("text", "rule", "listed"),
    [
        ("any([a > 1, b > 1])", "(a > 1) or (b > 1)", ()),
        ("a & 7 == 0", "(a % 8) == 0", ()),
        ("a & 8 == 0", "(a // 8) % 2 * 8 == 0", ()),
        ("a & (a - 1) == 0 and b > 1", "(a in [1, 2, 8]) and (b > 1)", ("a & a - 1 == 0",)),
        ("(a if f else b) > 2", "(f and (a > 2)) or ((not f) and (b > 2))", ()),
        ("b and a // b & 5 == 4", "(a == 8 and b == 2)", ("b and a // b & 5 == 4",)),
    ],
)
def test_what_has_no_counterpart_is_said_by_values(text: str, rule: str, listed: tuple[str, ...]) -> None:
    found = rule_text(text, KNOBS, WHERE)
    assert parse(found.text) == parse(rule) or render(parse(found.text)) == render(parse(rule))
    assert found.listed == listed


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("t == 'z' or b == 2", "b == 2"),
        ("t != 'z' and b == 2 and f", "(b == 2) and f"),
        ("(b == 2 if f else True)", "(f and (b == 2)) or (not f)"),
        ("(b == 2 if t == 'z' else a > 2)", "a > 2"),
        ("not t == 'z' or b == 2", "True"),
        ("not (t == 'z' and b == 2)", "True"),
    ],
)
def test_what_is_always_true_or_false_is_no_part_of_a_rule(text: str, rule: str) -> None:
    """A space file had ``False or (b == 2)``."""
    assert rule_text(text, KNOBS, WHERE).text == rule


def test_a_list_of_values_is_no_longer_than_somebody_reads() -> None:
    text = "(a ^ (a * 7 // 3)) % 5 < 2"
    assert rule_text(text, {"a": tuple(range(20))}, WHERE).text == "a in [0, 2, 8, 12, 14, 18]"
    with pytest.raises(InputError, match="the values that satisfy it are too many to be listed"):
        rule_text(text, {"a": tuple(range(2_000))}, WHERE)


@pytest.mark.parametrize("text", ["a & 3 == 0 && f", "f || 0 == a | b", "a ^ b != 1 && !f"])
def test_bits_that_c_groups_otherwise_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="in C the comparison would come first"):
        rule_text(text, KNOBS, WHERE)
    assert rule_text("(a & 3) == 0 && f", KNOBS, WHERE).text


@pytest.mark.parametrize("text", ["1 < a < 3 && f", "!(a > 1 == b > 1)", "f || a == b == 1"])
def test_comparisons_in_a_row_mean_something_else_in_c_and_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="in C the result of the first comparison would be compared"):
        rule_text(text, KNOBS, WHERE)
    assert rule_text("!((a > 1) == (b > 1))", KNOBS, WHERE).text == "not ((a > 1) == (b > 1))"


@pytest.mark.parametrize("text", ["a / b > 1 && f", "f || math.ceil(a / 2) == 2", "!(a / (b + 1) == 2)"])
def test_whole_numbers_that_c_divides_otherwise_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="in C whole numbers are divided without a rest"):
        rule_text(text, KNOBS, WHERE)
    assert rule_text("a / r > 8 && f", KNOBS, WHERE).text == "a / r > 8 and f"
    assert rule_text("a / b > 1 and f", KNOBS, WHERE).text == "a / b > 1 and f"


def test_many_ifs_in_one_comparison_end() -> None:
    text = " + ".join(["(a if f else b)"] * 30) + " > 60"
    assert rule_text(text, KNOBS, WHERE).listed
