"""A study with two goals and a bound, as a user looks at it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import autotune

SPACE = """
autotune: 1
name: both
objective: objective.py:measure
metrics:
  time: {goal: minimize, unit: s}
  energy: {goal: minimize, unit: J}
  error: {at_most: 0.5}
knobs:
  threads: {values: [1, 2, 4, 8]}
  tile: {values: [1, 2, 3]}
measure: {min_readings: 2, max_readings: 2, finalists: 1, timeout: 10}
budget: {trials: 12}
"""

OBJECTIVE = """
def measure(threads, tile):
    return {"time": (1.0 + 0.5 * (tile == 1)) / threads, "energy": 1.0 + threads, "error": 0.3 * (tile - 1)}
"""
STUDY = ("--study", "both", "--store", "study.db")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("both")
    (folder / "space.yaml").write_text(SPACE)
    (folder / "objective.py").write_text(OBJECTIVE)
    done = autotune(folder, "search", "space.yaml", "--store", "study.db")
    assert done.returncode == 0, done.stderr
    assert "4 configurations that no other beats in time and energy" in done.stdout
    assert "best --front" in done.stdout
    return folder


@pytest.mark.long
def test_the_front_is_every_configuration_that_none_beats(both: Path) -> None:
    front = json.loads(autotune(both, "best", "--front", "--json", *STUDY).stdout)
    assert front["goals"] == {"time": "minimize", "energy": "minimize"}
    assert [row["configuration"] for row in front["front"]] == [
        {"threads": threads, "tile": 2} for threads in (8, 4, 2, 1)
    ]


def test_best_is_the_winner_by_the_first_goal(both: Path) -> None:
    best = json.loads(autotune(both, "best", "--json", *STUDY).stdout)
    assert best["configuration"] == {"threads": 8, "tile": 2} and len(best["front"]) == 4
    assert best["statuses"] == {"ok": 8, "wrong": 4}


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("flags", "--threads=8 --tile=2\n--threads=4 --tile=2\n"),
        ("env", "THREADS=8\nTILE=2\n\nTHREADS=4\nTILE=2\n"),
        ("yaml", "threads: 8\ntile: 2\n---\n# trial"),
    ],
)
def test_the_front_in_every_form(both: Path, form: str, expected: str) -> None:
    done = autotune(both, "best", "--front", "--format", form, *STUDY)
    assert done.returncode == 0 and expected in done.stdout


def test_show_marks_the_front_and_lists_it(both: Path) -> None:
    said = autotune(both, "show", *STUDY).stdout
    assert "front of time and energy: 4" in said
    assert said.count("*") == 1 + 4 + 4, "the legend, the best trials that are on it, and the front itself"
