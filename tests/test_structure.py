"""A folder of autotune imports only from those above it, and no files need each other in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("space", "provenance", "search", "measure", "store", "session", "hook", "interop", "report", "cli")
"""From the top, as docs/architecture.md has them."""
FILES = {
    ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file
    for file in sorted((ROOT / "autotune").rglob("*.py"))
    if "templates" not in file.parts
}


def imported(file: Path) -> Iterator[str]:
    """The modules of autotune that a file imports, wherever in it, for types alone or when it is run."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            inside = [name for alias in node.names if (name := f"{node.module}.{alias.name}") in FILES]
            yield from inside or ([node.module] if node.module in FILES else [])


def folder(module: str) -> str:
    return module.split(".")[1] if module.count(".") > 1 or module.split(".")[-1] in FOLDERS else ""


def test_folders_import_only_from_above() -> None:
    below = [
        f"{module} imports {other}"
        for module, file in FILES.items()
        for other in imported(file)
        if folder(module) in FOLDERS
        and folder(other) in FOLDERS
        and FOLDERS.index(folder(other)) > FOLDERS.index(folder(module))
    ]
    assert below == []


def test_no_files_need_each_other() -> None:
    TopologicalSorter({module: set(imported(file)) for module, file in FILES.items()}).prepare()


def classes(folder: Path) -> Iterator[ast.ClassDef]:
    for file in sorted(folder.rglob("*.py")):
        yield from (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef))


def methods(one: ast.ClassDef) -> dict[str, list[str]]:
    """The parameters of each method."""
    return {m.name: [a.arg for a in m.args.args] for m in one.body if isinstance(m, ast.FunctionDef)}


def test_an_objective_that_has_a_private_method_of_its_base_means_it() -> None:
    """One that happens to have the same name breaks the base, on a GPU perhaps, where no test sees it."""
    known = {one.name: one for folder in ("autotune/measure", "objectives") for one in classes(ROOT / folder)}

    def above(one: ast.ClassDef) -> Iterator[ast.ClassDef]:
        for base in (known[b.id] for b in one.bases if isinstance(b, ast.Name) and b.id in known):
            yield base
            yield from above(base)

    hidden = [
        f"{one.name}.{name} has other parameters than {base.name}.{name}"
        for one in classes(ROOT / "objectives")
        for base in above(one)
        for name, parameters in methods(one).items()
        if name.startswith("_")
        and not name.startswith("__")
        and methods(base).get(name, parameters) != parameters
    ]
    assert hidden == []
