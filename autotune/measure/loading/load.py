"""From what a space file says to an objective that can be run."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

from autotune.errors import InputError, Location, Problem
from autotune.measure.diagnostics import text_of
from autotune.measure.loading.facts import require_known
from autotune.measure.loading.function import FunctionObjective
from autotune.measure.loading.importing import line_in, load_target
from autotune.measure.loading.target import target_file
from autotune.measure.objective import Context, Lost, Objective, Signal
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
            return make_objective(load_target(spec), context, knobs, Location(str(target_file(spec))))
        case CommandObjective():
            from autotune.measure.commands.command import CommandRunner

            return CommandRunner(spec, context, tuple(metrics))
        case _ if spec == GIVEN:
            raise InputError(Problem("the study has no objective", None, "search(..., objective=...)"))
        case CallableObjective():
            raise InputError(Problem(f"{spec.name} was given by a program, and only that can measure it"))
        case ReplayObjective():
            raise TypeError("a replay is served in the session's own process: see ReplayedObjective.of")


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
        _require_numbers(found.measure, where)
        made = _construct(found, context, where)
        if knobs and (problems := made.knob_problems(knobs)):
            raise InputError([replace(problem, where=problem.where or where) for problem in problems])
        return made
    if callable(found) and not isinstance(found, type):
        _require_numbers(found, where)
        wrapped = FunctionObjective(context, found, knobs)
        if problems := wrapped.problems(knobs):
            raise InputError([Problem(p.message, where, p.expected, p.hint) for p in problems])
        return wrapped
    what = f"the class {found.__name__}" if isinstance(found, type) else f"{found!r:.60}"
    expected = "a subclass of autotune.Objective, or a function of the knobs"
    raise InputError(Problem(f"{what} is no objective", where, expected))


def _require_numbers(function: Any, where: Location | None) -> None:
    """Raise :class:`InputError` for a generator or coroutine: calling it runs nothing and gives no number."""
    for called in (function, inspect.getattr_static(type(function), "__call__", None)):
        made = "a coroutine" if inspect.iscoroutinefunction(called) else ""
        if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
            made = "a generator"
        if made:
            name = getattr(function, "__name__", type(function).__name__)
            hint = "run it inside: return asyncio.run(...), or next(...)"
            raise InputError(Problem(f"{name}() makes {made}, which measures nothing", where, hint=hint))


def _uncallable(kind: type[Objective]) -> Iterator[Problem]:
    """The methods of ``kind`` that do not take what they will be called with.

    Each call would fail in a frame of ours, and nothing would show that every configuration must fail.
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
    except Lost as lost:
        message = f"{kind.__name__}() cannot be made for now: {text_of(lost)}"
        hint = "search again when it can: what was measured is in the store"
        raise InputError(Problem(message, where, hint=hint)) from lost
    except Signal as refusal:
        raise InputError(
            Problem(f"{kind.__name__} refuses this workload: {text_of(refusal)}", where)
        ) from refusal
    except Exception as error:
        at = line_in(error, Path(where.file)) if where else None
        hint = "the workload has no such entry" if isinstance(error, KeyError) else ""
        message = f"{kind.__name__}() cannot be made: {type(error).__name__}: {text_of(error)}"
        raise InputError(Problem(message, at or where, hint=hint)) from error
    made.context = context  # where its __init__ has not called ours
    return made
