"""Names of a file whose values may be others by the time that a second file asks for them.

A file that is imported has run to its end. What it has made then is still changed by its functions when
they are called, by other files that import it, and, where files import each other, by what comes after that
import. Nothing that is read tells whether and when these happen: such a name is not taken for what it was.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Collection, Iterator, Mapping, Set

from autotune.errors import InputError
from autotune.interop.space_files.package_files import File, Files, Named, imports_in
from autotune.interop.space_files.package_paths import sources_around
from autotune.interop.space_files.python_slice import Called, Changes, assigned_by
from autotune.space.reading.space_file import load_text

READING = (
    "copy",
    "count",
    "get",
    "index",
    "items",
    "join",
    "keys",
    "values",
    "startswith",
    "endswith",
    "split",
)
"""Methods that change nothing of what they are of, but may give what is in it."""


WORD = re.compile(r"\w+")
FROM = re.compile(r"^\s*from\s+[.\w]+\s+import\s+(\([^)]*\)|[^\n]*(?:\\\n[^\n]*)*)", re.MULTILINE)
"""What is brought by an import."""


def doubts(files: Files, file: File, names: Set[str]) -> Mapping[str, str]:
    """Those of ``names`` of ``file`` that something may change later, and what."""
    found: dict[str, str] = {}
    for name, why in (
        *_between_imports(files, file),
        *_by_others(files, file, names),
        *_by_its_functions(files, file),
    ):
        if name in names:
            found[name] = why
    return found


def _by_its_functions(files: Files, file: File) -> Iterator[tuple[str, str]]:
    plain = _Readings().visit(copy.deepcopy(file.tree))
    changes = Changes(plain.body, files.followed(file))
    for called in _outermost(plain):
        name = getattr(called, "name", "a lambda")
        for changed in changes.by_calls(called):
            yield changed, f"{name} on line {called.lineno} changes it whenever it is called"


def _outermost(tree: ast.AST) -> Iterator[Called]:
    """Functions and classes that stand in no other."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, Called):
            yield node
        else:
            yield from _outermost(node)


def _between_imports(files: Files, file: File) -> Iterator[tuple[str, str]]:
    """What changes both before and after an import of files that may import this one half done."""
    changes = files.changes(file)
    changed = [changes.of(statement) for statement in file.statements]
    for place, statement in enumerate(file.statements):
        if any(files.imported(file.path, one, alias) for one, alias in imports_in(statement)):
            before = frozenset[str]().union(*changed[:place])
            for name in before & frozenset[str]().union(*changed[place + 1 :]):
                yield name, f"it changes before and after the import on line {statement.lineno}"


def _by_others(files: Files, file: File, names: Set[str]) -> Iterator[tuple[str, str]]:
    """What other files around change of it in place, or give another value."""
    for path in sources_around(file.path):
        try:
            text = load_text(path) if path != file.path else ""
        except InputError:
            continue
        mentioned = {name for name in names & {*WORD.findall(text)} if _may_change(name, text)}
        other = files.file(path) if mentioned else None
        if other is not None:
            for name in _changed_by(files, other, file, mentioned):
                yield name, f"{path.name} changes it"


def _may_change(name: str, text: str) -> bool:
    """Whether a file may import the name, and change it: at a look, so that few files have to be parsed."""
    if re.search(rf"\.\s*{name}\b", text) or (name in text and "setattr" in text):
        return True
    imports = FROM.findall(text)
    if not any(name in WORD.findall(brought) or "*" in brought for brought in imports):
        return False
    changed = rf"\b{name}\b\s*(as\b|\.|\[|[-+*/|&^%]?=(?!=))"
    return bool(re.search(rf"{changed}|(=|\bin|,|\()\s*\*?{name}\b(?!\s*\()", text))


def _changed_by(files: Files, other: File, file: File, names: Collection[str]) -> Iterator[str]:
    """What ``other`` may change of ``names`` of ``file``, by whatever names it has for them."""
    own: dict[str, str] = {}
    modules = set[str]()
    for statement, alias in imports_in(other.tree):
        found = files.imported(other.path, statement, alias)
        if isinstance(found, Named):
            origin = files.origin(found)
            if origin.file == file.path and origin.name in names:
                own |= dict.fromkeys(assigned_by(alias), origin.name)
        if found is not None and files.opened(found) is not None:
            modules |= {*assigned_by(alias)}
    if own:
        plain = _Readings().visit(copy.deepcopy(other.tree))
        changed = Changes(plain.body, frozenset(own)).in_place(plain)
        yield from (name for local, name in own.items() if local in changed)
    if modules:
        yield from (name for name in _changed_parts(other.tree, modules) if name in names)


def _changed_parts(tree: ast.AST, modules: Collection[str]) -> Iterator[str]:
    """``a`` where ``module.a`` is changed, or kept under another name by which it might be."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=whole, attr=method)) if method not in READING:
                yield from _parts(whole, modules)
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                yield from _parts(node, modules)
            case ast.AugAssign(target=whole):
                yield from _parts(whole, modules)
            case ast.Assign(value=ast.Attribute() as whole):
                yield from _parts(whole, modules)
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str() as name), *_]):
                yield name


def _parts(node: ast.expr, modules: Collection[str]) -> Iterator[str]:
    """The names on the way of ``module.a.b[0]``."""
    found = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            found.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in modules:
        yield from found


class _Readings(ast.NodeTransformer):
    """``name.get(x)`` as ``name[x]``: it gives a part, and changes nothing."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=whole, attr=method)) if method in READING:
                index = ast.Tuple([*node.args, *(word.value for word in node.keywords)], ast.Load())
                part = ast.Subscript(whole, ast.copy_location(index, node), ast.Load())
                return ast.copy_location(part, node)
        return node
