"""Finding what ``objective:`` names, without running any of it."""

from __future__ import annotations

import sys
from pathlib import Path

from autotune.errors import InputError, Problem, nearest
from autotune.paths import expanded
from autotune.provenance.code.files import is_file, is_folder
from autotune.space.spec import PythonObjective

EXAMPLE = "path/to/file.py:Name or package.module:Name"


def target_file(spec: PythonObjective) -> Path:
    """The file of a target, without running any of it; :class:`InputError` where there is none."""
    place, _ = split_target(spec)
    if is_path(place):
        file = absolute(spec.base / place)
        if not is_file(file):
            beside = [p.name for p in file.parent.glob("*.py")] if is_folder(file.parent) else []
            hint = nearest(file.name, beside) or f"a relative path starts from {absolute(spec.base)}"
            raise InputError(Problem(f"there is no objective file {file}", spec.where, hint=hint))
        return file
    parts = place.split(".")
    for folder in (str(spec.base), *sys.path):
        stem = Path(folder or ".").joinpath(*parts)
        for file in (stem.with_suffix(".py"), stem / "__init__.py"):
            if is_file(file):
                return absolute(file)
    hint = f"looked in {absolute(spec.base)} and on Python's path; a file is written as {place}.py:NAME"
    raise InputError(Problem(f"there is no Python module {place!r}", spec.where, EXAMPLE, hint))


def split_target(spec: PythonObjective) -> tuple[str, str]:
    """Place and name of a target: ``("objectives/gemm_c.py", "Gemm")``."""
    place, colon, name = spec.target.rpartition(":")
    if not colon or not place or not all(part.isidentifier() for part in name.split(".")):
        hint = "" if colon else f"say which: {spec.target}:NAME"
        raise InputError(Problem(f"{spec.target!r} does not name an objective", expected=EXAMPLE, hint=hint))
    return place, name


def is_path(place: str) -> bool:
    """Whether a place is written as a file, not as a module."""
    return place.endswith(".py") or "/" in place


def absolute(path: Path) -> Path:
    """An absolute path without links, so that one file has one name."""
    return expanded(path).absolute().resolve()
