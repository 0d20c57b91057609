"""Where recipes are looked for: files, then the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError, StoreError
from autotune.hook.recipes.places import Places
from autotune.hook.recipes.stored import import_known, known_in
from autotune.store.databases.address import read_address
from autotune.store.store import Store
from tests.hook.asking import ELSEWHERE, ask, filed
from tests.hook.stores import add_study

pytestmark = pytest.mark.usefixtures("nothing_is_kept")


def test_a_committed_file_comes_before_the_store(store: Store, tmp_path: Path) -> None:
    add_study(store, tile=4)
    file = filed(store, tmp_path / "tuned" / "recipes.json")
    add_study(store, tile=8, speedup={"against": "", "estimate": 3.0, "low": 2.9, "high": 3.1})
    assert ask({"n": 1024}).configuration["tile"] == 8
    assert ask({"n": 1024}, recipes=file).configuration["tile"] == 4
    add_study(store, workload={"n": 64}, tile=2)
    assert ask({"n": 64}, recipes=file).configuration["tile"] == 2  # what the file has not, the store has


def test_the_files_of_the_variable_and_of_the_folder(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_study(store, tile=4)
    file = filed(store, tmp_path / "tuned" / "recipes.json")
    monkeypatch.setenv("AUTOTUNE_STORE", str(tmp_path / "none.db"))
    with pytest.raises(InputError):
        ask({"n": 1024})
    monkeypatch.setenv("AUTOTUNE_RECIPES", str(file))
    assert ask({"n": 1024}).configuration["tile"] == 4
    monkeypatch.setenv("AUTOTUNE_RECIPES", "1")  # switches recipes on in a program, and names no file
    monkeypatch.chdir(file.parent)
    assert ask({"n": 1024}).configuration["tile"] == 4
    monkeypatch.setenv("AUTOTUNE_RECIPES", str(tmp_path / "missing.json"))
    with pytest.raises(InputError, match="there is no such file"):
        ask({"n": 1024})


def test_two_devices_in_one_file(store: Store, tmp_path: Path) -> None:
    add_study(store, tile=4, device=ELSEWHERE)
    add_study(store, tile=8)
    file = filed(store, tmp_path / "recipes.json")
    best = ask({"n": 1024}, recipes=file, store=tmp_path / "none.db")
    assert (best.kind, best.configuration["tile"]) == ("exact", 8)


def test_a_file_knows_the_constraints_and_the_default(store: Store, tmp_path: Path) -> None:
    add_study(store, tile=8)
    file = filed(store, tmp_path / "recipes.json")
    elsewhere = {"recipes": file, "store": tmp_path / "none.db"}
    assert ask({"n": 512}, **elsewhere).configuration["tile"] == 8
    assert ask({"n": 4}, **elsewhere).configuration["tile"] == 1


def test_what_was_imported_is_found(store: Store, tmp_path: Path) -> None:
    add_study(store, tile=4)
    other = tmp_path / "other.db"
    with Store.open(other) as opened:
        assert import_known(opened, known_in(store.url.removeprefix("sqlite:///"))) == 1
    best = ask({"n": 1024}, store=other)
    assert (best.kind, best.configuration["tile"]) == ("exact", 4)
    assert ask({"n": 2}, store=other).kind == "default"


def test_a_store_that_fails_is_passed_over_unless_it_was_named(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_text("no database " * 100)
    with pytest.warns(UserWarning, match="the recipe is chosen without the store"):
        assert ask({"m": 64}, name="gemm-c").kind == "default"
    with (
        pytest.warns(UserWarning, match="without the store"),
        pytest.raises(InputError, match="no recipe and no study 'gemm-d'"),
    ):
        ask({"m": 64}, name="gemm-d")
    with pytest.raises(StoreError):
        ask({"m": 64}, name="gemm-c", store=tmp_path / "store.db")


def test_a_store_with_nothing_in_it_knows_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    assert ask({"m": 64}, name="gemm-c", store="empty.db").kind == "default"
    with pytest.raises(InputError, match="no recipe and no study 'gemm'"):
        ask({"m": 64}, store="empty.db")
    assert (tmp_path / "empty.db").stat().st_size == 0


def test_a_store_in_memory_is_refused_where_it_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="is in memory, where there is nothing to read yet"):
        ask({"m": 64}, name="gemm-c", store="sqlite://")
    monkeypatch.setenv("AUTOTUNE_STORE", "sqlite://")
    with pytest.warns(UserWarning, match="is in memory"):
        assert ask({"m": 64}, name="gemm-c").kind == "default"


def test_a_damaged_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "recipes.json").write_text("{")
    with pytest.raises(InputError, match=r"recipes.json:1:2"):
        ask({"m": 64}, name="gemm-c")


def test_a_store_that_is_only_read(store: Store, tmp_path: Path) -> None:
    add_study(store)
    store.close()
    file = tmp_path / "store.db"
    file.chmod(0o444)
    tmp_path.chmod(0o555)
    try:
        assert ask({"n": 1024}).kind == "exact"
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.parametrize(
    "written",
    [
        "a.db",
        "~/a.db",
        "sqlite:///a.db",
        "sqlite:///~/a.db",
        "sqlite+pysqlite:////a/b.db",
        "sqlite:///a.db?mode=ro",
    ],
)
def test_the_file_of_the_store_is_the_one_that_is_opened(written: str) -> None:
    assert Places.of(store=written).store_file == read_address(written).file


@pytest.mark.parametrize("written", ["sqlite://", "sqlite:///:memory:", ":memory:", "postgresql://host/db"])
def test_a_store_without_a_file(written: str) -> None:
    assert Places.of(store=written).store_file is None


def test_a_default_store_that_may_not_be_looked_at_does_no_harm(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_study(store, tile=4)
    file = filed(store, tmp_path / "tuned" / "recipes.json")
    monkeypatch.setenv("AUTOTUNE_STORE", str(tmp_path / ("a" * 300)))
    with pytest.warns(UserWarning, match="chosen without the store: .*File name too long"):
        assert ask({"n": 64}, recipes=file).kind == "nearest"
