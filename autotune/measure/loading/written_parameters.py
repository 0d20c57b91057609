"""Whether a function takes the knobs of a space, read from its text: nothing of its file is run."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from types import FunctionType
from typing import Any

from autotune.errors import InputError, Location
from autotune.measure.loading.function import FunctionObjective
from autotune.measure.loading.target import target_file
from autotune.measure.loading.target_name import written
from autotune.measure.objective import Context
from autotune.space.spec import PythonObjective


def require_parameters(
    spec: PythonObjective,
    workload: Mapping[str, Any],
    knobs: Collection[str],
    conditional: Collection[str] = (),
) -> None:
    """Raises :class:`InputError` where the target is certainly a function that does not fit the knobs.

    The problems are those of :meth:`FunctionObjective.problems`, which a search would find once it loads the
    function, and those of :meth:`FunctionObjective.without_default`, which the first trial without the knob
    would find.
    """
    function = written(spec)
    if not isinstance(function, ast.FunctionDef):
        return
    objective = FunctionObjective(Context(workload, {}, Path()), _stand_in(function), knobs)
    where = Location(str(target_file(spec)), function.lineno)
    if problems := [*objective.problems(knobs), *objective.without_default(conditional)]:
        raise InputError([replace(problem, where=where) for problem in problems])


def _stand_in(function: ast.FunctionDef) -> FunctionType:
    """A function with the same name and parameters that does nothing. Defaults are not evaluated."""
    takes = copy.deepcopy(function.args)
    for parameter in (*takes.posonlyargs, *takes.args, *takes.kwonlyargs, takes.vararg, takes.kwarg):
        if parameter is not None:
            parameter.annotation = None
    takes.defaults = [ast.Constant(None) for _ in takes.defaults]
    takes.kw_defaults = [default and ast.Constant(None) for default in takes.kw_defaults]
    nothing = ast.fix_missing_locations(ast.Expression(ast.Lambda(takes, ast.Constant(None))))
    made: FunctionType = eval(compile(nothing, function.name, "eval"))
    made.__name__ = function.name
    return made
