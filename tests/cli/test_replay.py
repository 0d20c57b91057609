"""``autotune replay``, as a user calls it."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

import autotune
from autotune.cli.prune import command as prune
from autotune.cli.replay import command as replay
from autotune.errors import InputError
from autotune.store.store import Store
from tests.cli.calling import call, document
from tests.cli.conftest import OBJECTIVE


@pytest.fixture
def study(folder: Path, tmp_path: Path) -> Path:
    """The searched study with its files, in a folder where a test may change them."""
    for name in ("space.yaml", "objective.py", "study.db"):
        shutil.copy(folder / name, tmp_path / name)
    with Store.open(tmp_path / "study.db") as opened:
        text = opened.study("small").document["source"]
    # The study says where its files lay: only a copy there is found without --frozen.
    assert Path(text).parent == folder
    return tmp_path


def test_a_trial_that_holds(study: Path) -> None:
    with Store.open(study / "study.db") as opened:
        before = len(opened.trials(1))
    found = document(replay, "small:0", "--store", study / "study.db")
    assert (found["verdict"], found["runs"]) == ("agrees", 5)
    assert found["kept"] == "kept as trials of small#1"
    with Store.open(study / "study.db") as opened:
        kept = opened.trials(1)[before:]
        assert len(kept) == 5 and {trial.purpose for trial in kept} == {"final"}
        assert [trial.reason["run"] for trial in kept] == [0, 1, 2, 3, 4]
        assert {trial.reason["of"] for trial in kept} == {0}
        assert all(trial.environment_hash for trial in kept)
        assert opened.count_trials(1) == 12
    gone = document(prune, "--replays", "--yes", "--store", study / "study.db")
    assert (gone["trials"], gone["repeats"]) == (0, 5)
    with Store.open(study / "study.db") as opened:
        assert len(opened.trials(1)) == before and opened.integrity() == []


def test_another_result_is_said_to_differ(study: Path) -> None:
    """As though the machine had been a hundred times as fast then: the store says so, the readings do not."""
    import sqlite3

    with closing(sqlite3.connect(study / "study.db")) as connection, connection:
        metrics = '{"time":{"value":0.01,"low":0.01,"high":0.01,"n":5,"error":0.0}}'
        connection.execute("UPDATE trials SET metrics = ? WHERE number = 0", (metrics,))
    done = call(replay, "small:0", "--store", study / "study.db", "--runs", 2, "--no-keep")
    assert done.return_value == 4
    assert "differs: the measured value is worse than it was" in done.stdout
    assert "not kept" in done.stdout


def test_a_failure_that_still_fails_agrees(study: Path) -> None:
    with Store.open(study / "study.db") as opened:
        failed = next(t for t in opened.trials(1) if t.status.failed)
    done = call(replay, failed.id, "--store", study / "study.db")
    assert done.return_value == 0, done.exception
    assert f"agrees: it ends as {failed.status}, as it did" in done.stdout


def test_the_frozen_source_is_measured_where_the_files_are_gone(study: Path) -> None:
    import sqlite3

    away = study / "moved"
    with closing(sqlite3.connect(study / "study.db")) as connection, connection:
        connection.execute(
            "UPDATE studies SET document = json_set(document, '$.source', ?)", (str(away / "space.yaml"),)
        )
        connection.execute("UPDATE segments SET document = json_set(document, '$.folder', ?)", (str(away),))
    gone = call(replay, "small:0", "--store", study / "study.db")
    assert gone.return_value == 3 and "--frozen uses those that the store has kept" in gone.stdout
    frozen = document(replay, "small:0", "--frozen", "--runs", 2, "--store", study / "study.db")
    assert frozen["verdict"] == "agrees" and frozen["kept"].startswith("kept")


@pytest.mark.long
def test_a_script_that_is_run_by_its_path_is_measured_from_the_frozen_source(tmp_path: Path) -> None:
    script = tmp_path / "bench.sh"
    script.write_text('#!/bin/sh\necho "{\\"time\\": $1}"\n')
    script.chmod(0o755)
    space = tmp_path / "space.yaml"
    space.write_text(
        "autotune: 1\nname: script\ncommand: [./bench.sh, '{tile}']\nknobs: {tile: {values: [1, 2]}}\n"
        "measure: {finalists: 0}\n"
    )
    autotune.search(space, store=tmp_path / "study.db")
    script.unlink()
    found = document(replay, "script:1", "--frozen", "--runs", 2, "--store", tmp_path / "study.db")
    assert found["verdict"] == "agrees", found["why"]


def test_another_source_is_the_first_thing_that_changed(study: Path) -> None:
    import sqlite3

    with closing(sqlite3.connect(study / "study.db")) as connection, connection:
        for table, name in (("studies", "source"), ("segments", "folder")):
            place = study / "space.yaml" if name == "source" else study
            connection.execute(
                f"UPDATE {table} SET document = json_set(document, '$.{name}', ?)", (str(place),)
            )
    (study / "objective.py").write_text(OBJECTIVE.replace("1.0 / tile", "30.0 / tile"))
    found = document(replay, "small:0", "--runs", 2, "--store", study / "study.db")
    assert found["verdict"] == "differs" and "source has changed" in found["changed"][0]
    assert found["kept"] == "not kept: they are of another source"


def test_what_cannot_be_replayed_is_refused(study: Path) -> None:
    assert isinstance(call(replay, "small:99", "--store", study / "study.db").exception, InputError)
    with Store.open(study / "study.db") as opened:
        from tests.hook.stores import add_study

        add_study(opened, name="python")
        add_study(opened, name="taped", replayed=True)
    for name, why in (("python", "was searched from Python"), ("taped", "come from a recording")):
        done = call(replay, f"{name}:0", "--store", study / "study.db")
        assert done.return_value == 3 and why in done.stdout
