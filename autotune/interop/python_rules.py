"""A condition written in Python as a rule of a space file.

What the rule language shares with Python is kept as it was written. Translated is what conditions of other
tools often have: ``p["tile"]`` and ``p.tile`` for a knob, numbers taken as conditions, ``&`` and ``|``
between comparisons, shifts, ``a if c else b`` between conditions, ``math.ceil(a / b)``, and the ``&&``,
``||`` and ``!`` of C. Pure.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from typing import cast

from autotune.errors import InputError, Location, Problem, nearest, shorten
from autotune.interop.python_text import parsed
from autotune.space.configuration import Value
from autotune.space.parser import parse
from autotune.space.syntax import (
    FUNCTIONS,
    Binary,
    BinaryOperator,
    Boolean,
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

LONGEST_RANGE = 100
"""Values of a ``range`` that are written out into a rule."""

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
_TEXT = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_C = re.compile(rf"{_TEXT}|\s*(?:&&|\|\|)\s*|!(?!=)\s*", re.DOTALL)
"""What stands for ``and``, ``or`` and ``not`` in C; and quoted texts, in which it means nothing."""


def rule_text(text: str, knobs: Mapping[str, Sequence[Value]], where: Location) -> str:
    """The rule that says what the Python condition ``text`` says of ``knobs`` (their values by name).

    ``where`` is the place at which ``text`` begins. Raises :class:`InputError` with the place of what has no
    counterpart.
    """
    plain = text.strip()
    written = _C.sub(_in_python, plain).strip()
    try:
        tree = parsed(written, "eval").body
    except (SyntaxError, ValueError) as error:
        column = (getattr(error, "offset", 0) or 1) - 1 if written == text else 0
        place = _moved(where, column)
        message = f"{shorten(text)!r} is no condition in Python: {getattr(error, 'msg', error)}"
        raise InputError(Problem(message, place)) from None
    translation = _Translation(knobs, where if written == text else Location(where.file, where.line))
    try:
        if written != plain:
            translation.refuse_loose_not(tree, written)
        node = translation.condition(tree)
        return written if _same(written, node) else _without_brackets(render(node))
    except RecursionError:
        raise InputError(Problem("this condition is nested too deep", where)) from None


def _in_python(found: re.Match[str]) -> str:
    """What a match of :data:`_C` is in Python."""
    sign = found[0].strip()
    return {"&&": " and ", "||": " or ", "!": "not "}.get(sign, found[0])


def _same(text: str, node: Node) -> bool:
    try:
        return render(parse(text)) == render(node)
    except InputError:
        return False


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

    def refuse(self, node: ast.AST, why: str, hint: str = "") -> InputError:
        place = _moved(self.where, getattr(node, "col_offset", 0))
        return InputError(Problem(f"{ast.unparse(node)!r} cannot be said in a rule: {why}", place, hint=hint))

    def refuse_loose_not(self, tree: ast.expr, text: str) -> None:
        """Raise :class:`InputError` for a ``!`` that C binds tighter than Python its ``not``: ``!a == b``."""
        for node in ast.walk(tree):
            if isinstance(node, ast.UnaryOp) and isinstance(node.operand, (ast.Compare, ast.BinOp)):
                behind = text.encode()[node.col_offset + len("not") : node.operand.col_offset]
                if isinstance(node.op, ast.Not) and b"(" not in behind:
                    why = "in C the ! would be of its first operand alone"
                    raise self.refuse(node, why, "put brackets around what it is to negate")

    def condition(self, node: ast.expr) -> Node:
        """``node`` where its truth is asked for."""
        match node:
            case ast.Lambda(body=body):
                return self.condition(body)
            case ast.BoolOp(op=op, values=parts):
                return Boolean("and" if isinstance(op, ast.And) else "or", tuple(map(self.condition, parts)))
            case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() as op, right=right) if _is_condition(
                node
            ):
                both = self.condition(left), self.condition(right)
                return Boolean("and" if isinstance(op, ast.BitAnd) else "or", both)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return Unary("not", self.condition(operand))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                holds = self.condition(test)
                yes, no = self.condition(body), self.condition(orelse)
                return Boolean(
                    "or", (Boolean("and", (holds, yes)), Boolean("and", (Unary("not", holds), no)))
                )
            case ast.Call(func=ast.Name(id="bool"), args=[one]):
                return self.condition(one)
        found = self.value(node)
        if isinstance(found, Comparison) or self.is_flag(found):
            return found
        if isinstance(found, Literal) and isinstance(found.value, (int, float)):
            return Literal(bool(found.value))
        if isinstance(found, Name) and any(isinstance(v, str) for v in self.knobs[found.name]):
            raise self.refuse(node, "a text is neither true nor false")
        return Comparison(("!=",), (found, Literal(0)))

    def is_flag(self, node: Node) -> bool:
        if isinstance(node, Literal):
            return isinstance(node.value, bool)
        return isinstance(node, Name) and all(isinstance(v, bool) for v in self.knobs[node.name])

    def value(self, node: ast.expr) -> Node:
        """``node`` where its value is asked for."""
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return Literal(value)
            case ast.Name(id=name):
                return self.knob(node, name)
            case ast.Subscript(value=ast.Name(id=whole), slice=ast.Constant(value=str() as name)):
                return self.knob(node, name) if whole not in self.knobs else self.item(node)
            case ast.Attribute(value=ast.Name(id=whole), attr=name) if whole not in self.knobs:
                return self.knob(node, name)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
                return Unary("-" if isinstance(op, ast.USub) else "+", self.value(operand))
            case ast.BinOp(left=left, op=op, right=right):
                return self.arithmetic(node, op, left, right)
            case ast.Compare(left=left, ops=ops, comparators=others):
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
        if isinstance(two, ListOf):
            kept = tuple(item for item in two.items if not isinstance(item, Literal) or item.value in values)
            return Comparison((sign,), (one, ListOf(kept))) if kept else Literal(sign == "not in")
        return node

    def item(self, node: ast.AST) -> Node:
        raise self.refuse(node, "no knob here has parts")

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
        if type(op) not in _BINARY:
            raise self.refuse(node, "there are no operations on bits")
        return Binary(_BINARY[type(op)], one, two)

    def call(self, node: ast.Call) -> Node:
        name = _function(node)
        if node.keywords:
            raise self.refuse(node, "a function takes no arguments by name")
        match name, node.args:
            case "range", bounds:
                return self.span(node, bounds)
            case "len", [ast.Set()]:
                raise self.refuse(
                    node, "a set has what is equal only once, and lists of rules as often as it is"
                )
            case "ceil", [ast.BinOp(left=left, op=ast.Div(), right=right)]:
                return Call("ceildiv", (self.value(left), self.value(right)))
            case "int", [ast.BinOp(op=ast.Div()) as quotient] if not self.never_negative(quotient):
                raise self.refuse(node, "it rounds towards 0, and rules round down", "use //")
            case (("floor" | "int"), [ast.BinOp(left=left, op=ast.Div(), right=right)]):
                return Binary("//", self.value(left), self.value(right))
            case "pow", [one, two]:
                return Binary("**", self.value(one), self.value(two))
            case "sqrt", [one]:
                return Binary("**", self.value(one), Literal(0.5))
            case "float", [one]:
                return self.value(one)
            case (("int" | "ceil" | "floor"), [one]) if self.is_whole(one):
                return self.value(one)
        if name not in FUNCTIONS or name == "count":
            raise self.refuse(node, f"it has no function {name}", f"it has {', '.join(sorted(FUNCTIONS))}")
        return Call(cast(FunctionName, name), tuple(map(self.value, node.args)))

    def is_whole(self, node: ast.expr) -> bool:
        """Whether a value is a whole number, as far as can be seen, so that rounding it changes nothing."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, int)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self.is_whole(operand)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self.is_whole(left) and self.is_count(right)
            case ast.BinOp(left=left, op=op, right=right):
                return not isinstance(op, ast.Div) and self.is_whole(left) and self.is_whole(right)
            case ast.Call(args=arguments):
                return self.is_whole_call(_function(node), arguments)
            case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
                return all(map(self.is_whole, parts))
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return True  # of and and or only those between conditions are translated
        values = self.values_of(node)
        return bool(values) and all(isinstance(value, int) for value in values)

    def is_whole_call(self, name: str, arguments: Sequence[ast.expr]) -> bool:
        match name, arguments:
            case (("int" | "ceil" | "floor"), [_]):
                return True
            case "pow", [one, two]:
                return self.is_whole(one) and self.is_count(two)
        return name in ("float", "abs", "min", "max") and all(map(self.is_whole, arguments))

    def never_negative(self, node: ast.expr) -> bool:
        """Whether a value is a number and not negative, as far as can be seen."""
        match node:
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return self.least(node) >= 0
            case ast.BinOp(left=left, right=right):
                return self.never_negative(left) and self.never_negative(right)
            case ast.Call(args=arguments):
                return _function(node) == "abs" or all(map(self.never_negative, arguments))
        return self.least(node) >= 0

    def least(self, node: ast.expr) -> float:
        """A bound below a sum, as ``a + b - 1`` of what is rounded up; minus infinity where none is seen."""
        match node:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.least(left) + self.least(right)
            case ast.BinOp(left=left, op=ast.Sub(), right=right):
                return self.least(left) - max(self.numbers(right), default=math.inf)
        if isinstance(node, (ast.BinOp, ast.Call)):
            return 0.0 if self.never_negative(node) else -math.inf
        return min(self.numbers(node), default=-math.inf)

    def numbers(self, node: ast.expr) -> Sequence[float]:
        """The values of a constant or a knob, if all of them are numbers; else none."""
        values = (node.value,) if isinstance(node, ast.Constant) else self.values_of(node)
        numbers = [value for value in values if isinstance(value, (int, float))]
        return numbers if len(numbers) == len(values) else ()

    def is_count(self, node: ast.expr) -> bool:
        """Whether a value is a whole number and not negative."""
        values = (node.value,) if isinstance(node, ast.Constant) else self.values_of(node)
        return bool(values) and all(isinstance(value, int) and value >= 0 for value in values)

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
        numbers = [bound.value for bound in bounds if isinstance(bound, ast.Constant)]
        whole = [number for number in numbers if isinstance(number, int)]
        if len(whole) != len(bounds) or not 1 <= len(whole) <= 3 or (len(whole) == 3 and not whole[2]):
            raise self.refuse(node, "a range of constants is what it knows")
        found = range(*whole)
        if len(found) > LONGEST_RANGE:
            raise self.refuse(node, f"it has {len(found):,} items", "compare with its bounds")
        return ListOf(tuple(map(Literal, found)))


def _function(node: ast.Call) -> str:
    return ast.unparse(node.func).removeprefix("math.").removeprefix("np.").removeprefix("numpy.")


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
