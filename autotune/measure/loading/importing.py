"""Importing the Python code that ``objective:`` names.

A path target (``objectives/gemm_c.py:Gemm``) becomes a module whose name follows from the path alone, so
that what one process pickles of it another can unpickle once it has loaded the same target.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any

from autotune.errors import InputError, Location, Problem, nearest
from autotune.measure.diagnostics import text_of
from autotune.measure.kernels.compile_cache import write_whole
from autotune.measure.loading.target import EXAMPLE, absolute, is_path, split_target, target_file
from autotune.provenance.code.files import is_file
from autotune.space.spec import PythonObjective

_IMPORTED: ContextVar[Path | None] = ContextVar("autotune_imported", default=None)
"""The file of the objective that is being imported, if one is."""


def refuse_while_imported() -> None:
    """Raise :class:`InputError` where the caller is code that runs as an objective is imported.

    A search there would have workers of its own, which import the same file, and so on without an end.
    """
    if (file := _IMPORTED.get()) is not None:
        message = (
            f"a search begins whenever {file.name} is imported, which each worker of a search does: put that"
            " call below  if __name__ == '__main__':  or into another file"
        )
        raise InputError(Problem(message))


def keep_importable(spec: PythonObjective, scratch: Path) -> None:
    """Let the objective import what lies beside it at any time, in a process that runs nothing else.

    The same holds for the Python processes that it starts with :mod:`multiprocessing`. They look for its
    functions by the name of their module. Where the target is a file, that name is ours, and a module of this
    name which runs the file is written to ``scratch``.
    """
    sys.path.insert(0, str(_import_folder(spec)))
    sys.dont_write_bytecode = True
    if is_path(split_target(spec)[0]):
        file = target_file(spec)
        same = f"__file__ = {str(file)!r}\nexec(compile(open(__file__, 'rb').read(), __file__, 'exec'))\n"
        with suppress(OSError):  # on a full disk only such processes will fail
            scratch.mkdir(parents=True, exist_ok=True)
            write_whole(scratch / f"{_module_name(file)}.py", same.encode())
        sys.path.append(str(scratch))


def load_target(spec: PythonObjective) -> Any:
    """Import the class or function that ``spec`` names. Raises :class:`InputError` where that fails."""
    place, name = split_target(spec)
    file = target_file(spec)
    with _importable(_import_folder(spec)), _noted(file):
        module = _import_file(file) if is_path(place) else _import_module(place, file)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = _candidates(found)
            expected = ", ".join(known) or "the name of a class or function in it"
            raise InputError(
                Problem(f"{file.name} has no {part!r}", Location(str(file)), expected, nearest(part, known))
            )
        found = getattr(found, part)
    return found


def _import_folder(spec: PythonObjective) -> Path:
    return absolute(target_file(spec).parent if is_path(split_target(spec)[0]) else spec.base)


def _module_name(file: Path) -> str:
    return f"autotune_objective_{file.stem}_{hashlib.sha256(os.fsencode(file)).hexdigest()[:8]}"


def _import_file(file: Path) -> ModuleType:
    name = _module_name(file)
    loader = importlib.util.spec_from_file_location(name, file)
    if loader is None or loader.loader is None:
        raise InputError(Problem(f"{file} is no Python file", expected=EXAMPLE))
    module = importlib.util.module_from_spec(loader)
    before = sys.modules.get(name)
    sys.modules[name] = module  # dataclasses and pickle look a class's module up while it is made
    try:
        with _said_clearly(file):
            loader.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
        raise
    return module


def _import_module(name: str, file: Path) -> ModuleType:
    with _said_clearly(file):
        return importlib.import_module(name)


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Inside, modules beside the objective can be imported."""
    entry = str(folder)
    sys.path.insert(0, entry)
    # Python takes the compiled code beside a file for current by the size and the second of the file, which
    # is not enough for an objective that is edited during a search: so none is written.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
        with suppress(ValueError):  # the objective may have removed it from the path itself
            sys.path.remove(entry)


@contextmanager
def _noted(file: Path) -> Iterator[None]:
    before = _IMPORTED.set(file)
    try:
        yield
    finally:
        _IMPORTED.reset(before)


@contextmanager
def _said_clearly(file: Path) -> Iterator[None]:
    """An error in the objective's module becomes an :class:`InputError` with its place."""
    try:
        yield
    except SyntaxError as error:
        where = Location(error.filename or str(file), error.lineno or 0, error.offset or 0)
        raise InputError(Problem(f"{error.msg}: {(error.text or '').strip()}", where)) from error
    except ModuleNotFoundError as error:
        where = line_in(error, file) or Location(str(file))
        hint = "install it in the environment that autotune runs in"
        raise InputError(
            Problem(f"the objective needs the module {error.name!r}", where, hint=hint)
        ) from error
    except (Exception, SystemExit) as error:
        where = line_in(error, file) or Location(str(file))
        message = f"{type(error).__name__} on import: {text_of(error)}"
        raise InputError(Problem(message, where, hint=_package_hint(error, file))) from error


def _package_hint(error: BaseException, file: Path) -> str:
    """What to do where a relative import fails, since a file is loaded as a module outside any package."""
    if not isinstance(error, ImportError) or "no known parent package" not in text_of(error):
        return ""
    folder = file.absolute().parent
    names = [folder.name, file.stem]
    while is_file(folder.parent / "__init__.py"):
        folder = folder.parent
        names.insert(0, folder.name)
    return f"name it as a module of its package, {'.'.join(names)}:NAME"


def line_in(error: BaseException, file: Path) -> Location | None:
    """The last line of ``file`` that the error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == file]
    return Location(str(file), lines[-1] or 0) if lines else None


def _candidates(module: object) -> list[str]:
    """The classes and functions that a module itself defines."""
    own = getattr(module, "__name__", "")
    return [
        name
        for name, value in vars(module).items()
        if (inspect.isclass(value) or inspect.isroutine(value)) and value.__module__ == own and name[0] != "_"
    ]
