"""Which kernels of a Python source stand under ``triton.autotune``, by whatever name. Pure."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TypeGuard


@dataclass(frozen=True)
class Autotuned:
    """A kernel under ``triton.autotune``."""

    name: str
    call: ast.Call
    parameters: frozenset[str] | None = None
    """Their names; ``None`` where the function is not written here."""


def autotuned(tree: ast.Module) -> list[Autotuned]:
    """The kernels under ``@triton.autotune(...)``, or in ``triton.autotune(...)(kernel)``."""
    found = []
    names = names_of(tree, "autotune")
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            parameters = _parameters(node)
            calls = [call for call in node.decorator_list if _is_autotune(call, names)]
            found += [Autotuned(node.name, call, parameters) for call in calls]
        elif isinstance(node, ast.Call) and _is_autotune(node.func, names) and node.args:
            found.append(Autotuned(ast.unparse(node.args[0]), node.func))
    return found


def changes_of_configs(tree: ast.Module, kernel: str) -> list[int]:
    """The lines of statements that change the list of ``kernel`` afterwards."""
    lines = []
    for node in ast.walk(tree):
        match node:
            case (
                ast.Attribute(value=ast.Name(id=name), attr="configs", ctx=ast.Store())
                | ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id=name), attr="configs")))
            ):
                lines += [node.lineno] if name == kernel else []
    return sorted(lines)


def _parameters(function: ast.FunctionDef) -> frozenset[str]:
    given = function.args
    return frozenset(one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs))


def _is_autotune(node: ast.AST, names: set[str]) -> TypeGuard[ast.Call]:
    called = node.func if isinstance(node, ast.Call) else None
    return getattr(called, "attr", "") == "autotune" or getattr(called, "id", "") in names


def names_of(tree: ast.Module, original: str) -> set[str]:
    """What the source calls ``original``: that, and what it imports it as or assigns it to."""
    found = {original}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(names=imported):
                found |= {one.asname for one in imported if one.name == original and one.asname}
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=same) | ast.Attribute(attr=same)):
                found |= {name} if same == original else set()
    return found
