"""The identity of a callable that a program passes as its objective, to tell it from a changed one."""

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

from autotune.measure.loading.surroundings import read_around
from autotune.space.spec import CallableObjective

PLAIN = (bool, int, float, complex, str, bytes, type(None))
DEEPEST = 5
"""How many levels of functions within functions are looked into."""
_NOTHING = object()


def describe_callable(given: Any) -> CallableObjective:
    """The identity of a class, an instance or a function.

    It is made of the source (for a class also that of its base classes, except installed ones; for a
    decorated function also that of the decorators) and of the numbers and texts that are bound to it:
    defaults, enclosed variables, the arguments of a :class:`functools.partial`, and those arguments of its
    constructor that an instance keeps under their names. A lambda is identified by its bytecode, since its
    source is only known together with the line around it.

    Where it was typed in, as into a notebook, the global functions, classes, numbers and texts that it reads
    count too, as the rest of the file does elsewhere. Not covered are other global variables, lists and the
    like, and other state of instances, which may change in use.
    """
    kind, facts = _kind(given), [*_facts(given, DEEPEST)]
    if _file(inspect.unwrap(kind)) is None:
        facts += _around(kind)
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    return CallableObjective(f"{kind.__module__}:{kind.__qualname__}", digest, _file(kind))


def _around(kind: Any) -> Iterator[str]:
    for name, value in read_around([kind, *_own_bases(kind)]).items():
        own = callable(value) and _kind(inspect.unwrap(value)).__module__ == kind.__module__
        if own or isinstance(value, (*PLAIN, tuple)):
            yield name
            yield from _facts(value, DEEPEST)


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
    """Everything that its identity is made of, always in the same order."""
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
    """The constructor's arguments that an instance keeps: for ``size`` in ``self.size`` or ``self._size``."""
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
    """The attribute as it is kept, without running code of the class."""
    kept = inspect.getattr_static(instance, name, _NOTHING)
    return getattr(instance, name, _NOTHING) if inspect.ismemberdescriptor(kept) else kept


def _enclosed(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet known
        return None


def _text(kind: Any) -> str:
    """Its source; its bytecode where there is no source, or only that of the line around it."""
    # By its code object: for a function that wraps another, Python would give the source of the inner one.
    whose = getattr(kind, "__code__", kind)
    # From Python 3.13 on, code that is executed from a text would get the source of ``python -c``.
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
    """The base classes of ``kind``, without those of autotune, of Python and of installed packages."""
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
