"""Which files an objective is made of, so that its source can be frozen. Found without running it."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterable
from pathlib import Path

from autotune.provenance.code import local_imports
from autotune.space.spec import CommandObjective, ObjectiveSpec, PythonObjective, ReplayObjective


def source_files(objective: ObjectiveSpec) -> tuple[Path, ...]:
    """The objective's own files, without repeats: what it is written in, and what that imports nearby."""
    match objective:
        case PythonObjective():
            found = _of_python(objective)
        case CommandObjective():
            found = _of_command(objective)
        case ReplayObjective():
            found = [objective.file]
    return tuple(dict.fromkeys(path.resolve() for path in found))


def split_target(target: str) -> tuple[str, str]:
    """``("path.py", "Name")`` or ``("package.module", "Name")``; the name is empty where there is none."""
    place, _, name = target.rpartition(":")
    return (place, name) if place else (name, "")


def python_file(objective: PythonObjective) -> Path | None:
    """The file that the target is defined in; ``None`` where there is no such module."""
    place, _ = split_target(objective.target)
    if place.endswith(".py"):
        return objective.base / place
    try:
        module = importlib.util.find_spec(place)
    except (ImportError, ValueError):
        return None
    return Path(module.origin) if module and module.origin else None


def _of_python(objective: PythonObjective) -> list[Path]:
    file = python_file(objective)
    if file is None or not file.is_file():
        return [file] if file else []
    _, name = split_target(objective.target)
    declared = [file.parent / source for source in declared_sources(file, name)]
    return [file, *declared, *local_imports(file)]


def declared_sources(file: Path, class_name: str) -> tuple[str, ...]:
    """The literal texts in the ``sources`` of a class, read from its text."""
    try:
        tree = ast.parse(file.read_text())
    except (OSError, SyntaxError, ValueError):
        return ()  # whoever loads the objective says what is wrong with it
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            return tuple(_literal_sources(node.body))
    return ()


def _literal_sources(body: Iterable[ast.stmt]) -> list[str]:
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="sources")], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id="sources"), value=ast.expr() as value):
                pass
            case _:
                continue
        return [n.value for n in ast.walk(value) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    return []


def _of_command(objective: CommandObjective) -> list[Path]:
    """The words of its command lines that name a file of its folder."""
    words = [*objective.arguments, *objective.prepare, *objective.check]
    paths = [objective.base / word for word in words if "{" not in word and not word.startswith("-")]
    inside = objective.base.resolve()
    return [path for path in paths if path.is_file() and path.resolve().is_relative_to(inside)]
