"""The files of a package as far as a source imports them: each read once, never run."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autotune.errors import InputError, Location, Problem
from autotune.interop.space_files.package_paths import INIT, module_path, submodule
from autotune.interop.space_files.python_place import met_before
from autotune.interop.space_files.python_slice import Changes, Names, assigned_by
from autotune.interop.space_files.python_text import parsed
from autotune.space.reading.space_file import load_text

BEHIND = ("globals", "exec", "vars")
"""Functions by which a source can give names values that no statement of it shows."""

MOST_STEPS = 20
"""Through how many files a name is followed: files can import it from each other in a circle."""


@dataclass(frozen=True)
class Named:
    """A name that a file of the package gives a value."""

    file: Path
    name: str


@dataclass(frozen=True)
class File:
    """One file."""

    path: Path
    tree: ast.Module
    """With the names written out that ``from module import *`` brings, where these are known."""
    text: str

    @cached_property
    def bound(self) -> Names:
        """The names that its statements give values."""
        return frozenset(_given_by(self.tree))

    @cached_property
    def statements(self) -> Sequence[ast.stmt]:
        """What has run at its end."""
        return met_before(None, self.tree).module

    def binding(self, name: str) -> Sequence[ast.stmt]:
        """Its statements that give a name a value."""
        return self._bindings.get(name, ())

    @cached_property
    def _bindings(self) -> Mapping[str, Sequence[ast.stmt]]:
        found: dict[str, list[ast.stmt]] = defaultdict(list)
        for statement in self.statements:
            for name in {*_given_by(ast.Module([statement], []))}:
                found[name].append(statement)
        return found


def read_source(file: Path) -> tuple[str, ast.Module]:
    """The text and the tree of a Python source. Raises :class:`InputError` where it is none."""
    text = load_text(file)
    try:
        return text, parsed(text, "exec")
    except SyntaxError as error:
        where = Location(str(file), error.lineno or 0, error.offset or 0)
        raise InputError(Problem(f"this is not Python: {error.msg}", where)) from None
    except ValueError as error:  # a NUL byte
        raise InputError(Problem(f"this is not Python: {error}", Location(str(file)))) from None


class Files:
    """Reads files and finds what imports mean.

    ``assumed`` are names that are not followed, since what they stand for is assumed wherever they come from.
    """

    def __init__(self, assumed: Collection[str]) -> None:
        self.assumed = assumed
        self._files: dict[Path, File | None] = {}
        self._changes: dict[Path, Changes] = {}

    def file(self, path: Path) -> File | None:
        """The file at ``path``; ``None`` where its names cannot be told from its text."""
        if path not in self._files:
            self._files[path] = None  # to whoever asks meanwhile: files that import all of each other
            self._files[path] = self._read(path)
        return self._files[path]

    def add(self, path: Path, tree: ast.Module, text: str) -> File:
        """A file that has been read already; the one whose imports are followed."""
        self._files[path] = file = File(path, _Stars(self, path).visit(tree), text)
        return file

    def _read(self, path: Path) -> File | None:
        try:
            text, tree = read_source(path)
        except InputError:
            return None
        if any(_behind(tree)):
            return None
        return File(path, _Stars(self, path).visit(tree), text)

    def imported(self, path: Path, statement: ast.AST, alias: ast.alias) -> Named | Path | None:
        """What one name of an import in the file at ``path`` stands for: a name there, or a module."""
        if isinstance(statement, ast.ImportFrom):
            if alias.name in self.assumed or (alias.asname or alias.name) in self.assumed:
                return None
            whole = self.module(path, statement.module or "", statement.level)
            return self.member(whole, alias.name) if whole else None
        if alias.asname:
            return self.module(path, alias.name, 0)
        return (
            self.module(path, alias.name.partition(".")[0], 0) if self.module(path, alias.name, 0) else None
        )

    def module(self, path: Path, name: str, level: int) -> Path | None:
        """The module that is imported in the file at ``path``; ``None`` where it is not followed."""
        if not level and name.partition(".")[0] in self.assumed:
            return None
        known = self._files.get(path)
        return module_path(path, name, level, alone="sys.path" in (known.text if known else ""))

    def member(self, whole: Path, name: str) -> Named | Path | None:
        """What a name of a module stands for."""
        if whole.is_dir():
            return submodule(whole, name)
        file = self.file(whole)
        inner = submodule(whole.parent, name) if whole.name == INIT else None
        if file is None:
            return None
        if name not in file.bound:
            return None if {"*", "__getattr__"} & file.bound else inner
        if inner is None:
            return Named(whole, name)
        match [*file.binding(name)]:  # it may be the submodule, or what the package gives this name
            case [ast.ImportFrom(level=1, module=None)]:
                return inner
            case [ast.ImportFrom(level=1, module=module)] if module == name:
                return Named(whole, name)
        return None

    def opened(self, found: Named | Path | None) -> Path | None:
        """The module that something imported is, also by way of other files that import it."""
        for _ in range(MOST_STEPS):
            if not isinstance(found, Named):
                break
            file = self.file(found.file)
            made = file.binding(found.name) if file else []
            one = made[0] if len(made) == 1 else None
            if not isinstance(one, (ast.Import, ast.ImportFrom)):
                return None
            found = self.imported(found.file, one, _alias(one, found.name))
        return found if isinstance(found, Path) else None

    def origin(self, found: Named) -> Named:
        """Where a name gets its value, by way of the files that only import it."""
        for _ in range(MOST_STEPS):
            file = self.file(found.file)
            made = file.binding(found.name) if file else []
            one = made[0] if len(made) == 1 else None
            if not isinstance(one, ast.ImportFrom):
                break
            further = self.imported(found.file, one, _alias(one, found.name))
            if not isinstance(further, Named):
                break
            found = further
        return found

    def followed(self, file: File) -> Names:
        """The names that imports of a file bind to what is followed."""
        return frozenset(
            name
            for statement, alias in imports_in(file.tree)
            for name in assigned_by(alias)
            if self.imported(file.path, statement, alias)
        )

    def changes(self, file: File) -> Changes:
        if file.path not in self._changes:
            self._changes[file.path] = Changes(file.statements, self.followed(file))
        return self._changes[file.path]

    def made_in(self, file: File) -> Names:
        """The functions and classes of a file, or of others of its package from which it imports them."""
        found = set[str]()
        for name in file.bound:
            origin = self.origin(Named(file.path, name))
            other = self.file(origin.file)
            made = other.binding(origin.name) if other else ()
            if any(isinstance(one, (ast.FunctionDef, ast.ClassDef)) for one in made):
                found.add(name)
        return frozenset(found)

    def exported(self, whole: Path | None) -> Sequence[str] | None:
        """What ``from module import *`` brings; ``None`` where that is not known."""
        file = self.file(whole) if whole and whole.is_file() else None
        if file is None or "*" in file.bound or "__getattr__" in file.bound:
            return None
        if "__all__" not in file.bound:
            return sorted(name for name in file.bound if not name.startswith("_"))
        mentions = [n for n in ast.walk(file.tree) if isinstance(n, ast.Name) and n.id == "__all__"]
        match [*file.binding("__all__")]:
            case [ast.Assign(value=ast.List(elts=parts) | ast.Tuple(elts=parts))] if len(mentions) == 1:
                names = [part.value for part in parts if isinstance(part, ast.Constant)]
                texts = [name for name in names if isinstance(name, str)]
                return texts if len(texts) == len(parts) and {*texts} <= file.bound else None
        return None


def notes_of_hidden_changes(tree: ast.AST) -> list[str]:
    """What is to be said of a source that may give names values which no statement of it shows."""
    found = {(node.lineno, ast.unparse(node)) for node in _behind(tree)}
    return [
        f"what {name} on line {line} may change is not followed."
        for line, name in sorted(found)
        if name != "vars"  # mostly of the arguments of a program
    ]


def _behind(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name in BEHIND:
                yield node
            case ast.Attribute(value=ast.Name(id="sys"), attr="modules"):
                yield node


def imports_in(tree: ast.AST) -> Iterator[tuple[ast.Import | ast.ImportFrom, ast.alias]]:
    """The imports anywhere in a tree, name by name."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((node, alias) for alias in node.names)


def _alias(statement: ast.Import | ast.ImportFrom, name: str) -> ast.alias:
    """The part of an import that gives ``name`` its value."""
    return [alias for alias in statement.names if name in assigned_by(alias)][-1]


def _given_by(tree: ast.AST) -> Iterator[str]:
    """The names of the module that the statements in a tree give values, not those of functions in it."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Name(ctx=ast.Store() | ast.Del()) | ast.alias():
                yield from assigned_by(node)
            case ast.comprehension(iter=many, ifs=tests):
                yield from _given_by(ast.Tuple([many, *tests], ast.Load()))
            case ast.Lambda():
                pass
            case _:
                yield from _given_by(node)


class _Stars(ast.NodeTransformer):
    """Writes out the names that ``from module import *`` brings."""

    def __init__(self, files: Files, path: Path) -> None:
        self.files = files
        self.path = path

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.names[0].name == "*":
            whole = self.files.module(self.path, node.module or "", node.level)
            names = self.files.exported(whole)
            if names:
                found = ast.ImportFrom(node.module, [ast.alias(name) for name in names], node.level)
                for part in (found, *found.names):
                    ast.copy_location(part, node)
                return found
        return node
