"""What a source takes from other files of its package, worked out in these without running them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from autotune.errors import InputError, Location, Problem
from autotune.interop.space_files.package_doubts import doubts
from autotune.interop.space_files.package_files import File, Files, Named
from autotune.interop.space_files.package_needs import needed_by, statements_for
from autotune.interop.space_files.python_slice import Changes, mentioned
from autotune.interop.space_files.python_source import FOREIGN, Opened
from autotune.interop.space_files.python_text import Module

Make = Callable[[File, "Package"], Module]
"""Makes what evaluates one file."""


class Package:
    """The files that one source imports from, directly or by way of others.

    Each is carried out once, for all names that are needed of it, so that files share their lists as they do
    when they run.
    """

    def __init__(self, files: Files, main: Path, make: Make, otherwise: str) -> None:
        self.files = files
        self.main = main
        self.make = make
        self.otherwise = otherwise
        """What to do about files that import each other."""
        self.taken: dict[Path, set[str]] = {}
        """The names, by file, whose values have been given to others."""
        self._doubts: dict[tuple[Path, frozenset[str]], Mapping[str, str]] = {}
        self._needed: Mapping[Path, set[str]] = {}
        self._modules: dict[Path, Module | None] = {}
        """Those carried out; None for one that is under way."""

    def changes(self, file: str, statements: Sequence[ast.stmt]) -> Changes:
        found = self.files.file(Path(file).resolve())
        return Changes(statements, self.files.followed(found) if found else frozenset())

    def begin(self, file: str, nodes: Sequence[ast.AST]) -> None:
        self._needed = needed_by(self.files, Path(file).resolve(), nodes)
        self._modules = {self.main: None}

    def imported(self, file: str, statement: ast.stmt, alias: ast.alias) -> Any:
        return self._value(self.files.imported(Path(file).resolve(), statement, alias))

    def _value(self, found: Named | Path | None) -> Any:
        if isinstance(found, Path):
            return Opened(partial(self._member, found))
        if found is None or found.name not in self._needed.get(found.file, ()):
            return FOREIGN
        module = self._carried_out(found.file)
        if module is None:
            message = f"{found.name!r} is not understood: {found.file.name} and other files import each other"
            return InputError(Problem(message, Location(str(found.file)), hint=self.otherwise))
        value = module.exported(found.name)
        if value is not FOREIGN and not isinstance(value, InputError):
            self.taken.setdefault(found.file, set()).add(found.name)
        return value

    def _member(self, whole: Path, name: str) -> Any:
        return self._value(self.files.member(whole, name))

    def _carried_out(self, path: Path) -> Module | None:
        if path not in self._modules:
            self._modules[path] = None
            file = self.files.file(path)
            assert file is not None  # it has the name that is needed of it
            module = self.make(file, self)
            statements = statements_for(self.files, path, self._needed[path])
            module.run(statements, self.files.changes(file), {})
            names = {name for statement in statements for name in mentioned(statement)} | self._needed[path]
            asked = path, frozenset(names & file.bound)
            if asked not in self._doubts:
                self._doubts[asked] = doubts(self.files, file, asked[1])
            for name, why in self._doubts[asked].items():
                module.doubt(name, why)
            self._modules[path] = module
        return self._modules[path]
