"""What decorators of a Python source do to its functions, as far as can be seen. Pure."""

from __future__ import annotations

import ast
from collections.abc import Callable

LATER = ("jit", "autotune", "heuristics")
"""Decorators of Triton, which call what they are given only when the kernel is launched."""


def keeps_results(decorator: ast.expr) -> bool:
    """Whether a function returns what it would return without the decorator."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(called).rpartition(".")[2] in ("cache", "lru_cache", "staticmethod")


def hands_functions(call: ast.Call, is_function: Callable[[str], bool]) -> bool:
    """Whether functions of the source are among what is given in a call, and not only called there."""
    parts = [*ast.walk(call)]
    called = [part.func for part in parts if isinstance(part, ast.Call)]
    named = [part.id for part in parts if isinstance(part, ast.Name) and part not in called]
    return any(map(is_function, named)) or any(isinstance(part, ast.Lambda) for part in parts)
