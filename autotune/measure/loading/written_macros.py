"""Whether a space has the knobs that set a C kernel's macros, read from its text: nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import replace

from autotune.errors import InputError, Location
from autotune.measure.loading.target import target_file
from autotune.measure.loading.target_name import written
from autotune.measure.macros import macro_problems
from autotune.space.spec import PythonObjective

BASE = "CompiledC"
"""The class whose subclasses search refuses where a macro's knob is missing."""


def require_macros(spec: PythonObjective, knobs: Collection[str]) -> None:
    """Raises :class:`InputError` where the target surely is a kernel in C with a macro of an unknown knob.

    The problems are those of :meth:`CompiledC.knob_problems`, which a search finds once it has loaded it.
    """
    kind = written(spec)
    if not isinstance(kind, ast.ClassDef) or not _is_compiled(kind):
        return
    where = Location(str(target_file(spec)), kind.lineno)
    if problems := macro_problems(kind.name, _macros(kind), knobs, "its source"):
        raise InputError([replace(problem, where=where) for problem in problems])


def _is_compiled(kind: ast.ClassDef) -> bool:
    """Whether it is a subclass that has not changed what is asked for."""
    changed = any(isinstance(node, ast.FunctionDef) and node.name == "knob_problems" for node in kind.body)
    bases = [base.attr if isinstance(base, ast.Attribute) else ast.unparse(base) for base in kind.bases]
    return bases == [BASE] and not kind.keywords and not changed


def _macros(kind: ast.ClassDef) -> Mapping[str, str]:
    """As the class writes them out; none where it does anything else."""
    values = [node.value for node in kind.body if "macros" in _set_by(node) and isinstance(node, _SETS)]
    try:
        [found] = [ast.literal_eval(value) for value in values if value is not None]
    except ValueError:
        return {}
    return found if isinstance(found, dict) and all(isinstance(name, str) for name in found) else {}


_SETS = ast.Assign | ast.AnnAssign


def _set_by(node: ast.stmt) -> list[str]:
    """The names that stand on the left."""
    match node:
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
    return []
