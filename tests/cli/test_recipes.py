"""``autotune recipes`` and ``autotune verify``, as a user calls them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from autotune.cli.recipes import command as recipes
from autotune.cli.verify import command as verify
from autotune.errors import InputError, StoreError
from autotune.hook.recipes.file import read_known
from autotune.hook.recipes.stored import readings_behind
from autotune.hook.recipes.verifying import claim_of
from autotune.session.reproduction.causes import state_of
from autotune.store.store import Store
from tests.cli.calling import call
from tests.hook.stores import add_study


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two studies of one workload, one of another, and one of another device."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AUTOTUNE_RECIPES", raising=False)
    file = tmp_path / "store.db"
    monkeypatch.setenv("AUTOTUNE_STORE", str(file))
    with Store.open(file) as opened:
        add_study(opened, tile=8)
        add_study(opened, tile=2, verdict=False)
        add_study(opened, workload={"n": 64}, tile=4, verdict=False)
        add_study(opened, tile=16, device="another processor")
    return file


def test_they_are_listed(store: Path) -> None:
    listed = call(recipes)
    assert listed.return_value == 0
    assert "gemm on another processor (another device)" in listed.stdout
    assert "n 1024: 2x [1.9, 2.1] over the default, time 500 ms, gemm#1" in listed.stdout
    assert "n 64: the best of 1 trial, not defended" in listed.stdout
    assert "    tile: 8, layout: row" in listed.stdout
    document = json.loads(call(recipes, "--json").stdout)
    assert [one["configuration"]["tile"] for one in document["recipes"] if one["here"]] == [4, 8]
    assert document == json.loads(call(recipes, "list", "--store", store, "--json").stdout)


def test_where_there_is_none_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOTUNE_STORE", str(tmp_path / "none.db"))
    monkeypatch.delenv("AUTOTUNE_RECIPES", raising=False)
    nothing = call(recipes)
    assert nothing.return_value == 3
    assert f"looked in the store at {tmp_path / 'none.db'}, which is not there" in nothing.stderr
    assert isinstance(call(recipes, "export", "--to", "r.json").exception, InputError)
    Store.open("none.db").close()
    assert call(recipes, "export", "--to", "r.json").return_value == 3
    assert not Path("r.json").exists()


def test_exported_and_imported_they_are_the_same(store: Path, tmp_path: Path) -> None:
    done = call(recipes, "export", "--to", "tuned/recipes.json", "--json")
    assert json.loads(done.stdout) == {
        "file": "tuned/recipes.json",
        "store": f"sqlite:///{store}",
        "written": 3,
        "not_defended": 1,
        "recipes": 3,
    }
    text = Path("tuned/recipes.json").read_text()
    assert call(recipes, "export", "--to", "tuned/recipes.json").return_value == 0
    assert Path("tuned/recipes.json").read_text() == text
    assert json.loads(text)["recipes"][0]["configuration"] == {"layout": "row", "tile": 4}
    other = tmp_path / "other.db"
    imported = call(recipes, "import", "tuned/recipes.json", "--store", other)
    assert "3 recipes of" in imported.stdout
    assert call(recipes, "export", "--to", "again.json", "--store", other).return_value == 0
    assert json.loads(Path("again.json").read_text()) == json.loads(text)


def test_what_the_file_has_of_others_stays(store: Path, tmp_path: Path) -> None:
    call(recipes, "export", "--to", "recipes.json")
    with Store.open(tmp_path / "two.db") as opened:
        add_study(opened, name="conv")
    done = call(recipes, "export", "--to", "recipes.json", "--store", tmp_path / "two.db")
    assert "1 recipe written to recipes.json, which has 4 now" in done.stdout


def test_what_cannot_be_is_refused(store: Path) -> None:
    unknown = call(recipes, "export", "--to", "r.json", "--study", "gem").exception
    assert isinstance(unknown, InputError) and "did you mean 'gemm'?" in str(unknown)
    assert "there is no such file" in str(call(recipes, "import", "none.json").exception)
    Path("broken.json").write_text('{"autotune_recipes": 2,\n "recipes": [7]}')
    broken = call(recipes, "import", "broken.json").exception
    assert "broken.json:2:14: recipe 0 is 7" in str(broken)
    assert "broken.json:2:14" in str(call(recipes, "export", "--to", "broken.json").exception)
    assert isinstance(call(verify, "--recipes", "none.json").exception, InputError)
    Path("bad.db").write_text("no database " * 100)
    assert isinstance(call(recipes, "list", "--store", "bad.db").exception, StoreError)


# -- verify


@pytest.mark.long
def test_a_study_that_holds(folder: Path, tmp_path: Path) -> None:
    for name in ("space.yaml", "objective.py", "study.db"):
        shutil.copy(folder / name, tmp_path / name)
    before = call(verify, "--store", tmp_path / "study.db", "--json")
    assert before.return_value == 0, before.exception
    [found] = json.loads(before.stdout)["verified"]
    assert (found["verdict"], found["kept"]) == ("agrees", "kept as trials of small#1")
    assert found["now"]["speedup"]["value"] == pytest.approx(16.0)
    assert found["then"]["default"] == found["now"]["default"]
    with Store.open(tmp_path / "study.db") as opened:
        assert [t.purpose for t in opened.trials(1)][-2:] == ["default", "final"]
        assert len(opened.verdicts(1)) == 1  # the answer of the study is as it was


@pytest.mark.long
def test_what_has_changed_is_said_since_the_winner_was_measured(folder: Path, tmp_path: Path) -> None:
    """Not since the study began: of one without a verdict the winner's trial knows its environment."""
    database = tmp_path / "study.db"
    shutil.copy(folder / "study.db", database)
    with closing(sqlite3.connect(database)) as connection, connection:
        [began] = connection.execute("SELECT document FROM environments").fetchone()
        elsewhere = json.loads(began) | {"variables": {"OMP_NUM_THREADS": "64"}}
        row = ("elsewhere", json.dumps(elsewhere), 0.0)
        connection.execute("INSERT INTO environments VALUES (?, ?, ?)", row)
        connection.execute("UPDATE trials SET environment_hash = 'elsewhere' WHERE purpose = 'search'")
        connection.execute("DELETE FROM verdicts")
    [verified] = json.loads(call(verify, "--store", database, "--json").stdout)["verified"]
    assert "variables.OMP_NUM_THREADS: 64 -> nothing" in verified["changed"]


@pytest.mark.long
def test_recipes_of_a_file_and_of_another_source(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "recipes.json"
    call(recipes, "export", "--to", file, "--store", folder / "study.db")
    document = json.loads(file.read_text())
    [own] = document["recipes"]
    slow = own | {"workload": {}, "speedup": {"estimate": 3.0, "low": 2.9, "high": 3.1}, "source": "0" * 16}
    far = own | {"device": "another processor"}
    file.write_text(json.dumps(document | {"recipes": [slow, far]}))
    done = call(verify, "--recipes", file)
    assert done.return_value == 4, done.exception
    assert "small: differs: the speed-up is better than it was" in done.stdout
    assert "likely     the objective's source changed" in done.stdout
    assert "small: cannot be measured here: it is for another processor, and this is" in done.stdout
    file.write_text(json.dumps({"autotune_recipes": 2, "recipes": [own]}))
    alone = call(verify, "--recipes", file)
    assert alone.return_value == 3
    assert "cannot be measured here: its space file is not known" in alone.stdout
    document["spaces"]["small"]["file"] = "x" * 300  # longer than the name of a file can be
    file.write_text(json.dumps(document))
    nowhere = call(verify, "--recipes", file)
    assert (
        nowhere.return_value == 3 and "its space file" in nowhere.stdout and "is not there" in nowhere.stdout
    )


def test_recipes_of_a_file_know_how_busy_the_machine_was_then(folder: Path, tmp_path: Path) -> None:
    """As a study does: or else a busier machine would make the one differ, and the other not be told."""
    file = tmp_path / "recipes.json"
    call(recipes, "export", "--to", file, "--store", folder / "study.db")
    [recipe] = read_known(file).recipes
    with Store.open(folder / "study.db", readonly=True) as opened:
        study = opened.study("small")
        then = state_of(readings_behind(opened, study, recipe))
    assert then.shares.keys() >= {"cpu_stall", "steal"}
    state = claim_of(recipe).state
    assert state is not None and state.shares == pytest.approx(then.shares, abs=1e-3)


def test_what_was_searched_from_python_cannot_be_measured_here(store: Path) -> None:
    done = call(verify, "--study", "gemm#1")
    assert done.return_value == 3
    assert "gemm for n 1024: cannot be measured here: study gemm#1 was searched from Python" in done.stdout
