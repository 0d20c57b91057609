"""What a callable is that a program gives to be measured, so that another one is not taken for it."""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from autotune.space.spec import CallableObjective

PLAIN = (bool, int, float, complex, str, bytes, type(None))
DEEPEST = 5
"""Functions within functions that are looked into."""
_NOTHING = object()


def describe_callable(given: Any) -> CallableObjective:
    """The identity of a class, an instance or a function.

    It is its source (of a class also that of the classes that it inherits from, but for installed ones; of a
    decorated function also that of the decorators), with the numbers and texts that are bound to it:
    defaults, what it encloses, the arguments of a :class:`functools.partial`, those of its constructor that
    an instance keeps under their names. A lambda, of which the source is only known with the line around it,
    counts by what Python made of it. Not seen are other state of instances, which may change in use, lists
    and the like, and what is global.
    """
    kind = _kind(given)
    digest = hashlib.sha256("\n".join(_facts(given, DEEPEST)).encode()).hexdigest()[:16]
    return CallableObjective(f"{kind.__module__}:{kind.__qualname__}", digest, _file(kind))


def _kind(given: Any) -> Any:
    """The function or class behind it."""
    while isinstance(given, functools.partial):
        given = given.func
    if inspect.ismethod(given):
        given = given.__func__
    return given if isinstance(given, type | FunctionType) else type(given)


def _file(kind: Any) -> Path | None:
    try:
        name = inspect.getsourcefile(kind)
    except (OSError, TypeError):  # a class that was typed in, or what is built in
        return None
    return Path(name) if name and Path(name).is_file() else None


def _facts(given: Any, deep: int) -> Iterator[str]:
    """What makes it what it is, in an order that is always the same."""
    if isinstance(given, PLAIN):
        yield repr(given)
    elif isinstance(given, tuple):
        for value in given:
            yield from _facts(value, deep)
    elif isinstance(given, functools.partial):
        yield from _facts((given.args, tuple(given.keywords.items()), given.func), deep)
    elif callable(given) and deep:
        kind = _kind(given)
        yield _text(kind)
        yield from map(_text, _own_bases(kind))
        yield from _facts(_arguments(given), deep - 1)
        if isinstance(kind, FunctionType):
            cells = tuple(_enclosed(cell) for cell in kind.__closure__ or ())
            named = tuple((kind.__kwdefaults__ or {}).items())
            yield from _facts((kind.__defaults__ or (), named, cells), deep - 1)
        elif hasattr(given, "__wrapped__"):  # what functools.cache and its kind make
            yield from _facts(given.__wrapped__, deep - 1)
    else:
        yield type(given).__qualname__


def _arguments(given: Any) -> tuple[tuple[str, Any], ...]:
    """What the constructor of an instance was given, by name: ``self.size`` or ``self._size`` of ``size``."""
    instance = getattr(given, "__self__", given)
    if isinstance(instance, type | FunctionType):
        return ()
    try:
        names = inspect.signature(type(instance)).parameters
    except (TypeError, ValueError):  # of C, or made so that nobody can tell
        return ()
    kept = ((name, _attribute(instance, key)) for name in names for key in (name, f"_{name}"))
    return tuple((name, value) for name, value in kept if value is not _NOTHING)


def _attribute(instance: Any, name: str) -> Any:
    """As it is kept, without running anything of the class's."""
    kept = inspect.getattr_static(instance, name, _NOTHING)
    return getattr(instance, name, _NOTHING) if inspect.ismemberdescriptor(kept) else kept


def _enclosed(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet known
        return None


def _text(kind: Any) -> str:
    """Its source; what Python made of it where there is none, or only that of the line around it."""
    # By its code: of a function that stands around another one, Python would give the inner one's.
    whose = getattr(kind, "__code__", kind)
    # From Python 3.13 on what is executed as a text is taken for a part of what ``python -c`` was given.
    from_a_text = getattr(whose, "co_filename", "") == "<string>"
    if getattr(kind, "__name__", "") != "<lambda>" and not from_a_text:
        try:
            return textwrap.dedent(inspect.getsource(whose))
        except (OSError, TypeError):  # typed in, or not of Python
            pass
    members = {"": kind} if isinstance(kind, FunctionType) else vars(kind)
    made = [(name, _code(m.__code__)) for name, m in sorted(members.items()) if isinstance(m, FunctionType)]
    return repr(made) if made else f"{kind.__module__}:{kind.__qualname__}"


def _own_bases(kind: Any) -> Iterator[type]:
    """The classes that ``kind`` inherits from: none of ours, of Python's or of an installed package."""
    for base in kind.__mro__[1:] if isinstance(kind, type) else ():
        file = getattr(sys.modules.get(base.__module__), "__file__", None) or ""
        installed = {"site-packages", "dist-packages"} & set(Path(file).parts)
        if base.__module__.partition(".")[0] not in _NOT_OWN and not installed:
            yield base


_NOT_OWN = sys.stdlib_module_names | {"autotune"}


def _code(code: CodeType) -> tuple[object, ...]:
    constants = [
        _code(value) if isinstance(value, CodeType) else _in_order(value) for value in code.co_consts
    ]
    return code.co_code, tuple(constants), code.co_names, code.co_varnames


def _in_order(value: object) -> str:
    """As text; a set in an order that does not depend on the process."""
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)
