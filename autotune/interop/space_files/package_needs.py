"""Which names of the other files of a package a source needs, by way of all that they import in turn."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from autotune.interop.space_files.package_files import Files, Named, imports_in
from autotune.interop.space_files.python_slice import assigned_by, mentioned, slice_of


def needed_by(files: Files, main: Path, nodes: Sequence[ast.AST]) -> Mapping[Path, set[str]]:
    """The names, by file, that ``nodes`` of the file at ``main`` take from others."""
    found: dict[Path, set[str]] = defaultdict(set)
    waiting: list[tuple[Path, Sequence[ast.AST]]] = [(main, nodes)]
    while waiting:
        path, nodes = waiting.pop()
        grown = set[Path]()
        for one in _taken_from_others(files, path, nodes):
            if one.name not in found[one.file]:
                found[one.file].add(one.name)
                grown.add(one.file)
        for other in grown - {main}:
            names = [ast.Name(name, ast.Load()) for name in sorted(found[other])]
            waiting.append((other, [*statements_for(files, other, found[other]), *names]))
    return found


def statements_for(files: Files, path: Path, names: Collection[str]) -> list[ast.stmt]:
    """The statements of a file that these of its names depend on."""
    file = files.file(path)
    if file is None:
        return []
    asked = [ast.Name(name, ast.Load()) for name in sorted(names)]
    return slice_of(file.statements, asked, files.changes(file))


def _taken_from_others(files: Files, path: Path, nodes: Sequence[ast.AST]) -> Iterator[Named]:
    wanted = {name for node in nodes for name in mentioned(node)}
    for node in nodes:
        for statement, alias in imports_in(node):
            found = files.imported(path, statement, alias)
            for name in assigned_by(alias):
                if found is None or name not in wanted:
                    continue
                if isinstance(found, Named):
                    yield found
                if (module := files.opened(found)) is not None:
                    yield from _members(files, module, name, nodes)


def _members(files: Files, module: Path, name: str, nodes: Sequence[ast.AST]) -> Iterator[Named]:
    """What is asked of the module that ``name`` stands for: ``name.part``, ``name.inner.part``."""
    for node in nodes:
        for part in ast.walk(node):
            whole: Path | None = module
            for attribute in _attributes(part, name):
                found = files.member(whole, attribute) if whole else None
                if isinstance(found, Named):
                    yield found
                whole = files.opened(found)


def _attributes(node: ast.AST, name: str) -> Sequence[str]:
    """``a``, ``b`` of ``name.a.b``."""
    found: list[str] = []
    while isinstance(node, ast.Attribute):
        found.insert(0, node.attr)
        node = node.value
    return found if isinstance(node, ast.Name) and node.id == name else ()
