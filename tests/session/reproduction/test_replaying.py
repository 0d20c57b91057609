"""What a store knows of a trial that is replayed, and of the pace of the machine."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import autotune
from autotune.measure.cores.pinning import allowed_here
from autotune.measure.cores.turns import find_place
from autotune.session.reproduction.replaying import comparable_paces, past_of, replay
from autotune.store.store import Store

SPACE = """
autotune: 1
name: small
objective: objective.py:measure
metrics: {time: {goal: minimize, unit: s}}
knobs: {tile: {values: [1, 2, 4]}}
measure: {min_readings: 3, max_readings: 3}
"""
OBJECTIVE = "def measure(tile):\n    return 1.0 / tile\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replaying")
    (folder / "space.yaml").write_text(SPACE)
    (folder / "objective.py").write_text(OBJECTIVE)
    autotune.search(folder / "space.yaml", trials=3, store=folder / "study.db")
    return folder / "study.db"


@pytest.mark.long
def test_the_past_of_a_trial_is_its_readings_and_the_runs_of_others(store: Path) -> None:
    with Store.open(store) as opened:
        trials = opened.trials(1, purpose="search")
        for trial in trials:
            past = past_of(opened, trial, "time")
            assert past is not None
            assert past.then.middle == trial.metrics["time"].value
            assert len(past.then.paces) == len(past.then.values) >= 2
            # The two others were read again in the finale.
            assert [len(group) for group in past.replicates] == [2, 2]
            values = {round(run.middle, 6) for group in past.replicates for run in group}
            assert values == {round(t.metrics["time"].value, 6) for t in trials} - {past.then.middle}
        assert past_of(opened, trials[0], "another") is None


def test_a_trial_is_measured_again_by_what_its_space_file_says_now(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    before.mkdir()
    measured = SPACE.replace("max_readings: 3", "max_readings: 3, finalists: 0")
    (before / "space.yaml").write_text(measured)
    (before / "objective.py").write_text(OBJECTIVE)
    autotune.search(before / "space.yaml", trials=3, store=tmp_path / "study.db")
    before.rename(after)
    text = measured.replace("finalists: 0", "finalists: 0, timeout: 60s")
    (after / "space.yaml").write_text(text)
    autotune.search(after / "space.yaml", trials=3, store=tmp_path / "study.db")
    with Store.open(tmp_path / "study.db") as opened:
        study = opened.study()
        assert (study.id, study.spec_text) == (1, text)
        assert study.document["measure"]["timeout"] == 60.0
        assert opened.space_revisions(1) == [], "its space is the same"
        best = opened.trials(1, purpose="search")[2]
    found = replay(str(tmp_path / "study.db"), best.id, keep=False, runs=1)
    assert (found.study.id, found.result.runs) == (1, 1), found.result.reason


def test_whoever_shares_its_cores_is_named(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_LOCKS", str(tmp_path))
    others = [find_place(1) for _ in allowed_here()]
    shared = replay(str(store), 1, keep=False, runs=1).result
    assert "takes turns" in shared.remark and shared.to_document()["remark"] == shared.remark
    for other in others:
        other.close()
    assert replay(str(store), 1, keep=False, runs=1).result.remark == ""


HERE: dict[str, Any] = {
    "machine": {"processor": {"name": "a processor"}},
    "python": {"version": "3.12.1"},
    "packages": {"numpy": "2.4.6", "scipy": "1.17"},
}


@pytest.mark.parametrize(
    ("part", "value", "same"),
    [
        ("packages", {"numpy": "2.4.6"}, True),
        ("packages", {"numpy": "2.3.0"}, False),
        ("packages", {}, False),
        ("python", {"version": "3.11.7"}, False),
        ("machine", {"processor": {"name": "another"}}, False),
    ],
)
def test_paces_compare_where_the_work_is_the_same(part: str, value: Any, same: bool) -> None:
    there = copy.deepcopy(HERE) | {part: value}
    assert comparable_paces(HERE, there) is same
    assert comparable_paces(HERE, HERE) and not comparable_paces({}, {})
