"""Every command and Python block that the documentation shows is run, page by page (``make test-docs``)."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import autotune
import autotune.space

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)

NEEDS_A_CLONE = ("make ",)
"""Shown in the README: `make test` runs this very test, and `make quickstart` is a target of its own."""

OPTIONAL = ("ray",)
"""Packages of an extra that a page may show; what imports one is left out where it is not installed."""


def missing(code: str) -> list[str]:
    """The optional packages that ``code`` imports and that are not here."""
    used = [name for name in OPTIONAL if re.search(rf"^(import|from) {name}\b", code, re.MULTILINE)]
    return [name for name in used if importlib.util.find_spec(name) is None]


def steps(page: Path) -> list[tuple[str, str]]:
    """``("shell", command)`` and ``("python", code)`` in the order of the page."""
    found: list[tuple[str, str]] = []
    for kind, text in BLOCK.findall(page.read_text()):
        if kind == "python":
            found.append(("python", text))
        else:
            found += [("shell", line[2:]) for line in text.splitlines() if line.startswith("$ ")]
    return [(kind, text) for kind, text in found if not text.startswith(NEEDS_A_CLONE)]


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if steps(p)], ids=lambda p: str(p.relative_to(ROOT)))
def test_what_a_page_shows_works(page: Path, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "AUTOTUNE_STORE": str(tmp_path / "default.db")}
    left_out: list[str] = []
    for kind, text in steps(page):
        if kind == "python" and missing(text):
            left_out += missing(text)
            continue
        command = ["bash", "-c", text]
        if kind == "python":  # from a file, as people have it: what stands beside it is found by its place
            (tmp_path / "shown.py").write_text(text)
            command = [sys.executable, "shown.py"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    if left_out:
        pytest.skip(f"all but what needs {', '.join(left_out)} works")


def test_every_link_to_a_file_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_reference_of_the_python_interface_has_every_public_name() -> None:
    text = (ROOT / "docs" / "reference" / "python.md").read_text()
    public = {*autotune.space.__all__, *dir(autotune)} - {"__version__", "space"}
    assert {name for name in public if not re.search(rf"\b{name}\b", text)} == set()
