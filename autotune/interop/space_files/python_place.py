"""Which statements of a Python source have run where one of its nodes is met. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.interop.space_files.python_slice import Names, assigned_by, local_names

PRESENT = {"torch", "triton", "triton.language"}
"""Modules without which there is no kernel: whoever tries to import them is taken to succeed."""


@dataclass(frozen=True)
class Met:
    """What has run where a node is met."""

    module: Sequence[ast.stmt]
    """Statements of the module."""
    own: Sequence[ast.stmt] = ()
    """After these those of the function around the node, up to it."""
    unknown: Names = frozenset()
    """Names of the function, class or block around the node whose values nothing tells."""


def met_before(node: ast.AST | None, tree: ast.Module) -> Met:
    """The statements that have run by the time ``node`` is reached; without a node, all of ``tree``.

    If ``node`` stands in a function, the whole module counts as run: functions are called once it is there.
    Branches that ``node`` stands in are taken to be entered, whatever their conditions say. Any other ``if``
    that has one of these conditions is taken to go the same way.
    """
    met = _met_before(node, tree)
    taken = dict(_conditions(node, tree.body)) if node is not None else {}
    return replace(met, module=[*_as_taken(met.module, taken)], own=[*_as_taken(met.own, taken)])


def _met_before(node: ast.AST | None, tree: ast.Module) -> Met:
    module: list[ast.stmt] = []
    after: list[ast.stmt] = []
    body = tree.body
    while node is not None and (on_the_way := _first_with(node, body)) is not None:
        place = body.index(on_the_way)
        module += body[:place]
        after = [*body[place + 1 :], *after]
        if isinstance(on_the_way, ast.FunctionDef) and _first_with(node, on_the_way.body):
            return _in_function(node, on_the_way, [*module, on_the_way, *after], local_names(tree, tree))
        branch = _branch_with(node, on_the_way)
        if branch is None:
            return Met(
                module, unknown=local_names(on_the_way, node) if _within(node, on_the_way) else frozenset()
            )
        body = branch
    return Met(tree.body)


def _in_function(node: ast.AST, function: ast.FunctionDef, module: Sequence[ast.stmt], outside: Names) -> Met:
    """The same in a function. A name that the module has as well stays unknown: either may be meant."""
    local = local_names(function, node)
    own: list[ast.stmt] = []
    body = function.body
    while (on_the_way := _first_with(node, body)) is not None:
        own += body[: body.index(on_the_way)]
        branch = _branch_with(node, on_the_way)
        if branch is None:
            again = {*assigned_by(on_the_way)} if _within(node, on_the_way) else set()  # by a later round
            known = {name for one in own for name in assigned_by(one)} - again - outside
            deferred = _within(node, on_the_way) and isinstance(on_the_way, (ast.FunctionDef, ast.ClassDef))
            return Met(module, own, local) if deferred else Met(module, own, local - known)
        body = branch
    return Met(module, own, local)


def _conditions(node: ast.AST, body: Sequence[ast.stmt]) -> Iterator[tuple[str, bool]]:
    """Those of the branches that a node stands in, and whether they hold."""
    for statement in ast.walk(ast.Module([*body], [])):
        if isinstance(statement, ast.If) and (branch := _branch_with(node, statement)):
            yield ast.dump(statement.test), branch is statement.body


def _as_taken(statements: Iterable[ast.stmt], taken: Mapping[str, bool]) -> Iterator[ast.stmt]:
    """The statements, those in branches that are taken among them; what a kernel needs can be imported."""
    for statement in statements:
        match statement:
            case ast.If(test=test, body=body, orelse=orelse) if (condition := ast.dump(test)) in taken:
                yield from _as_taken(body if taken[condition] else orelse, taken)
            case ast.Try(body=body, orelse=orelse, finalbody=last) if _imports_what_is_there(body):
                yield from _as_taken([*body, *orelse, *last], taken)
            case _:
                yield statement


def _imports_what_is_there(body: Sequence[ast.stmt]) -> bool:
    """Whether the statements import modules, and none that may be missing."""
    parts = [*ast.walk(ast.Module([*body], []))]
    imports = [part for part in parts if isinstance(part, (ast.Import, ast.ImportFrom))]
    names = {
        f"{getattr(part, 'module', '')}.{one.name}".lstrip(".") for part in imports for one in part.names
    }
    return bool(names) and names <= PRESENT


def _first_with(node: ast.AST, statements: Iterable[ast.stmt]) -> ast.stmt | None:
    """The one of ``statements`` that ``node`` is, or stands in."""
    return next((one for one in statements if any(part is node for part in ast.walk(one))), None)


def _branch_with(node: ast.AST, statement: ast.stmt) -> list[ast.stmt] | None:
    """The list of statements in this one that runs at most once, from its first on, and holds the node."""
    branches: Sequence[list[ast.stmt]] = ()
    match statement:
        case ast.If():
            branches = statement.body, statement.orelse
        case ast.Try() | ast.With():
            branches = (statement.body,)
    return next((branch for branch in branches if _first_with(node, branch)), None)


def _within(node: ast.AST, statement: ast.stmt) -> bool:
    """Whether a node stands in a statement's own statements, and not in what runs where it stands."""
    return any(part is node for block in _blocks(statement) for part in ast.walk(block))


def _blocks(statement: ast.stmt) -> Iterator[ast.AST]:
    """The statements in this one, and what handles its exceptions."""
    for block in ("body", "orelse", "finalbody", "handlers"):
        yield from getattr(statement, block, ())
