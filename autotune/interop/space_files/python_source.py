"""What a Python source that is not run and the scopes in it share: functions, jumps, the names outside."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from autotune.errors import InputError
from autotune.interop.space_files.python_slice import Changes

Scope = MutableMapping[str, Any]

Call = Callable[[ast.Call, list[Any], dict[str, Any]], Any]
"""Takes the node of a call, and the values of its arguments by position and by name."""

Known = Callable[[], Any]
"""Gives what stands for a value that only running the source tells."""


FOREIGN = object()
"""Stands for what is imported from where nothing is read."""


@dataclass(frozen=True, eq=False)
class Opened:
    """A module of the source's package."""

    member: Callable[[str], Any]
    """What a name of it stands for: a value, an :class:`InputError` or :data:`FOREIGN`."""


@dataclass(frozen=True)
class Closure:
    """A function of the source, with what was assigned around it."""

    function: ast.FunctionDef | ast.Lambda
    scope: Scope
    defaults: Scope
    """What its arguments are where a call does not say; an :class:`InputError` is not understood."""
    source: Source = field(repr=False)
    """Whose names it uses."""


class Others(Protocol):
    """The other files of a source's package."""

    def changes(self, file: str, statements: Sequence[ast.stmt]) -> Changes:
        """The changes that ``statements`` of ``file`` make, also of what it imports from them."""

    def begin(self, file: str, nodes: Sequence[ast.AST]) -> None:
        """What ``nodes`` of ``file`` mention of them is going to be asked for; what was, is forgotten."""

    def imported(self, file: str, statement: ast.stmt, alias: ast.alias) -> Any:
        """What a name stands for that ``file`` imports; as :attr:`Opened.member`."""


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

    def brought(self, statement: ast.stmt, alias: ast.alias) -> Any:
        """What a name of an import stands for; as :attr:`Opened.member`."""

    def understood(self, name: str) -> Any:
        """What a name of the module stands for; ``None`` where that is not understood."""

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

    def not_understood(self, node: ast.AST, why: str = "", expected: str = ...) -> InputError:
        """The error that ``node`` is more than can be understood without running it.

        ``expected``: what would be understood there, by default what a value is made of.
        """


class Jump(Exception):  # noqa: N818 - no error, but how a function or a round of a loop ends
    pass


class Return(Jump):
    def __init__(self, value: object) -> None:
        self.value = value


class Break(Jump):
    pass


class Continue(Jump):
    pass
