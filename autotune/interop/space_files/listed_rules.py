"""A condition that rules have no words for, said by the values for which it holds. Pure.

``(x & (x - 1)) == 0`` of a knob that is one of 16, 24, 32 is ``x in [16, 32]``.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from autotune.errors import InputError, shorten
from autotune.interop.space_files.exact_rules import combinations, exact_rules
from autotune.interop.space_files.python_slice import mentioned
from autotune.interop.space_files.python_text import Module
from autotune.space.configuration import Value
from autotune.space.language.parser import parse
from autotune.space.language.syntax import Literal, Node

MOST_COMBINATIONS = 10_000
"""Of values for which a condition is worked out."""

LONGEST = 1_000
"""Characters that a condition may become; the rule language takes twice as many in one rule."""

TOO_MANY = "the values that satisfy it are too many to be listed"


def listed(node: ast.expr, knobs: Mapping[str, Sequence[Value]]) -> Node | str:
    """The rule, or why there is none: empty where the condition itself is not understood.

    It is worked out for each combination of the values of the knobs in it.
    """
    plain = _Names(knobs).visit(copy.deepcopy(node))
    mentions = mentioned(plain)
    names = [name for name in knobs if mentions & {name, _apart(name)}]
    if not names:  # it says nothing of any configuration
        return ""
    own = {name: tuple(knobs[name]) for name in names}
    few = combinations(own) <= MOST_COMBINATIONS
    module = Module(ast.Module([], []), "", {})
    rows = []
    try:
        for row in product(*own.values()):
            values = dict(zip(own, row, strict=True))
            if module.value_in(plain, values | {_apart(name): value for name, value in values.items()}):
                rows.append(row)
            if not few:
                return TOO_MANY
        if not rows:
            return Literal(False)
        rules = exact_rules(own, rows)
    except InputError:
        return ""
    if sum(map(len, rules)) > LONGEST:
        return TOO_MANY
    return parse(" and ".join(f"({rule})" for rule in rules)) if rules else Literal(True)


def say_listed(conditions: Iterable[str]) -> list[str]:
    """A note for each of the ``conditions`` that were listed."""
    return [
        f"{shorten(condition)} became a list of the values for which it holds: list anew what you change."
        for condition in dict.fromkeys(conditions)
    ]


def _apart(name: str) -> str:
    """``p["tile"]`` under a name that no loop of the condition can have for its own."""
    return f".{name}"


class _Names(ast.NodeTransformer):
    """``p["tile"]`` and ``p.tile`` as names."""

    def __init__(self, knobs: Mapping[str, Sequence[Value]]) -> None:
        self.knobs = knobs

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        match node:
            case ast.Subscript(value=ast.Name(id=whole), slice=ast.Constant(value=str() as name)):
                return self.named(node, whole, name)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        match node:
            case ast.Attribute(value=ast.Name(id=whole), attr=name):
                return self.named(node, whole, name)
        return self.generic_visit(node)

    def named(self, node: ast.expr, whole: str, name: str) -> ast.AST:
        if whole in self.knobs or name not in self.knobs:
            return node
        return ast.copy_location(ast.Name(_apart(name), ast.Load()), node)
