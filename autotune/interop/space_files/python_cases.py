"""Conditions of Python taken apart into ones that rules have words for: any, all, and if within a value.

Pure: trees go in, trees that say the same come out.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from typing import TypeVar

MOST_CASES = 6
"""Of ``if`` within one comparison, each of which doubles its length."""

LONGEST_RANGE = 100
"""Values of a ``range`` that are written out into a rule."""

_Expr = TypeVar("_Expr", bound=ast.expr)

_NAMES_OF_ITS_OWN = (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp, ast.NamedExpr)


def unrolled(node: ast.Call) -> ast.expr | None:
    """``any`` or ``all`` of what is listed as ``or`` or ``and``; ``None`` for another call."""
    match node:
        case ast.Call(func=ast.Name(id="any" | "all" as name), args=[many], keywords=[]):
            parts = _parts(many, any_of=name == "any")
        case _:
            return None
    if parts is None:
        return None
    if len(parts) < 2:
        return parts[0] if parts else ast.copy_location(ast.Constant(name == "all"), node)
    return _at(node, ast.BoolOp(ast.Or() if name == "any" else ast.And(), parts))


def _parts(many: ast.expr, any_of: bool) -> list[ast.expr] | None:
    match many:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return None if any(isinstance(part, ast.Starred) for part in parts) else parts
        case ast.GeneratorExp(elt=said, generators=[loop]) | ast.ListComp(elt=said, generators=[loop]):
            return _rounds(said, loop, any_of)
    return None


def _rounds(said: ast.expr, loop: ast.comprehension, any_of: bool) -> list[ast.expr] | None:
    """What is said of each item of a loop, where the items stand there."""
    items = _items(loop.iter)
    inner = [node for part in (said, *loop.ifs) for node in ast.walk(part)]
    if items is None or any(isinstance(node, _NAMES_OF_ITS_OWN) for node in inner):
        return None
    if not isinstance(loop.target, ast.Name):
        return None
    whole = said
    if loop.ifs and any_of:
        whole = _at(said, ast.BoolOp(ast.And(), [*loop.ifs, said]))
    elif loop.ifs:
        skipped = [_at(said, ast.UnaryOp(ast.Not(), test)) for test in loop.ifs]
        whole = _at(said, ast.BoolOp(ast.Or(), [*skipped, said]))
    return [_Put(loop.target.id, item).visit(copy.deepcopy(whole)) for item in items]


def _items(many: ast.expr) -> Sequence[ast.expr] | None:
    match many:
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return None if any(isinstance(part, ast.Starred) for part in parts) else parts
        case ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]) if (
            found := span(bounds)
        ) is not None:
            if len(found) <= LONGEST_RANGE:
                return [ast.copy_location(ast.Constant(number), many) for number in found]
    return None


def span(bounds: Sequence[ast.expr]) -> range | None:
    """``range`` of constants; ``None`` where they are none, or not those of a range."""
    numbers = [bound.value for bound in bounds if isinstance(bound, ast.Constant)]
    whole = [number for number in numbers if isinstance(number, int)]
    if len(whole) != len(bounds) or not 1 <= len(whole) <= 3 or (len(whole) == 3 and not whole[2]):
        return None
    return range(*whole)


class _Put(ast.NodeTransformer):
    """Puts an expression in the place of a name."""

    def __init__(self, name: str, value: ast.expr) -> None:
        self.name = name
        self.value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == self.name else node


def cases(node: ast.expr) -> ast.IfExp | None:
    """``(a if c else b) < 4`` as ``a < 4 if c else b < 4``; ``None`` where it has no ``if``, or too many."""
    found = [*_ifs(node)]
    if not 0 < len(found) <= MOST_CASES:
        return None
    first = found[0]
    sides = [_Replaced(first, side).put(node) for side in (first.body, first.orelse)]
    return _at(node, ast.IfExp(first.test, *sides))


def _ifs(node: ast.AST) -> Iterator[ast.IfExp]:
    """Those in it, from the outermost on; not those of a loop, whose names mean nothing outside of it."""
    if isinstance(node, ast.IfExp):
        yield node
    for part in () if isinstance(node, _NAMES_OF_ITS_OWN) else ast.iter_child_nodes(node):
        yield from _ifs(part)


class _Replaced(ast.NodeTransformer):
    """Puts an expression in the place of one that stands there."""

    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self.old = old
        self.new = new

    def put(self, whole: ast.expr) -> ast.expr:
        # A copy that has the old one itself, so that it is known again.
        copied = copy.deepcopy(whole, {id(self.old): self.old})
        found = self.visit(copied)
        assert isinstance(found, ast.expr)
        return found

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.old else self.generic_visit(node)


def _at(place: ast.expr, node: _Expr) -> _Expr:
    return ast.copy_location(node, place)
