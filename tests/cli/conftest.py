"""A small study, searched once, that the tests of the verbs look at."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.forking import the_forking

SPACE = """
autotune: 1
name: small
objective: objective.py:measure
metrics:
  time: {goal: minimize, unit: s}
knobs:
  tile: {values: [1, 2, 4, 8, 16], default: 1}
  layout: {choices: [row, column], default: row}
  order: {permutation: [i, j]}
constraints:
  - "tile <= 8 or layout == 'row'"
measure: {min_readings: 3, max_readings: 6, finalists: 2, timeout: 10}
budget: {trials: 12}
"""

OBJECTIVE = """
import autotune

def measure(tile, layout, order):
    if tile == 2:
        raise autotune.Infeasible("two is refused")
    if tile == 4 and layout == "column":
        raise RuntimeError("four columns crash")
    return 1.0 / tile + (0.01 if layout == "column" else 0.0)
"""


@pytest.fixture(autouse=True, scope="session")
def closed() -> Iterator[None]:
    """What the processes are forked from does not outlive the tests."""
    yield
    if the_forking.cache_info().currsize:
        the_forking().close()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with space.yaml, objective.py and the searched study in study.db."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "space.yaml").write_text(SPACE)
    (folder / "objective.py").write_text(OBJECTIVE)
    done = autotune(
        folder, "search", "space.yaml", "--store", "study.db", "--seed", "3", "--strategy", "random", "--json"
    )
    assert done.returncode == 0, done.stderr
    (folder / "result.json").write_text(done.stdout)
    return folder


@pytest.fixture(scope="session")
def result(folder: Path) -> dict:  # type: ignore[type-arg]
    return json.loads((folder / "result.json").read_text())


def autotune(folder: Path, *arguments: str, to: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line in ``folder`` as a user does, with stdout ``to`` a descriptor if one is given."""
    return the_forking().run(folder, arguments, to)
