"""Where recipes are looked for: committed files, then the store."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import InputError, Location, Problem
from autotune.hook.recipes.file import read_known
from autotune.hook.recipes.recipe import Known
from autotune.paths import expanded, may_be_there

FILES = "AUTOTUNE_RECIPES"
"""The variable that names files of recipes, separated as in ``PATH``, instead of ``recipes.json``."""
STORE = "AUTOTUNE_STORE"
NAME = "recipes.json"

_SWITCHES = frozenset({"", "0", "1", "false", "true", "no", "yes", "off", "on"})
"""Values of the variable that name no file; programs use them as a switch of their own."""


@dataclass(frozen=True)
class Places:
    """The files of recipes, and the address of the store (``None``: the default one)."""

    files: tuple[Path, ...]
    store: str | None = None

    @classmethod
    def of(cls, recipes: str | Path | None = None, store: str | Path | None = None) -> Places:
        """``recipes``, or else the files that :data:`FILES` names, or else ``recipes.json`` in the current
        folder and beside the program.

        Raises :class:`InputError` for a file that was named and does not exist.
        """
        written = os.environ.get(FILES, "").strip()
        if recipes is not None:
            named = [expanded(recipes)]
        elif written.lower() not in _SWITCHES:
            named = [expanded(part) for part in written.split(os.pathsep) if part]
        else:
            found = dict.fromkeys(_absolute(Path(folder, NAME)) for folder in (".", _program()))
            return cls(tuple(found), None if store is None else str(store))
        missing = [file for file in named if not may_be_there(file)]
        if missing:
            hint = "make it with: autotune recipes export --to FILE"
            raise InputError([Problem("there is no such file", Location(str(f)), "", hint) for f in missing])
        return cls(tuple(_absolute(file) for file in named), None if store is None else str(store))

    def filed(self) -> Known:
        """The contents of all files. Raises :class:`InputError` for one that is no file of recipes."""
        known = Known()
        for file in self.files:
            known = known.and_then(read_known(file))
        return known

    @property
    def store_file(self) -> Path | None:
        """The store's file; ``None`` for a database server. Worked out without SQLAlchemy, a slow import."""
        written = self.store or os.environ.get(STORE, "").strip() or "sqlite:///results/autotune.db"
        if written == ":memory:":
            return None
        scheme, is_url, rest = written.partition("://")
        if not is_url:
            return _absolute(expanded(written))
        name = rest.removeprefix("/").partition("?")[0]
        if not scheme.startswith("sqlite") or name in ("", ":memory:"):
            return None
        return _absolute(Path(name))  # as in read_address: in a URL, ~ does not mean the home folder

    @property
    def has_store(self) -> bool:
        file = self.store_file
        return file is None or may_be_there(file)

    def __str__(self) -> str:
        there = [str(file) for file in self.files if may_be_there(file)]
        store = f"the store at {file}" if (file := self.store_file) else "the store"
        return ", ".join([*there, store if self.has_store else f"{store}, which is not there"])


def _current() -> str:
    """The current folder; empty where it was deleted: no relative path leads anywhere then."""
    try:
        return os.getcwd()  # noqa: PTH109
    except FileNotFoundError:
        return ""


def _absolute(file: Path) -> Path:
    return Path(_current(), file)


def _program() -> str:
    """The folder of the program that runs."""
    return str(Path(getattr(sys.modules.get("__main__"), "__file__", None) or ".").parent)


Signature = tuple[object, ...]


def signature(files: Iterable[Path]) -> Signature:
    """A value that changes when one of the files, or the current folder, changes."""
    return (_current(), *(_sign(file) for file in files))


def _sign(file: Path) -> tuple[int, int, int] | None:
    try:
        status = os.stat(file)  # noqa: PTH116
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
