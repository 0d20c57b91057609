"""What a Python source that is not run and the scopes in it share: functions, jumps, the names outside."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from autotune.errors import InputError

Scope = dict[str, Any]

Call = Callable[[ast.Call, list[Any], dict[str, Any]], Any]
"""Takes the node of a call, and the values of its arguments by position and by name."""

Known = Callable[[], Any]
"""Gives what stands for a value that only running the source tells."""


@dataclass(frozen=True)
class Closure:
    """A function of the source, with what was assigned around it."""

    function: ast.FunctionDef | ast.Lambda
    scope: Scope
    defaults: Scope
    """What its arguments are where a call does not say; an :class:`InputError` is not understood."""


class Source(Protocol):
    """What a frame asks of the source around it."""

    calls: Mapping[str, Call]
    """What calls of further functions come to, by their last name."""
    known: Mapping[str, Known]
    """What names stand for that only running the source tells."""
    unread: Collection[str]
    """Arguments of those further functions whose values do not matter, but only if they are there."""
    imported: Mapping[str, str]
    """Known modules and functions, by the names that they are imported as: ``{"it": "itertools"}``."""

    def named(self, node: ast.Name) -> Any:
        """What a name of the module stands for."""

    def closure(self, name: str) -> Closure | None:
        """The function that a name of the module stands for, if it is one that is understood."""

    def hides(self, name: str) -> bool:
        """Whether a name of the module stands for something unknown, and not for Python's own function."""

    def since(self, name: str) -> str:
        """Why a name of the module is not understood, as the end of a sentence; may be empty."""

    def foreign(self, name: str) -> bool:
        """Whether a name of the module is imported, so that nothing of the source runs where it is called."""

    def apply(self, closure: Closure, node: ast.AST, given: list[Any], by_name: Scope | None = None) -> Any:
        """What a function returns for these arguments; ``node`` is where it is called."""

    def step(self, node: ast.AST) -> None:
        """Count a step; an error where there are too many."""

    def not_understood(self, node: ast.AST, why: str = "", hint: str = "") -> InputError:
        """The error that ``node`` is more than can be understood without running it."""


class Jump(Exception):  # noqa: N818 - no error, but how a function or a round of a loop ends
    pass


class Return(Jump):
    def __init__(self, value: object) -> None:
        self.value = value


class Break(Jump):
    pass


class Continue(Jump):
    pass
