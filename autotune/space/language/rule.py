"""A rule: a constraint between knobs, or the condition under which a knob exists.

The way of a rule::

    text ──parse──▶ tree ──bind──▶ tree over knobs alone ──compiled once──▶ holds(values)

:func:`~autotune.space.language.binding.bind_rule` checks names and types and replaces the facts of the
workload and the device by their values. What is compiled is a Python syntax tree made from the checked
tree: no text of the user's is ever evaluated.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from autotune.errors import InputError, Location
from autotune.space.configuration import FrozenMap, Value
from autotune.space.language import compute
from autotune.space.language.parser import parse
from autotune.space.language.syntax import (
    Binary,
    Boolean,
    Call,
    Comparison,
    Item,
    ListOf,
    Literal,
    Name,
    Node,
    Unary,
    name_of,
    render,
    walk,
)

NOTHING = FrozenMap({})


@dataclass(frozen=True)
class Rule:
    """A condition over knobs. :func:`~autotune.space.language.binding.bind_rule` makes one that is checked.

    A rule that needs a knob which does not exist holds if it is ``vacuous``: so a constraint is satisfied and
    a ``when`` is false. Operands that ``and`` and ``or`` skip, as in Python, are not needed. A rule that
    cannot be computed (division by zero, log2 of 0, a power too large) does not hold. A sum or product of
    floats that is too large is infinite, as in Python, and is compared as such.
    """

    text: str
    """As the user wrote it."""
    tree: Node
    where: Location | None = field(default=None, compare=False)
    """Where the text begins."""
    vacuous: bool = True
    facts: FrozenMap = NOTHING
    """The facts of workload and device that were put into :attr:`tree`, by their dotted names."""

    @classmethod
    def parse(cls, text: str, where: Location | None = None) -> Rule:
        """The rule in ``text``, before its names are looked up; :class:`InputError` if it is not a rule."""
        return cls(text, parse(text, where), where)

    @property
    def never(self) -> bool:
        """Whether it is a ``when`` that the facts make false: its knob never exists here."""
        return isinstance(self.tree, Literal) and self.tree.value is False

    def as_condition(self) -> Rule:
        """The same as a ``when``: false where it needs a knob that does not exist."""
        return replace(self, vacuous=False) if self.vacuous else self

    @cached_property
    def knobs(self) -> frozenset[str]:
        """The knobs that are mentioned (once bound)."""
        return frozenset(name for node in walk(self.tree) if (name := name_of(node)))

    @cached_property
    def canonical(self) -> str:
        """One text for all ways of writing this rule down."""
        return render(self.tree)

    def holds(self, values: Mapping[str, Value]) -> bool:
        """Whether the rule is satisfied by the values of the knobs that exist."""
        try:
            return bool(self._compiled(values))
        except KeyError:
            return self.vacuous
        except compute.Undefined:
            return False

    @cached_property
    def _compiled(self) -> Callable[[Mapping[str, Value]], object]:
        return compiled(self.tree)

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    def __str__(self) -> str:
        return self.text


def compiled(tree: Node) -> Callable[[Mapping[str, Value]], object]:
    """A Python function of the knobs' values. It raises ``KeyError`` where it needs one that is absent.

    Raises :class:`InputError` for a tree that Python cannot compile, which a parsed one never is.
    """
    parameter = ast.arguments(
        posonlyargs=[], args=[ast.arg("values")], kwonlyargs=[], kw_defaults=[], defaults=[]
    )
    source = ast.fix_missing_locations(ast.Expression(ast.Lambda(parameter, python_of(tree))))
    try:
        code = compile(source, "<rule>", "eval")
    except RecursionError:
        raise InputError("a rule is nested too deep") from None
    names: dict[str, Any] = dict(compute.FUNCTION.items())
    names |= {"power": compute.power, "FrozenMap": FrozenMap, "__builtins__": {}}
    function: Callable[[Mapping[str, Value]], object] = eval(code, names)
    return function


_PYTHON_BINARY: dict[str, ast.operator] = {
    "+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "/": ast.Div(), "//": ast.FloorDiv(), "%": ast.Mod(),
}  # fmt: skip
_PYTHON_UNARY: dict[str, ast.unaryop] = {"-": ast.USub(), "+": ast.UAdd(), "not": ast.Not()}
_PYTHON_COMPARE: dict[str, ast.cmpop] = {
    "==": ast.Eq(), "!=": ast.NotEq(), "<": ast.Lt(), "<=": ast.LtE(), ">": ast.Gt(), ">=": ast.GtE(),
    "in": ast.In(), "not in": ast.NotIn(),
}  # fmt: skip


def python_of(node: Node) -> ast.expr:
    """The Python expression that computes ``node`` from a mapping called ``values``."""
    match node:
        case Literal():
            return _constant(node.value)
        case Name():
            return _subscript(ast.Name("values", ast.Load()), node.name)
        case Item():
            return _subscript(_subscript(ast.Name("values", ast.Load()), node.knob), node.key)
        case Unary():
            return ast.UnaryOp(_PYTHON_UNARY[node.operator], python_of(node.operand))
        case Binary(operator="**"):
            return _call("power", [node.left, node.right])
        case Binary():
            return ast.BinOp(python_of(node.left), _PYTHON_BINARY[node.operator], python_of(node.right))
        case Comparison():
            first, *rest = map(python_of, node.operands)
            return ast.Compare(first, [_PYTHON_COMPARE[sign] for sign in node.operators], rest)
        case Boolean():
            sign = ast.And() if node.operator == "and" else ast.Or()
            return ast.BoolOp(sign, [python_of(operand) for operand in node.operands])
        case Call():
            return _call(node.function, node.arguments)
        case ListOf():
            return ast.Tuple([python_of(item) for item in node.items], ast.Load())


def _call(function: str, arguments: Iterable[Node]) -> ast.expr:
    return ast.Call(ast.Name(function, ast.Load()), [python_of(argument) for argument in arguments], [])


def _subscript(of: ast.expr, key: int | str) -> ast.expr:
    return ast.Subscript(of, ast.Constant(key), ast.Load())


def _constant(value: Value) -> ast.expr:
    if isinstance(value, tuple):
        return ast.Tuple([_constant(item) for item in value], ast.Load())
    if isinstance(value, FrozenMap):  # a fact that is compared with choices
        entries = ast.Dict(
            [ast.Constant(name) for name in value], [_constant(item) for item in value.values()]
        )
        return ast.Call(ast.Name("FrozenMap", ast.Load()), [entries], [])
    return ast.Constant(value)
