"""A workload has no facts that its objective does not know, where that says which it knows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import autotune
from autotune.errors import InputError
from autotune.measure.loading.facts import require_known
from autotune.space.configuration import FrozenMap
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import StudySpec
from autotune.store.store import Store

SPACE = """
autotune: 1
name: sized
objective: objective.py:Sized
workload: {m: 4, most: 2}
knobs: {tile: {values: [1, 2, 4]}}
constraints: ["tile <= most"]
measure: {finalists: 0, min_readings: 1, max_readings: 1}
"""
OBJECTIVE = """
from autotune import Objective

class Sized(Objective):
    workload_facts = ("m", "steps")

    def measure(self, loaded, rng):
        return float(self.context.size("m") * self.context.size("steps", 3))
"""


@pytest.fixture
def spec(tmp_path: Path) -> StudySpec:
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    return parse_spec(SPACE, tmp_path / "space.yaml", {})


def test_every_unknown_name_is_an_error_with_the_nearest_that_is_known() -> None:
    require_known(["m"], ("m", "steps"))
    with pytest.raises(InputError) as refused:
        require_known(["m", "step", "other"], ("m", "steps"))
    assert [problem.hint for problem in refused.value.problems] == ["did you mean 'steps'?", ""]
    assert "one of m, steps" in str(refused.value)


def test_what_a_rule_uses_is_known(tmp_path: Path, spec: StudySpec) -> None:
    result = autotune.search(spec, trials=2, store=tmp_path / "s.db")
    assert result.statuses == {"ok": 2}


def test_a_misspelt_fact_ends_the_search_before_a_study_begins(tmp_path: Path, spec: StudySpec) -> None:
    misspelt = replace(spec, workload=FrozenMap({**spec.workload, "step": 5}))
    with pytest.raises(InputError, match="unknown fact 'step' in workload"):
        autotune.search(misspelt, trials=2, store=tmp_path / "s.db")
    with Store.open(tmp_path / "s.db") as store:
        assert store.studies() == []
