"""Rules that nobody stated, where a program reads what a search found."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.cli.search import command as search
from autotune.cli.show import command as show
from tests.cli.calling import call, document

OBJECTIVE = """
import autotune

def measure(tile, lanes, vector):
    if tile % (lanes * vector):
        raise autotune.Infeasible("the lanes do not divide the tile")
    return float(tile)
"""

SPACE = """
autotune: 1
name: uneven
objective: objective.py:measure
metrics: {time: {goal: minimize, unit: s}}
knobs:
  tile: {values: [16, 32, 48, 64, 96, 128]}
  lanes: {values: [1, 2, 3, 4, 6, 8]}
  vector: {values: [1, 2, 3, 4]}
search: {strategy: random, seed: 0}
measure: {finalists: 0}
budget: {trials: 60}
"""


def test_they_are_in_the_documents_of_search_and_show(tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    (tmp_path / "space.yaml").write_text(SPACE)
    store = tmp_path / "study.db"
    found = document(search, tmp_path / "space.yaml", "--store", store)
    failed = found["statuses"]["infeasible"]
    [rule] = found["unstated_rules"]
    assert rule == {
        "constraint": "tile % (lanes * vector) == 0",
        "breaking": failed,
        "failures": failed,
        "keeping": 60 - failed,
    }
    assert document(show, "uneven", "--store", store)["unstated_rules"] == [rule]
    assert (
        f"a rule? {rule['constraint']}: {failed} of {failed}"
        in call(show, "uneven", "--failures", "--store", store).stdout
    )


@pytest.mark.long
def test_each_of_several_workloads_has_its_own(tmp_path: Path) -> None:
    objective = OBJECTIVE.replace("vector)", "vector, size)", 1).replace("if tile", "if size == 1 and tile")
    (tmp_path / "objective.py").write_text(objective)
    (tmp_path / "space.yaml").write_text(
        SPACE.replace("trials: 60", "trials: 120") + "workloads: {size: [1, 2]}\n"
    )
    found = document(search, tmp_path / "space.yaml", "--store", tmp_path / "study.db")
    rules = {one["workload"]["size"]: one["unstated_rules"] for one in found["workloads"]}
    assert [rule["constraint"] for rule in rules[1]] == ["tile % (lanes * vector) == 0"]
    assert rules[2] == []
