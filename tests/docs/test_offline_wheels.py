"""The wheels that docs/how-to/gpu.md carries to a machine without a network."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]

LEFT_OUT = {"numpy", "scipy", "scikit-learn", "pandas", "matplotlib"}
"""What the page says is installed there already, with all that it needs itself."""

PYTHON = {"python_version": "3.12", "python_full_version": "3.12.3", "extra": ""}


def test_all_that_autotune_needs_is_among_them() -> None:
    """They are installed without what they need themselves: what is missing shows only there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["gpu"]]
    carried = set(_listed((ROOT / "docs" / "how-to" / "gpu.md").read_text()))
    assert _needed(asked) <= carried


def _listed(page: str) -> list[str]:
    found = re.search(r"grep -iE '\^\(([^)]*)\)=='", page)
    assert found is not None
    return [_plain(name) for name in found.group(1).split("|")]


def _needed(asked: list[str]) -> set[str]:
    found: set[str] = set()
    while asked:
        wanted = Requirement(asked.pop())
        name = _plain(wanted.name)
        applies = wanted.marker is None or wanted.marker.evaluate(PYTHON)
        if applies and name not in LEFT_OUT | found:
            found.add(name)
            asked += _requires(name)
    return found


def _requires(name: str) -> list[str]:
    try:
        return requires(name) or []
    except ModuleNotFoundError:  # an extra that is not installed here
        return []


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")
