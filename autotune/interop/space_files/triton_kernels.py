"""Which kernels of a Python source stand under ``triton.autotune``, by whatever name. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeGuard


@dataclass(frozen=True)
class Autotuned:
    """A kernel under ``triton.autotune``."""

    name: str
    call: ast.Call
    parameters: frozenset[str] | None = None
    """Their names; ``None`` where the function is not written here."""
    by: str = ""
    """The decorator, where it has another name but takes ``configs`` and ``key`` as well."""


def autotuned(tree: ast.Module) -> list[Autotuned]:
    """The kernels under ``@triton.autotune(...)``, or in ``triton.autotune(...)(kernel)``.

    A kernel of the latter has the name that the result is assigned to.
    """
    found = []
    names = names_of(tree, "autotune")
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            parameters = _parameters(node)
            for decorator in node.decorator_list:
                for call in (decorator, *_values_of(decorator, assigned)):
                    if _is_autotune(call, names):
                        found.append(Autotuned(node.name, call, parameters))
                    elif isinstance(call, ast.Call) and _is_alike(call):
                        found.append(Autotuned(node.name, call, parameters, ast.unparse(call.func)))
        elif isinstance(node, ast.Call) and _is_autotune(node.func, names) and node.args:
            found.append(Autotuned(_target_of(node, assigned) or ast.unparse(node.args[0]), node.func))
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


def _values_of(node: ast.expr, assigned: Sequence[ast.Assign]) -> list[ast.expr]:
    """What is assigned to a name."""
    found = []
    for one in assigned:
        match one, node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value), ast.Name(id=same) if name == same:
                found.append(value)
    return found


def _target_of(call: ast.Call, assigned: Sequence[ast.Assign]) -> str:
    """The name that the result of a call is assigned to, or that of functions around it."""
    for one in assigned:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if call in _wrapped(value):
                return name
    return ""


def _wrapped(value: ast.expr) -> Iterator[ast.expr]:
    """``f(g(kernel))``, ``g(kernel)`` and ``kernel``."""
    yield value
    while isinstance(value, ast.Call) and value.args:
        value = value.args[0]
        yield value


def _is_alike(call: ast.Call) -> bool:
    return {"configs", "key"} <= {keyword.arg for keyword in call.keywords}


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
