"""A condition in Python and the rule made of it say the same of every configuration."""

from __future__ import annotations

import math
from itertools import product

import pytest

from autotune.errors import InputError, Location
from autotune.interop.python_rules import rule_text
from autotune.space.binding import bind_rule
from autotune.space.configuration import Value
from autotune.space.knobs import Choice, Flag, OrderedValues

KNOBS: dict[str, tuple[Value, ...]] = {
    "a": (1, 2, 3, 8),
    "b": (0, 2, 5),
    "f": (True, False),
    "t": ("x", "y"),
    "r": (0.25, 0.5),
    "n": (-3, -1, 2),
    "s": ("a!b", "p||q", "u && v"),
}
KINDS = [
    OrderedValues("a", KNOBS["a"]),
    OrderedValues("b", KNOBS["b"]),
    Flag("f"),
    Choice("t", KNOBS["t"]),
    OrderedValues("r", KNOBS["r"]),
    OrderedValues("n", KNOBS["n"]),
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
    ],
)
def test_the_rule_holds_where_the_condition_does(text: str) -> None:
    rule = rule_text(text, KNOBS, WHERE)
    bound = bind_rule(rule, knobs=KINDS)
    for values in product(*KNOBS.values()):
        row = dict(zip(KNOBS, values, strict=True))
        names = {"math": math, "floor": math.floor, "p": Whole(row)}
        assert bound.holds(row) == bool(eval(text, names, row)), row


def test_what_both_languages_share_stays_as_it_was() -> None:
    assert rule_text("(a * b) <= 1024", KNOBS, WHERE) == "(a * b) <= 1024"


def test_signs_of_c() -> None:
    assert rule_text("a > 1 && !(b == 2 || b == 5)", KNOBS, WHERE) == "a > 1 and not (b == 2 or b == 5)"


@pytest.mark.parametrize(
    ("text", "says", "column"),
    [
        ("a + c > 1", "there is no parameter 'c'", 14),
        ("a ^ b > 1", "no operations on bits", 10),
        ("a > 1 and foo(b)", "no function foo", 20),
        ("a in range(1000)", "1,000 items", 15),
        ("t", "neither true nor false", 10),
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
        ("a > > 1", "is no condition in Python", 14),
    ],
)
def test_what_has_no_counterpart_is_said_with_its_place(text: str, says: str, column: int) -> None:
    with pytest.raises(InputError) as raised:
        rule_text(text, KNOBS, WHERE)
    [problem] = raised.value.problems
    assert says in str(problem)
    assert problem.where == Location("t1.json", 7, column)


@pytest.mark.parametrize("text", ["!a == 1", "b > 1 && !a + b", "!(a) == 1"])
def test_a_not_of_c_that_binds_tighter_than_that_of_python_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="in C the ! would be of its first operand alone"):
        rule_text(text, KNOBS, WHERE)


def test_texts_in_a_condition_of_c_are_left_alone() -> None:
    assert rule_text('s != "p||q" && !f', KNOBS, WHERE) == 's != "p||q" and not f'


@pytest.mark.parametrize("text", ["not " * 100_000 + "a", "-" * 5_000 + "a > 0", "a+" * 50_000 + "a > 0"])
def test_what_pythons_parser_cannot_take_is_an_error(text: str) -> None:
    with pytest.raises(InputError, match="nested too deep") as raised:
        rule_text(text, KNOBS, WHERE)
    assert len(str(raised.value)) < 500
