"""A condition written in Python as a rule of a space file.

What the rule language shares with Python is kept as it was written. Translated is what conditions of other
tools often have: ``p["tile"]`` and ``p.tile`` for a knob, numbers taken as conditions, ``&`` and ``|``
between comparisons, shifts, ``any``, ``all``, ``a if c else b``, ``math.ceil(a / b)``, and the ``&&``,
``||`` and ``!`` of C. What has no counterpart, such as operations on bits, is said by the values for which
it holds. Pure.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from autotune.errors import InputError, Location, Problem, nearest, shorten
from autotune.interop.space_files.c_conditions import in_python, otherwise_in_c
from autotune.interop.space_files.listed_rules import listed
from autotune.interop.space_files.python_cases import LONGEST_RANGE, cases, span, unrolled
from autotune.interop.space_files.python_numbers import Seen, function_name
from autotune.interop.space_files.python_text import parsed
from autotune.interop.space_files.space_text import knob_of
from autotune.space.configuration import Value
from autotune.space.language.binding import bind_rule
from autotune.space.language.parser import LARGEST_INTEGER, parse
from autotune.space.language.syntax import (
    FUNCTIONS,
    Binary,
    BinaryOperator,
    Boolean,
    BooleanOperator,
    Call,
    Comparison,
    ComparisonOperator,
    FunctionName,
    ListOf,
    Literal,
    Name,
    Node,
    Unary,
    render,
)

_SIGNS: Mapping[type[ast.operator], str] = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
"""Operations on bits, which rules do not have."""

_BINARY: Mapping[type[ast.operator], BinaryOperator] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_COMPARE: Mapping[type[ast.cmpop], ComparisonOperator] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "==",
    ast.IsNot: "!=",
}


@dataclass(frozen=True)
class Translated:
    """A rule, and those parts of the condition that are said in it by the values for which they hold."""

    text: str
    listed: tuple[str, ...] = ()


def rule_text(text: str, knobs: Mapping[str, Sequence[Value]], where: Location) -> Translated:
    """The rule that says what the Python condition ``text`` says of ``knobs`` (their values by name).

    ``where`` is the place at which ``text`` begins. Raises :class:`InputError` with the place of what has no
    counterpart.
    """
    plain = text.strip()
    written = in_python(plain).strip()
    try:
        tree = parsed(written, "eval").body
    except (SyntaxError, ValueError) as error:
        column = (getattr(error, "offset", 0) or 1) - 1 if written == text else 0
        place = _moved(where, column)
        message = f"{shorten(text)!r} is no condition in Python: {getattr(error, 'msg', error)}"
        raise InputError(Problem(message, place)) from None
    translation = _Translation(knobs, where if written == text else Location(where.file, where.line))
    try:
        if written != plain and (found := otherwise_in_c(tree, written, translation.seen.is_whole)):
            raise translation.refuse(*found)
        node = translation.condition(tree)
        translation.refuse_never(node, text)
        rule = written if _same(written, node) else _without_brackets(render(node))
    except RecursionError:
        raise InputError(Problem("this condition is nested too deep", where)) from None
    return Translated(rule, tuple(translation.listed))


def _same(text: str, node: Node) -> bool:
    try:
        return render(parse(text)) == render(node)
    except InputError:
        return False


def _joined(operator: BooleanOperator, *parts: Node) -> Node:
    """``and`` or ``or`` of the parts, without those that are always true or false."""
    decided = [part.value for part in parts if isinstance(part, Literal)]
    if (operator == "or") in decided:
        return Literal(operator == "or")
    left = tuple(part for part in parts if not isinstance(part, Literal))
    if not left:
        return Literal(operator == "and")
    return Boolean(operator, left) if len(left) > 1 else left[0]


def _negated(node: Node) -> Node:
    return Literal(not node.value) if isinstance(node, Literal) else Unary("not", node)


def _without_brackets(text: str) -> str:
    """A rendered rule without the brackets around all of it."""
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _moved(where: Location, by: int) -> Location:
    return Location(where.file, where.line, where.column + by) if where.column else where


class _Translation:
    """Trees of Python's to trees of rules."""

    def __init__(self, knobs: Mapping[str, Sequence[Value]], where: Location) -> None:
        self.knobs = knobs
        self.where = where
        self.kinds = [knob_of(name, tuple(values), values[0]) for name, values in knobs.items()]
        self.seen = Seen(self.values_of)
        self.listed: list[str] = []

    def refuse(self, node: ast.AST, why: str, hint: str = "") -> InputError:
        place = _moved(self.where, getattr(node, "col_offset", 0))
        return InputError(Problem(f"{ast.unparse(node)!r} cannot be said in a rule: {why}", place, hint=hint))

    def refuse_never(self, rule: Node, text: str) -> None:
        try:
            bind_rule(rule, knobs=self.kinds)
        except InputError:  # its parts are right, each by itself
            message = f"{shorten(text)!r} is false for all values of the parameters"
            raise InputError(Problem(message, self.where)) from None

    def condition(self, node: ast.expr) -> Node:
        """``node`` where its truth is asked for; by the values for which it is true where all else fails."""
        before = len(self.listed)
        try:
            return self.said(node)
        except InputError as refused:
            found = listed(node, self.knobs)
            if isinstance(found, str):
                whole = isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.IfExp, ast.Lambda))
                raise (refused if whole else self.with_reason(refused, found)) from None
            self.listed[before:] = [ast.unparse(node)]
            return found

    def with_reason(self, refused: InputError, reason: str) -> InputError:
        [first, *others] = refused.problems
        if reason and reason not in first.message:
            first = replace(first, message=f"{first.message}, and {reason}")
        return InputError([first, *others])

    def said(self, node: ast.expr) -> Node:
        """``node`` where its truth is asked for, in words of rules."""
        match node:
            case ast.Lambda(body=body):
                return self.condition(body)
            case ast.BoolOp(op=op, values=parts):
                return _joined("and" if isinstance(op, ast.And) else "or", *map(self.condition, parts))
            case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() as op, right=right) if _is_condition(
                node
            ):
                both = self.condition(left), self.condition(right)
                return _joined("and" if isinstance(op, ast.BitAnd) else "or", *both)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _negated(self.condition(operand))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                holds = self.condition(test)
                yes, no = self.condition(body), self.condition(orelse)
                return _joined("or", _joined("and", holds, yes), _joined("and", _negated(holds), no))
            case ast.Call(func=ast.Name(id="bool"), args=[one]):
                return self.condition(one)
            case ast.Call() if (all_of := unrolled(node)) is not None:
                return self.condition(all_of)
        if (apart := cases(node)) is not None:
            return self.said(apart)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            raise self.refuse(node, "a text is no condition", "take the quotes away")
        found = self.truth(self.value(node))
        self.require_readable(node, found)
        return found

    def require_readable(self, node: ast.expr, rule: Node) -> None:
        """Raise where a space file would refuse ``rule``, what ``node`` is in it."""
        try:
            bind_rule(render(rule), knobs=self.kinds)  # as it is read: a tree made here has no columns
        except InputError as error:
            found = error.problems[0]
            raise self.refuse(node, found.message, found.hint) from None

    def truth(self, found: Node) -> Node:
        """That a value is none of Python's false ones."""
        if isinstance(found, Comparison) or self.is_flag(found):
            return found
        if isinstance(found, Literal) and isinstance(found.value, (int, float)):
            return Literal(bool(found.value))
        return Comparison(("!=",), (found, Literal(0)))

    def is_flag(self, node: Node) -> bool:
        if isinstance(node, Literal):
            return isinstance(node.value, bool)
        return isinstance(node, Name) and all(isinstance(v, bool) for v in self.knobs[node.name])

    def value(self, node: ast.expr) -> Node:
        """``node`` where its value is asked for."""
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                if value == math.inf or (isinstance(value, int) and value > LARGEST_INTEGER):
                    raise self.refuse(node, "the number is too large")
                return Literal(value)
            case ast.Name(id="true" | "false" as name) if name not in self.knobs:
                return Literal(name == "true")
            case ast.Name(id=name):
                return self.knob(node, name)
            case ast.Subscript(value=ast.Name(id=whole), slice=ast.Constant(value=str() as name)):
                if whole in self.knobs:
                    raise self.refuse(node, "no knob here has parts")
                return self.knob(node, name)
            case ast.Attribute(value=ast.Name(id=whole), attr=name) if whole not in self.knobs:
                return self.knob(node, name)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
                return Unary("-" if isinstance(op, ast.USub) else "+", self.value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return self.arithmetic(node, op, left, right)
            case ast.Compare(left=left, ops=ops, comparators=others):
                # int(flag) is said by the flag itself, and is none.
                if any(isinstance(op, (ast.Is, ast.IsNot)) for op in ops) and not all(
                    self.is_flag(self.value(part)) and not isinstance(part, ast.Call)
                    for part in (left, *others)
                ):
                    raise self.refuse(node, "1 is not True, though they are equal", "write == or !=")
                signs = tuple(_COMPARE[type(op)] for op in ops)
                return self.possible(Comparison(signs, (self.value(left), *map(self.value, others))))
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return ListOf(tuple(map(self.value, parts)))
            case ast.Call():
                return self.call(node)
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()) if _is_condition(node):
                return self.condition(node)
        raise self.refuse(node, "the rule language has nothing like it")

    def possible(self, node: Comparison) -> Node:
        """What ``node`` comes to where a text is compared with one that it never is, which rules refuse."""
        if len(node.operators) > 1:
            return node
        [sign], (one, two) = node.operators, node.operands
        if isinstance(one, Literal) and sign in ("==", "!="):
            one, two = two, one
        values = self.knobs[one.name] if isinstance(one, Name) else ()
        if not any(isinstance(value, str) for value in values):
            return node
        if isinstance(two, Literal) and two.value not in values and sign in ("==", "!="):
            return Literal(sign == "!=")
        if isinstance(two, ListOf) and sign in ("in", "not in"):
            kept = tuple(item for item in two.items if not isinstance(item, Literal) or item.value in values)
            return Comparison((sign,), (one, ListOf(kept))) if kept else Literal(sign == "not in")
        return node

    def knob(self, node: ast.AST, name: str) -> Node:
        if name not in self.knobs:
            raise self.refuse(node, f"there is no parameter {name!r}", nearest(name, self.knobs))
        return Name(name)

    def arithmetic(self, node: ast.AST, op: ast.operator, left: ast.expr, right: ast.expr) -> Node:
        one, two = self.value(left), self.value(right)
        match op:
            case ast.LShift():
                return Binary("*", one, Binary("**", Literal(2), two))
            case ast.RShift():
                return Binary("//", one, Binary("**", Literal(2), two))
            case ast.BitAnd() if (mask := _mask(two)) and self.seen.is_whole(left):
                return _masked(one, mask)
            case ast.BitAnd() if (mask := _mask(one)) and self.seen.is_whole(right):
                return _masked(two, mask)
        if type(op) not in _BINARY:
            hint = "write it with + - * // % and **, or list the values: x in [1, 2, 4]"
            raise self.refuse(node, f"there is no {_SIGNS.get(type(op), '@')}", hint)
        return Binary(_BINARY[type(op)], one, two)

    def call(self, node: ast.Call) -> Node:
        name = function_name(node)
        if node.keywords:
            raise self.refuse(node, "a function takes no arguments by name")
        match name, node.args:
            case "range", bounds:
                return self.span(node, bounds)
            case "len", [ast.Set()]:
                raise self.refuse(
                    node, "a set has what is equal only once, and lists of rules as often as it is"
                )
            case (("ceil" | "floor" | "int"), [ast.BinOp(left=left, op=ast.Div(), right=right)]) if not (
                self.seen.is_whole(left) and self.seen.is_whole(right)
            ):
                raise self.refuse(
                    node, "of floats, // may come to another number than / and rounding", "use //"
                )
            case "ceil", [ast.BinOp(left=left, op=ast.Div(), right=right)]:
                return Call("ceildiv", (self.value(left), self.value(right)))
            case "int", [ast.BinOp(op=ast.Div()) as quotient] if not self.seen.never_negative(quotient):
                raise self.refuse(node, "it rounds towards 0, and rules round down", "use //")
            case (("floor" | "int"), [ast.BinOp(left=left, op=ast.Div(), right=right)]):
                return Binary("//", self.value(left), self.value(right))
            case "pow", [one, two]:
                return Binary("**", self.value(one), self.value(two))
            case "sqrt", [one]:
                return Binary("**", self.value(one), Literal(0.5))
            case "float", [one]:
                return self.value(one)
            case (("int" | "ceil" | "floor"), [one]) if self.seen.is_whole(one):
                return self.value(one)
        if name not in FUNCTIONS or name == "count":
            raise self.refuse(node, f"it has no function {name}", f"it has {', '.join(sorted(FUNCTIONS))}")
        return Call(cast(FunctionName, name), tuple(map(self.value, node.args)))

    def values_of(self, node: ast.expr) -> Sequence[Value]:
        """Those of the knob that ``node`` names; empty where it is no name."""
        match node:
            case (
                ast.Name(id=name)
                | ast.Subscript(value=ast.Name(), slice=ast.Constant(value=str() as name))
                | ast.Attribute(value=ast.Name(), attr=name)
            ):
                self.knob(node, name)
                return self.knobs[name]
        return ()

    def span(self, node: ast.AST, bounds: Sequence[ast.expr]) -> Node:
        """``range(...)`` of constants as a list."""
        found = span(bounds)
        if found is None:
            raise self.refuse(node, "a range of constants is what it knows")
        if len(found) > LONGEST_RANGE:
            raise self.refuse(node, f"it has {len(found):,} items", "compare with its bounds")
        return ListOf(tuple(map(Literal, found)))


def _mask(node: Node) -> int:
    """The number where its bits stand side by side, as in 1, 6, 7 and 32; else 0."""
    value = node.value if isinstance(node, Literal) else None
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        return 0
    above = value + (value & -value)
    return value if not value & above else 0


def _masked(value: Node, mask: int) -> Node:
    """``value & mask``, of a whole number and a mask of :func:`_mask`."""
    low = mask & -mask
    if low == 1:
        return Binary("%", value, Literal(mask + 1))
    bits = Binary("%", Binary("//", value, Literal(low)), Literal(mask // low + 1))
    return Binary("*", bits, Literal(low))


def _is_condition(node: ast.expr) -> bool:
    """Whether ``&`` and ``|`` beside it mean ``and`` and ``or``."""
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()) | ast.Constant(value=bool()):
            return True
        case ast.BoolOp(values=parts):
            return all(map(_is_condition, parts))
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr(), right=right):
            return _is_condition(left) and _is_condition(right)
    return False
