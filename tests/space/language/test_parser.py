"""The parser reads what Python reads, groups it as Python does, and says well what it cannot read."""

import ast
import warnings
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from autotune.errors import InputError, Location
from autotune.space.language.compute import TooLargeError, Undefined
from autotune.space.language.parser import parse
from autotune.space.language.rule import compiled
from autotune.space.language.syntax import (
    Binary,
    BinaryOperator,
    Boolean,
    Call,
    Comparison,
    ComparisonOperator,
    FunctionName,
    Item,
    ListOf,
    Literal,
    Name,
    Unary,
    UnaryOperator,
    check_name,
    render,
    walk,
)
from autotune.space.language.tokens import INSTEAD

VALUES = {"a": 3, "b": -2, "c": 0.5, "flag": True, "tile_m": 16}
ATOMS = st.sampled_from(
    [*VALUES, "1", "2", "0", "7", "1.5", "2e-1", ".5", "3.", "1_000", "0x1F", "True", "False"]
)
OPERATORS = st.sampled_from(
    ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "and", "or"]
)
PREFIXES = st.sampled_from(["-", "+", "not ", "- ", "not not ", "--"])
SPACES = st.sampled_from([" ", "  ", "\n"])


def _joined(inner):
    """Operations with few brackets, so that precedence decides; some of them are not Python either."""
    several = st.lists(inner, min_size=2, max_size=3).map(", ".join)
    listing = (
        several.map("[{}]".format) | several.map("({})".format) | inner.map("[{}]".format) | st.just("()")
    )
    operation = st.tuples(inner, SPACES, OPERATORS, SPACES, inner).map("".join)
    return st.one_of(
        operation,
        operation,
        st.tuples(inner, st.sampled_from([" in ", " not in ", "\nnot  in "]), listing).map("".join),
        st.tuples(PREFIXES, inner).map("".join),
        inner.map("({})".format),
        several.map("min({})".format),
        several.map("max({})".format),
        inner.map("abs({})".format),
    )


EXPRESSIONS = st.recursive(ATOMS, _joined, max_leaves=12)


class _Powers(ast.NodeTransformer):
    """Has a function take powers: Python would compute ``1_000 ** 1_000 ** 1_000`` for ever."""

    def visit_BinOp(self, node):
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow):
            return node
        return ast.Call(ast.Name("power", ast.Load()), [node.left, node.right], [])


def _power(base, exponent):
    if isinstance(base, int) and isinstance(exponent, int) and abs(base).bit_length() * exponent > 100_000:
        raise OverflowError
    result = base**exponent
    if isinstance(result, complex):  # of which abs would make a number again
        raise ArithmeticError("rules have no complex numbers")
    return result


def _python(text):
    """What Python makes of the text: a value, an exception, or ``SyntaxError``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            tree = ast.parse(f"({text}\n)", "text", "eval")
            code = compile(ast.fix_missing_locations(_Powers().visit(tree)), "text", "eval")
        except SyntaxError:
            return SyntaxError
    names = {"__builtins__": {}, "min": min, "max": max, "abs": abs, "power": _power}
    try:
        return eval(code, names, VALUES)
    except (ArithmeticError, TypeError, ValueError) as error:
        return error


@given(EXPRESSIONS)
@example("-2 ** 2 ** -1")
@example("2 ** -a ** 2")
@example("not a == b")
@example("a < b == c not in [1, 2]")
@example("a or b and not c or flag")
@example("a - b - c / a / b % 7")
@example("a == not b")
@example("- not a")
@example("1_000 ** 1_000 ** 1_000")
@example("(7 ** 7 ** 7 ** 7) < 2")
@example("abs(a ** b)")
@example("abs((0 - 2) ** 0.5)")
def test_a_rule_means_what_python_means(text):
    expected = _python(text)
    try:
        tree = parse(text)
    except InputError:
        assert expected is SyntaxError
        return
    assert expected is not SyntaxError
    try:
        found = compiled(tree)(VALUES)
    except TooLargeError:
        return  # Python computes on
    except TypeError:
        assert isinstance(expected, TypeError)
    except Undefined:
        assert isinstance(expected, (ArithmeticError, TypeError))
    else:
        assert found == expected and type(found) is type(expected)


@given(EXPRESSIONS)
def test_the_canonical_text_says_the_same(text):
    try:
        tree = parse(text)
    except InputError:
        return
    again = parse(render(tree)) if len(render(tree)) <= 2000 else tree
    assert render(again) == render(tree)


TEXTS = st.text(max_size=6) | st.text(alphabet="a'\"\\\n\t\r\xa0\u200b", max_size=6)
KEYS = st.integers(-3, 3) | TEXTS
NUMBERS = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.one_of(
    st.builds(Literal, NUMBERS | st.booleans() | TEXTS),
    st.builds(Name, st.sampled_from(["a", "workload.shape.m"])),
    st.builds(Item, st.just("order"), KEYS),
)


def _operations(inner):
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    signs = st.lists(st.sampled_from(get_args(ComparisonOperator)), min_size=1, max_size=2).map(tuple)
    return st.one_of(
        st.builds(Unary, st.sampled_from(get_args(UnaryOperator)), inner),
        st.builds(Binary, st.sampled_from(get_args(BinaryOperator)), inner, inner),
        st.builds(Binary, st.just("**"), inner, inner),
        st.builds(lambda all, one: Comparison(all, (one,) * (len(all) + 1)), signs, inner),
        st.builds(Boolean, st.sampled_from(["and", "or"]), several),
        st.builds(Call, st.sampled_from(get_args(FunctionName)), several),
        st.builds(ListOf, several | st.just(())),
    )


def _plain(node):
    """A tree without its columns, and with signs where a parsed one has them."""
    if isinstance(node, Literal):
        value = node.value
        if isinstance(value, (int, float)) and not isinstance(value, bool) and repr(value).startswith("-"):
            return Unary("-", Literal(-value))
        return Literal(value)
    if isinstance(node, Unary):
        return Unary(node.operator, _plain(node.operand))
    if isinstance(node, Binary):
        return Binary(node.operator, _plain(node.left), _plain(node.right))
    if isinstance(node, (Comparison, Boolean)):
        return replace(node, operands=tuple(map(_plain, node.operands)), column=0)
    if isinstance(node, Call):
        return Call(node.function, tuple(map(_plain, node.arguments)))
    return ListOf(tuple(map(_plain, node.items))) if isinstance(node, ListOf) else replace(node, column=0)


@given(st.recursive(LEAVES, _operations, max_leaves=8))
@example(Binary("**", Literal(-3), Name("a")))
@example(Binary("**", Name("a"), Literal(-3)))
@example(Comparison(("==",), (Name("a"), Literal("x\xa0\r\u200b'\""))))
def test_the_canonical_text_parses_back(tree):
    """Also where folding has put a negative number where a rule has a knob."""
    assert repr(_plain(parse(render(tree)))) == repr(_plain(tree))


@given(st.text().filter(str.isprintable) | st.text(alphabet="a'\"\\\n\t"))
def test_texts_are_quoted_as_python_does(text):
    """For every study's identity has such texts in it."""
    assert render(Literal(text)) == repr(text)


@given(st.text(max_size=40) | st.text(alphabet="ab01 .,()[]'\"\\<>=!&|+-*/%not in\n", max_size=60))
def test_any_text_is_read_or_refused(text):
    try:
        tree = parse(text, Location("space.yaml", 3, 7))
    except InputError as error:
        (problem,) = error.problems
        assert problem.where is not None and problem.where.file == "space.yaml" and problem.where.line >= 3
    else:
        assert all(1 <= node.column <= len(text) for node in walk(tree))


ERRORS = [
    ("", 1, "the rule is empty"),
    ("   ", 4, "the rule is empty"),
    ("tile = 4", 6, "expected an operator, found '='\n  to compare, write =="),
    ("tile === 4", 6, "write =="),
    ("tile <> 4", 6, "write !="),
    ("tile =< 4", 6, "write <="),
    ("tile => 4", 6, "write >="),
    ("tile ≤ 4", 6, "write <="),
    ("a && b", 3, "expected an operator, found '&&'\n  write and"),
    ("a & b", 3, "write and"),
    ("a || b", 3, "write or"),
    ("a | b", 3, "write or"),
    ("!a", 1, "write not"),
    ("~a", 1, "write not"),
    ("a ^ 2 < 3", 3, "for a power, write **"),
    ("a << 2", 3, "write * 2 ** n"),
    ("a is b", 3, "write =="),
    ("a if b else c", 3, "write the two cases with and and or"),
    ("a ? b : c", 3, "write the two cases with and and or"),
    ("a in {1, 2}", 6, "write a list with [ and ]"),
    ("a == None", 6, "give it a 'when'"),
    ("lambda: a", 1, "a rule is one expression"),
    ("[x for x in a]", 4, "name each item"),
    ("a == 'row", 6, "a text that begins with ' does not end\n  expected: a closing '"),
    ('a == "row', 6, 'does not end\n  expected: a closing "'),
    ("a == 'r\\ow'", 6, "means nothing in a text"),
    ("(a < 3", 1, "'(' is never closed\n  expected: ')'"),
    ("[a < 3", 1, "'[' is never closed"),
    ("min(a, 3", 4, "'(' is never closed"),
    ("(a < 3]", 7, "expected an operator or ')', found ']'"),
    ("a < 3)", 6, "nothing was opened that this ')' closes"),
    ("a < 3, b < 4", 6, "a rule is one condition"),
    ("a <", 4, "expected a knob, a number, a text or '(', found the end of the rule"),
    ("a < < b", 5, "expected a knob, a number, a text or '(', found '<'"),
    ("a * / b", 5, "found '/'"),
    ("and a", 1, "found 'and'"),
    ("a b", 3, "expected an operator, found 'b'\n  a text needs quotes"),
    ("a adn b", 3, "did you mean 'and'?"),
    ("a 3", 3, "expected an operator, found '3'"),
    ("a == not b", 6, "put brackets around it"),
    ("a not b", 3, "expected an operator, found 'not'"),
    ("3x < 4", 1, "'3x' is not a number\n  a name cannot begin with a digit"),
    ("4KiB < a", 1, "'4KiB' is not a number"),
    ("1.2.3 < a", 4, "expected an operator"),
    ("012 < a", 1, "'012' is not a number"),
    ("1__0 < a", 1, "is not a number"),
    ("99999999999999999999 < a", 1, "this number is too large\n  expected: at most 2**63"),
    ("1e999 < a", 1, "this number is too large"),
    ("sqrt(a) < 3", 1, "there is no function 'sqrt'\n  expected: one of abs, ceildiv"),
    ("mx(a, 2) < 3", 1, "did you mean 'max'?"),
    ("min < 3", 5, "expected '(' after the function min"),
    ("workload. < 3", 11, "expected a name after 'workload.'"),
    ("device.f(3)", 1, "there is no function 'device.f'"),
    ("order[i] == 'j'", 7, "expected a position or a text in quotes, found 'i'"),
    ("order[0.5] == 'j'", 7, "expected a position"),
    ("order[0 == 'j'", 9, "expected an operator or ']'"),
    ("order[0][1] == 'j'", 9, "expected an operator, found '['"),
    ("a # b", 3, "expected an operator, found '#'"),
    ("a := 3", 3, "a rule cannot set anything"),
]


@pytest.mark.parametrize(
    ("text", "column", "message"), ERRORS, ids=[text or "empty" for text, _, _ in ERRORS]
)
def test_an_error_says_where_and_what_to_do(text, column, message):
    with pytest.raises(InputError) as caught:
        parse(text, Location("space.yaml", 12, 20))
    (problem,) = caught.value.problems
    assert message in str(problem)
    assert problem.where == Location("space.yaml", 12, 20 + column - 1)


def test_without_an_origin_the_rule_itself_is_the_place():
    with pytest.raises(InputError, match=r"rule 'tile = 4':6: expected an operator"):
        parse("tile = 4")


def test_an_origin_of_which_little_is_known():
    with pytest.raises(InputError, match=r"^space.yaml:4: expected"):
        parse("a = 4", Location("space.yaml", 4))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1500,
        "(" * 101 + "a" + ")" * 101,
        "-" * 500 + "a",
        "not " * 400 + "a",
        "2" + "**2" * 400,
        "a" + "+a" * 500,
        "a" + "<a" * 10 + "+a" * 300,
        "[" * 300,
        "abs(" * 300,
        "min(a," * 200,
    ],
    ids=lambda text: text[:6],
)
def test_what_is_nested_too_deep_is_refused_at_once(text):
    with pytest.raises(InputError, match=r"nested more than 100 deep"):
        parse(text)


def test_what_is_too_long_is_refused_at_once():
    with pytest.raises(InputError, match=r"2,001 characters\n  expected: at most 2,000"):
        parse("a" * 2001)


def test_wide_rules_are_not_deep():
    text = " or ".join(f"a == {n}" for n in range(150))
    assert compiled(parse(text))({"a": 149}) is True
    assert compiled(parse(f"a in [{', '.join(map(str, range(400)))}]"))({"a": 399}) is True
    deep = "(" * 45 + "a" + "+1)" * 45 + " < 100"
    assert compiled(parse(deep))({"a": 1}) is True


def test_the_nodes_know_their_columns():
    tree = parse("tile <= 4 * order[-1]")
    assert isinstance(tree, Comparison) and tree.column == 6
    found = {type(node): node.column for node in walk(tree)}
    assert found[Name] == 1 and found[Literal] == 9 and found[Item] == 13


def test_texts_and_words():
    assert parse("'it\\'s'") == Literal("it's", 1)
    assert parse('"a\\\\b\\n"') == Literal("a\\b\n", 1)
    assert parse("true") == parse("True") == Literal(True, 1)
    assert parse("workload.shape.m") == Name("workload.shape.m", 1)
    assert parse("place['embed']") == Item("place", "embed", 1)
    assert render(parse("a  not   in(1,2)")) == "(a not in [1, 2])"


@pytest.mark.parametrize("name", [*filter(str.isidentifier, INSTEAD), "while", "If", "comparison", "λ"])
def test_a_name_that_a_knob_can_have_is_one_in_a_rule(name):
    """And no knob can have another: no rule could speak of it."""
    try:
        check_name(name)
    except ValueError as error:
        assert str(error) == f"{name!r} cannot name a knob: it is a reserved word of the rule language"
        with pytest.raises(InputError):
            parse(name)
    else:
        assert parse(name) == Name(name, 1)
