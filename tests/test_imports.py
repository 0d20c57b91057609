"""Whatever is imported from autotune is there, also by files that only run with PyTorch or a GPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    file for folder in ("objectives", "benchmarks", "examples") for file in (ROOT / folder).rglob("*.py")
)


def imported(file: Path) -> Iterator[tuple[str, str]]:
    """The modules of autotune and the names in them that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "autotune":
            yield from ((str(node.module), alias.name) for alias in node.names)


def is_there(module: str, name: str) -> bool:
    try:
        found = import_module(module)
    except ImportError as error:  # an extra that is not installed
        return not (error.name or "").startswith("autotune")
    submodule = hasattr(found, "__path__") and find_spec(f"{module}.{name}") is not None
    return hasattr(found, name) or submodule


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_what_is_imported_is_there(file: Path) -> None:
    assert [f"{module}.{name}" for module, name in imported(file) if not is_there(module, name)] == []


def test_what_is_not_there_is_noticed() -> None:
    assert is_there("autotune.measure.cores.pinning", "allowed_here") and is_there("autotune", "measure")
    assert not is_there("autotune.measure.cores.pinning", "cores_here")
    assert not is_there("autotune.measure", "nowhere")
