"""What a Python file defines under the name in ``objective:``, as far as that shows without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from autotune.errors import InputError, Location, Problem, nearest
from autotune.measure.loading.target import split_target, target_file
from autotune.space.spec import PythonObjective

_MAKES_NAMES = frozenset({"globals", "vars", "locals", "exec", "setattr", "__getattr__"})
"""A file that mentions one of these may define names that do not appear in it."""


def require_target(spec: PythonObjective) -> None:
    """Raises :class:`InputError` where the file is not there, is not Python, or certainly lacks the name."""
    file = target_file(spec)
    name = split_target(spec)[1].partition(".")[0]
    tree = _parsed(file)
    bound = dict.fromkeys(_bound(tree))
    if name in bound or _may_bind_more(tree):
        return
    own = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    expected = ", ".join(one for one in own if one[0] != "_") or "the name of a class or function in it"
    raise InputError(
        Problem(f"{file.name} has no {name!r}", spec.where, expected, nearest(name, list(bound)))
    )


def written(spec: PythonObjective) -> ast.FunctionDef | ast.ClassDef | None:
    """The function or class that is certainly meant: defined once, at the top of the file, undecorated."""
    name = split_target(spec)[1]
    tree = _parsed(target_file(spec))
    if _may_bind_more(tree) or list(_bound(tree)).count(name) != 1:
        return None
    kinds = ast.FunctionDef | ast.ClassDef
    found = (node for node in tree.body if isinstance(node, kinds) and node.name == name)
    return next((node for node in found if not node.decorator_list), None)


def _parsed(file: Path) -> ast.Module:
    try:
        return ast.parse(file.read_bytes(), str(file))
    except SyntaxError as error:
        where = Location(str(file), error.lineno or 0, error.offset or 0)
        raise InputError(Problem(f"{error.msg}: {(error.text or '').strip()}", where)) from error
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise InputError(Problem(f"cannot be read as Python: {error}", Location(str(file)))) from error


def _bound(tree: ast.Module) -> Iterator[str]:
    """Every name that the file binds anywhere."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.alias(name=name, asname=asname):
                yield asname or name.partition(".")[0]


def _may_bind_more(tree: ast.Module) -> bool:
    return any(
        (isinstance(node, ast.alias) and node.name == "*")
        or (isinstance(node, ast.Name) and node.id in _MAKES_NAMES)
        or (isinstance(node, ast.FunctionDef) and node.name in _MAKES_NAMES)
        for node in ast.walk(tree)
    )
