"""What code that was typed in, as into a notebook, reads of what was typed in around it."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

_READS = frozenset({"LOAD_GLOBAL", "LOAD_NAME"})
_WRITES = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})


def read_around(kinds: list[Any]) -> dict[str, Any]:
    """The global variables that some functions and classes of one module read, and those that the functions
    and classes among these read in turn, by name.

    Without what this code itself assigns, such as a counter: that is its state.
    """
    module, waiting = kinds[0].__module__, list(kinds)
    read: dict[str, Any] = {}
    assigned: set[str] = set()
    while waiting:
        for function in _functions(waiting.pop()):
            for name, is_read in _globals_in(function.__code__):
                if not is_read:
                    assigned.add(name)
                elif name not in read and name in function.__globals__:
                    value = read[name] = function.__globals__[name]
                    inner = inspect.unwrap(value) if callable(value) else value
                    if getattr(inner, "__module__", "") == module and isinstance(inner, type | FunctionType):
                        waiting.append(inner)
    return {name: read[name] for name in sorted(read) if name not in assigned}


def _functions(kind: Any) -> Iterator[FunctionType]:
    members = vars(kind).values() if isinstance(kind, type) else (kind,)
    for member in members:
        inner = getattr(member, "fget", None) or getattr(member, "__func__", None) or member
        if isinstance(inner, FunctionType):
            yield inner
            if (decorated := inspect.unwrap(inner)) is not inner and isinstance(decorated, FunctionType):
                yield decorated


def _globals_in(code: CodeType) -> Iterator[tuple[str, bool]]:
    """The names of global variables in code and the functions within it, and whether each is read there."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in _READS | _WRITES:
            yield instruction.argval, instruction.opname in _READS
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals_in(inner)
