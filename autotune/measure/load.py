"""From what a space file says to an objective that can be run.

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
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from autotune.errors import InputError, Location, Problem, nearest
from autotune.measure.facts import require_known
from autotune.measure.function import FunctionObjective
from autotune.measure.objective import Context, Objective, Signal
from autotune.measure.target import EXAMPLE, absolute, is_path, split_target, target_file
from autotune.space.spec import (
    GIVEN,
    CallableObjective,
    CommandObjective,
    MetricSpec,
    ObjectiveSpec,
    PythonObjective,
    ReplayObjective,
)


def load_objective(
    spec: ObjectiveSpec,
    context: Context,
    metrics: Sequence[MetricSpec] = (),
    knobs: Collection[str] = (),
) -> Objective:
    """The objective that ``spec`` describes, in this process.

    ``knobs`` are the names that a function's parameters must fit; empty: not verified. Raises
    :class:`InputError` for whatever is wrong with it: no such file or name, an error in it, a type that
    is no objective, an ``__init__`` that raises.
    """
    match spec:
        case PythonObjective():
            return make_objective(load_target(spec), context, knobs, _location(spec))
        case CommandObjective():
            from autotune.measure.command import CommandRunner

            return CommandRunner(spec, context, tuple(metrics))
        case _ if spec == GIVEN:
            raise InputError(Problem("the study has no objective", None, "search(..., objective=...)"))
        case CallableObjective():
            raise InputError(Problem(f"{spec.name} was given by a program, and only that can measure it"))
        case ReplayObjective():
            from autotune.measure.read_recording import read_recording
            from autotune.measure.replay import ReplayedObjective

            recording = read_recording(spec.file)
            if not metrics:
                return ReplayedObjective(recording, context=context)
            return ReplayedObjective(recording, tuple(metrics), context=context)


def make_objective(
    found: Any, context: Context, knobs: Collection[str] = (), where: Location | None = None
) -> Objective:
    """An objective from a class, an instance or a function; :class:`InputError` where it is neither."""
    if isinstance(found, Objective):
        found.context = context  # of this search: it may have none, or that of an earlier one
        return found
    if isinstance(found, type) and issubclass(found, Objective):
        if found.measure is Objective.measure:
            raise InputError(Problem(f"{found.__name__} does not define measure()", where))
        if problems := list(_uncallable(found)):
            raise InputError(problems)
        return _construct(found, context, where)
    if callable(found) and not isinstance(found, type):
        wrapped = FunctionObjective(context, found, knobs)
        if problems := wrapped.problems(knobs):
            raise InputError([Problem(p.message, where, p.expected, p.hint) for p in problems])
        return wrapped
    what = f"the class {found.__name__}" if isinstance(found, type) else f"{found!r:.60}"
    expected = "a subclass of autotune.Objective, or a function of the knobs"
    raise InputError(Problem(f"{what} is no objective", where, expected))


def _uncallable(kind: type[Objective]) -> Iterator[Problem]:
    """The methods of ``kind`` that do not take what they will be called with.

    Each call would fail, and in our frame: nothing would show that no configuration can mend it.
    """
    for name in dict.fromkeys(name for base in kind.__mro__ for name in vars(base) if name[0] != "_"):
        found = [vars(base)[name] for base in kind.__mro__ if name in vars(base)]
        ours = next((one for one in found if getattr(one, "__module__", "").startswith("autotune.")), None)
        if not isinstance(ours, FunctionType) or not isinstance(found[0], FunctionType):
            continue
        expected = inspect.signature(ours)
        needed = [p.name for p in expected.parameters.values() if p.default is p.empty]
        given = inspect.signature(found[0], follow_wrapped=False)
        try:
            given.bind(*needed)
        except TypeError:
            where = Location(found[0].__code__.co_filename, found[0].__code__.co_firstlineno)
            takes = f"{kind.__name__}.{name}{_without_types(given)} does not take what it is called with"
            yield Problem(takes, where, f"def {name}{_without_types(expected)}")


def _without_types(signature: inspect.Signature) -> str:
    bare = [
        parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def _construct(kind: type[Objective], context: Context, where: Location | None) -> Objective:
    if kind.workload_facts is not None:
        require_known([name for name in context.workload if name not in context.ruled], kind.workload_facts)
    try:
        made = kind(context)
    except InputError:
        raise
    except Signal as refusal:
        raise InputError(Problem(f"{kind.__name__} refuses this workload: {refusal}", where)) from refusal
    except Exception as error:
        at = _in_file(error, Path(where.file)) if where else None
        hint = "the workload has no such entry" if isinstance(error, KeyError) else ""
        message = f"{kind.__name__}() cannot be made: {type(error).__name__}: {error}"
        raise InputError(Problem(message, at or where, hint=hint)) from error
    made.context = context  # where its __init__ has not called ours
    return made


# -- finding and importing ---------------------------------------------------------------------


def load_target(spec: PythonObjective) -> Any:
    """Import the class or function that ``spec`` names. Raises :class:`InputError` where that fails."""
    place, name = split_target(spec)
    file = target_file(spec)
    with _importable(file.parent if is_path(place) else spec.base):
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


def _import_file(file: Path) -> ModuleType:
    name = f"autotune_objective_{file.stem}_{hashlib.sha256(os.fsencode(file)).hexdigest()[:8]}"
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
    """Modules beside the objective can be imported while it is."""
    entry = str(absolute(folder))
    sys.path.insert(0, entry)
    # Compiled code beside a file counts as current by its size and its second. Of an objective that is edited
    # while it is searched, that is no proof: none is left behind for the next import to take.
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before
        sys.path.remove(entry)


@contextmanager
def _said_clearly(file: Path) -> Iterator[None]:
    """An error in the objective's module becomes an :class:`InputError` with its place."""
    try:
        yield
    except SyntaxError as error:
        where = Location(error.filename or str(file), error.lineno or 0, error.offset or 0)
        raise InputError(Problem(f"{error.msg}: {(error.text or '').strip()}", where)) from error
    except ModuleNotFoundError as error:
        where = _in_file(error, file) or Location(str(file))
        hint = "install it in the environment that autotune runs in"
        raise InputError(
            Problem(f"the objective needs the module {error.name!r}", where, hint=hint)
        ) from error
    except (Exception, SystemExit) as error:
        where = _in_file(error, file) or Location(str(file))
        raise InputError(Problem(f"{type(error).__name__} on import: {error}", where)) from error


def _in_file(error: BaseException, file: Path) -> Location | None:
    """The last line of ``file`` that the error went through."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == file]
    return Location(str(file), lines[-1] or 0) if lines else None


def _location(spec: PythonObjective) -> Location:
    return Location(str(target_file(spec)))


def _candidates(module: object) -> list[str]:
    """The classes and functions that a module itself defines."""
    own = getattr(module, "__name__", "")
    return [
        name
        for name, value in vars(module).items()
        if (inspect.isclass(value) or inspect.isroutine(value)) and value.__module__ == own and name[0] != "_"
    ]
