"""The syntax tree of the rule language: what a constraint or a ``when`` condition is made of.

A rule's text is parsed to these nodes (:mod:`autotune.space.language.parser`), checked, and compiled once
(:mod:`autotune.space.language.rule`). Text is never evaluated. Names of the workload and of the device are
replaced by their values when a rule is bound to a space, so that only knobs remain as names.

Meaning follows Python: precedence, chained comparisons, short-circuit ``and`` and ``or``, floor
division and modulo. ``/`` is exact division.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias, get_args

from autotune.space.configuration import FrozenMap, Value, plain
from autotune.space.language.tokens import ESCAPES

UnaryOperator: TypeAlias = OneOf["-", "+", "not"]
BinaryOperator: TypeAlias = OneOf["+", "-", "*", "/", "//", "%", "**"]
ComparisonOperator: TypeAlias = OneOf["==", "!=", "<", "<=", ">", ">=", "in", "not in"]
BooleanOperator: TypeAlias = OneOf["and", "or"]
FunctionName: TypeAlias = OneOf["min", "max", "abs", "ceildiv", "log2", "len", "count"]


@dataclass(frozen=True)
class Literal:
    """A number, text, flag or constant list (as a tuple); also a workload or device fact, once bound."""

    value: Value
    column: int = 0


@dataclass(frozen=True)
class Name:
    """A knob, or before binding also ``m``, ``workload.m`` or ``device.l1_bytes`` (dots kept)."""

    name: str
    column: int = 0


@dataclass(frozen=True)
class Item:
    """``order[0]`` (the item at a position) or ``place['embed']`` (where an item is assigned)."""

    knob: str
    key: int | str
    column: int = 0


@dataclass(frozen=True)
class Unary:
    operator: UnaryOperator
    operand: Node
    column: int = 0


@dataclass(frozen=True)
class Binary:
    operator: BinaryOperator
    left: Node
    right: Node
    column: int = 0


@dataclass(frozen=True)
class Comparison:
    """``a < b <= c``: one operand more than operators; each operand is evaluated once."""

    operators: tuple[ComparisonOperator, ...]
    operands: tuple[Node, ...]
    column: int = 0


@dataclass(frozen=True)
class Boolean:
    operator: BooleanOperator
    operands: tuple[Node, ...]
    column: int = 0


@dataclass(frozen=True)
class Call:
    function: FunctionName
    arguments: tuple[Node, ...]
    column: int = 0


@dataclass(frozen=True)
class ListOf:
    """``[1, tile_m, 'row']``: the right side of ``in``, or the argument of ``len``."""

    items: tuple[Node, ...]
    column: int = 0


Node: TypeAlias = Literal | Name | Item | Unary | Binary | Comparison | Boolean | Call | ListOf

FUNCTIONS: frozenset[str] = frozenset(get_args(FunctionName))
WORDS = frozenset({"and", "or", "not", "in", "True", "False", "true", "false"}) | frozenset(
    {"is", "if", "for", "lambda", "None", "null"}
)
"""Words of the rule language, and of other languages where an error says what to write instead."""
ROOTS = frozenset({"workload", "device"})
"""The names whose parts are facts: ``workload.m``, ``device.l1_bytes``."""


def check_name(name: object) -> None:
    """Raise ``ValueError`` unless ``name`` can name a knob, so that every rule can speak of it."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ValueError(f"{name!r} cannot name a knob: expected letters, digits and _, no digit first")
    for words, meaning in ((FUNCTIONS, "a function"), (WORDS, "a reserved word"), (ROOTS, "a name")):
        if name in words:
            raise ValueError(f"{name!r} cannot name a knob: it is {meaning} of the rule language")


def name_of(node: Node) -> str:
    """The knob or fact that a name, or an item of one, stands for; empty for every other node."""
    if isinstance(node, Name):
        return node.name
    return node.knob if isinstance(node, Item) else ""


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below ``node``, from left to right."""
    match node:
        case Literal() | Name() | Item():
            return ()
        case Unary():
            return (node.operand,)
        case Binary():
            return (node.left, node.right)
        case Comparison() | Boolean():
            return node.operands
        case Call():
            return node.arguments
        case ListOf():
            return node.items


def walk(node: Node) -> Iterator[Node]:
    """``node`` and every node below it, without recursion."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def render(node: Node) -> str:
    """The one canonical text of a tree: every operation in brackets, columns and spacing forgotten.

    Two rules that differ only in how they were written down have the same text. It parses back, but for
    what only a fact or folding brings in: a map, and an integer that no rule may write.
    """
    match node:
        case Literal():
            return _render_value(node.value)
        case Name():
            return node.name
        case Item():
            return f"{node.knob}[{_render_value(node.key)}]"
        case Unary():
            return f"({node.operator} {render(node.operand)})"
        case Binary():
            left = render(node.left)
            if node.operator == "**" and left.startswith("-"):
                left = f"({left})"  # -3 ** x is -(3 ** x)
            return f"({left} {node.operator} {render(node.right)})"
        case Comparison():
            first, *rest = map(render, node.operands)
            tail = [f"{sign} {text}" for sign, text in zip(node.operators, rest, strict=True)]
            return f"({' '.join([first, *tail])})"
        case Boolean():
            return f"({f' {node.operator} '.join(map(render, node.operands))})"
        case Call():
            return f"{node.function}({', '.join(map(render, node.arguments))})"
        case ListOf():
            return f"[{', '.join(map(render, node.items))}]"


def _render_value(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_render_value, value))}]"
    if isinstance(value, FrozenMap):
        return json.dumps(plain(value), sort_keys=True)
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    """As Python quotes it, but with no escapes that the rule language does not know."""
    quote = '"' if "'" in text and '"' not in text else "'"
    escapes = {char: escape for escape, char in ESCAPES.items() if char not in "'\"" or char == quote}
    return f"{quote}{''.join(escapes.get(char, char) for char in text)}{quote}"
