"""The further files that an objective's class names as its ``sources``, read without running any of it.

They are found as Python would: in the class itself, else in the nearest of its base classes that has any,
wherever in the project it is defined. Constants that are named there are looked up.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.provenance.code.imports import module_files, parsed

_COLLECT = frozenset(("tuple", "list", "set", "frozenset", "sorted"))
"""Functions that collect texts without changing them."""


@dataclass(frozen=True)
class Declared:
    """The ``sources`` that a class declares."""

    files: tuple[Path, ...] = ()
    unread: str = ""
    """The text of the declaration, where only running it would tell all files; empty where all could be
    read."""


def declared_sources(file: Path, class_name: str) -> Declared:
    """The ``sources`` of the class of that name, which ``file`` defines or imports."""
    reader = _Reader()
    found = reader.defined(file, class_name)
    # A class that several others have as a base comes behind the last of them, as in Python's own order.
    lineage = list(dict.fromkeys(list(reader.lineage(found))[::-1]))[::-1] if found is not None else []
    for place, one in lineage:
        value = _assigned(one.body, "sources")
        if value is not None:
            texts = reader.texts(_Found(place, value), one.body)
            files = tuple(place.parent / text for text in texts)
            return Declared(files, ast.unparse(value) if reader.missed else "")
    return Declared()


@dataclass(frozen=True)
class _Found:
    """A class, or the value of a constant, and the file that it stands in."""

    file: Path
    node: ast.ClassDef | ast.expr


class _Reader:
    """Looks up what names mean, in files that are parsed once each."""

    def __init__(self) -> None:
        self.missed = False
        """Whether something could not be read."""
        self._trees: dict[Path, list[ast.stmt]] = {}
        self._asked: set[object] = set()
        """What is being looked up now: two files may import each other, a constant may refer to itself."""

    def lineage(
        self, found: _Found, below: tuple[ast.ClassDef, ...] = ()
    ) -> Iterator[tuple[Path, ast.ClassDef]]:
        """A class and all its base classes in the project, with their files, depth first."""
        if not isinstance(found.node, ast.ClassDef) or found.node in below:
            return
        yield found.file, found.node
        for base in found.node.bases:
            meant = self._meant(found.file, base.value if isinstance(base, ast.Subscript) else base)
            if meant is not None:
                yield from self.lineage(meant, (*below, found.node))

    def defined(self, file: Path, name: str) -> _Found | None:
        """What a module of the project calls ``name``; ``None`` where that is neither class nor constant."""
        if (file, name) in self._asked:
            return None
        self._asked.add((file, name))
        try:
            body = self._body(file)
            classes = (one for one in reversed(body) if isinstance(one, ast.ClassDef) and one.name == name)
            value = next(classes, None) or _assigned(body, name)
            return self._imported(file, name) if value is None else _Found(file, value)
        finally:
            self._asked.remove((file, name))

    def texts(self, found: _Found, scope: Sequence[ast.stmt] = ()) -> list[str]:
        """The texts in a value; ``scope``: the body of the class that it is in."""
        file = found.file
        match found.node:
            case ast.Constant(value=str() as text):
                return [text]
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                pass
            case ast.Starred(value=part):
                parts = [part]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                parts = [left, right]
            case ast.Call(func=ast.Name(id=name), args=parts) if name in _COLLECT:
                pass
            case ast.Name() | ast.Attribute() as named:
                return self._of_name(file, named, scope)
            case node:
                self.missed = True
                parts = [
                    n for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)
                ]
        return [text for part in parts for text in self.texts(_Found(file, part), scope)]

    def _of_name(self, file: Path, node: ast.Name | ast.Attribute, scope: Sequence[ast.stmt]) -> list[str]:
        """The texts in what a name stands for, in the class or else in the module."""
        own = _assigned(scope, node.id) if isinstance(node, ast.Name) else None
        meant = self._meant(file, node) if own is None else _Found(file, own)
        if meant is None or isinstance(meant.node, ast.ClassDef) or meant in self._asked:
            self.missed = True
            return []
        self._asked.add(meant)
        try:
            return self.texts(meant)
        finally:
            self._asked.remove(meant)

    def _meant(self, file: Path, node: ast.expr) -> _Found | None:
        """What ``Name``, ``module.Name`` or ``Class.name`` stands for."""
        if isinstance(node, ast.Name):
            return self.defined(file, node.id)
        if not isinstance(node, ast.Attribute):
            return None
        of = self._meant(file, node.value)
        if of is not None and isinstance(of.node, ast.ClassDef):
            values = ((place, _assigned(one.body, node.attr)) for place, one in self.lineage(of))
            return next((_Found(place, value) for place, value in values if value is not None), None)
        places = self._modules(file, ast.unparse(node.value))
        return next((found for place in places if (found := self.defined(place, node.attr))), None)

    def _imported(self, file: Path, name: str) -> _Found | None:
        """What ``from ... import`` brings into the file by that name."""
        for statement in self._body(file):
            if isinstance(statement, ast.ImportFrom):
                for alias in statement.names:
                    if alias.name == "*" or name == (alias.asname or alias.name):
                        wanted = name if alias.name == "*" else alias.name
                        for place in _files(file, statement, alias.name):
                            if (found := self.defined(place, wanted)) is not None:
                                return found
        return None

    def _modules(self, file: Path, name: str) -> list[Path]:
        """The files of the module that a file calls by that name."""
        for statement in self._body(file):
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for alias in statement.names:
                    if name == (alias.asname or alias.name):
                        return _files(file, statement, alias.name)
        return []

    def _body(self, file: Path) -> list[ast.stmt]:
        if file not in self._trees:
            try:
                self._trees[file] = parsed(file.read_bytes()).body
            except OSError:
                self._trees[file] = []  # whoever loads the objective says what is wrong with it
        return self._trees[file]


def _assigned(body: Sequence[ast.stmt], name: str) -> ast.expr | None:
    """The last value that a class or a module gives to a name."""
    for statement in reversed(body):
        match statement:
            case ast.Assign(targets=[ast.Name(id=named)], value=value) if named == name:
                return value
            case ast.AnnAssign(target=ast.Name(id=named), value=ast.expr() as value) if named == name:
                return value
    return None


def _files(file: Path, statement: ast.Import | ast.ImportFrom, name: str) -> list[Path]:
    """The files that an import of ``name`` loads, the imported module itself first."""
    if isinstance(statement, ast.Import):
        return list(module_files(file, 0, name.split("."), ()))[::-1]
    module = statement.module.split(".") if statement.module else []
    return list(module_files(file, statement.level, module, (name,)))[::-1]
