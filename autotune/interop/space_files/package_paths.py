"""Which file an import of a Python source means, where that is sure without running anything.

Followed are imports within the source's own top-level package, or within its folder if that is no package.
Where a module is found there depends on nothing but where the files lie.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

INIT = "__init__.py"

INSTALLED = ("site-packages", "dist-packages")
"""Folders whose files have nothing to do with each other."""

COMPILED = (".so", ".*.so", ".pyd", ".*.pyd")
"""Endings of modules that Python takes before a source of the same name."""


def module_path(file: Path, module: str, level: int, alone: bool = False) -> Path | None:
    """The file of ``module`` as ``file`` imports it, or its folder where that has no ``__init__.py``.

    ``level`` is the number of dots before the name. ``None`` where the module is somebody else's, or which
    file it is depends on how Python was started. ``alone`` rules out files beside one that is in no package:
    a source that changes where Python looks may find others.
    """
    parts = module.split(".") if module else []
    if level:
        return _below(file.parents[level - 1], parts) if level <= len(file.parents) else None
    if parts[0] in sys.stdlib_module_names:
        return None
    found = {path for folder in _folders(file, parts[0], alone) if (path := _below(folder, parts))}
    return found.pop() if len(found) == 1 else None


def submodule(folder: Path, name: str) -> Path | None:
    """The module ``name`` in the folder of a package; ``None``: there is none, or not only its source."""
    if not name.isidentifier():
        return None
    inner, source = folder / name, folder / f"{name}.py"
    try:
        if any(any(folder.glob(name + ending)) for ending in COMPILED):
            return None
        if (inner / INIT).is_file():
            return inner / INIT
        if source.is_file():
            return source
        return inner if inner.is_dir() else None
    except OSError:  # the name is longer than a file's can be
        return None


def package_of(file: Path) -> Path | None:
    """The folder of the top-level package that ``file`` is in; ``None`` where it is in none."""
    found = None
    folder = file.parent
    while (folder / INIT).is_file():
        found, folder = folder, folder.parent
    return found


def sources_around(file: Path) -> Iterator[Path]:
    """The files of its package, or those beside it."""
    package = package_of(file)
    yield from sorted(package.rglob("*.py") if package else file.parent.glob("*.py"))


def _folders(file: Path, first: str, alone: bool) -> Iterator[Path]:
    """Those in which the top-level module ``first`` may be meant."""
    package = package_of(file)
    if package is not None and package.name == first:
        yield package.parent
        return
    inner = package or file.parent
    for folder in inner.parents if package else (inner, *inner.parents):
        if folder.name == first:  # a package without __init__.py
            yield folder.parent
    if package is None and not alone and inner.name not in INSTALLED:
        yield inner


def _below(folder: Path, parts: Sequence[str]) -> Path | None:
    """The module that the names of ``parts`` lead to, each in the folder of the one before."""
    if not parts:
        init = folder / INIT
        return init if init.is_file() else folder
    found: Path | None = None
    for part in parts:
        if found is not None:
            if found.name != INIT and not found.is_dir():
                return None  # a module has none in it
            folder = found.parent if found.name == INIT else found
        found = submodule(folder, part)
        if found is None:
            return None
    return found
