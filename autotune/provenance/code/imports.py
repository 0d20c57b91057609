"""Which files of its own tree a Python file imports: found by reading, without running any of it."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from autotune.provenance.code.files import is_file, is_folder

_LIMIT = 500
_ROOT_MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_SELF = __name__.partition(".")[0]
"""This package itself is known by its version, and no part of anybody's objective."""


def local_imports(path: Path | str) -> tuple[Path, ...]:
    """The files below the same project that ``path`` imports, directly or not, sorted; without itself.

    Modules are looked for beside the file, and in the folders above it up to the root of its project
    (the nearest folder with ``.git`` or ``pyproject.toml``) and the folder ``src`` in that, where an editable
    install has its packages. Other installed packages, the standard library and names that are only computed
    while running are not followed; nor is this package.
    """
    first = Path(path).absolute()
    found: set[Path] = set()
    waiting = [first]
    while waiting and len(found) < _LIMIT:
        file = waiting.pop()
        for imported in _imports(file):
            if imported != first and imported not in found:
                found.add(imported)
                waiting.append(imported)
    return tuple(sorted(found))


def parsed(source: bytes) -> ast.Module:
    """The tree of a Python source; an empty one where it cannot be parsed, which shows once it is run."""
    try:
        with warnings.catch_warnings():  # about "\d" and the like, which are the user's own business
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _imports(file: Path) -> Iterator[Path]:
    try:
        tree = parsed(file.read_bytes())
    except OSError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from module_files(file, 0, alias.name.split("."), ())
        elif isinstance(node, ast.ImportFrom):
            module = node.module.split(".") if node.module else []
            yield from module_files(file, node.level, module, tuple(alias.name for alias in node.names))


def module_files(file: Path, level: int, module: list[str], names: tuple[str, ...]) -> Iterator[Path]:
    """The files behind ``from LEVEL.MODULE import NAMES``: the module, its packages, and submodules."""
    for root in _roots(file, level, module[0] if module else ""):
        files = _files_below(root, module, names)
        if level and is_file(root / "__init__.py"):
            files.append(root / "__init__.py")  # importing a module runs its package first
        if files:
            yield from files
            return


def _files_below(root: Path, module: list[str], names: tuple[str, ...]) -> list[Path]:
    """As :func:`module_files`, but only in the folder ``root``; empty where that lacks the module."""
    folder, files = root, []
    for number, part in enumerate(module, 1):
        package, plain = folder / part / "__init__.py", folder / f"{part}.py"
        if is_file(package):
            files.append(package)
        elif is_file(plain):
            return [*files, plain]
        elif not is_folder(folder / part) or (number == len(module) and not names):
            return files  # of a compiled module those of its packages, which run before it
        folder /= part
    submodules = (folder / name / "__init__.py" for name in names), (folder / f"{name}.py" for name in names)
    return files + [one for kind in submodules for one in kind if is_file(one)]


def _roots(file: Path, level: int, top: str) -> list[Path]:
    """The folders in which to look for the first name, nearest first."""
    if level:
        parents = file.parents
        return [parents[level - 1]] if level <= len(parents) else []
    if top == _SELF:
        return []
    # A file beside a script hides even the standard library; one further up does not.
    return [file.parent] if top in sys.stdlib_module_names else _ancestors(file)


def _ancestors(file: Path) -> list[Path]:
    folders = list(file.parents)
    for number, folder in enumerate(folders):
        if folder.name in ("site-packages", "dist-packages"):
            return folders[:number]
        if any((folder / mark).exists() for mark in _ROOT_MARKS):
            return [*folders[: number + 1], folder / "src"]
    # No project: only the packages that the file lies in, and the folder that holds them.
    number = 0
    while number + 1 < len(folders) and is_file(folders[number] / "__init__.py"):
        number += 1
    return folders[: number + 1]
