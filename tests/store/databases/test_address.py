"""Where a store is, as people write it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import autotune
from autotune.errors import InputError, StoreError
from autotune.space import Flag, Space
from autotune.store.databases.address import default_url, read_address
from autotune.store.store import Store


@pytest.mark.parametrize(
    "written", ["results/a.db", "sqlite:///results/a.db", "sqlite+pysqlite:///results/a.db"]
)
def test_a_file_relative_to_here(written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    address = read_address(written)
    assert address.file == tmp_path / "results" / "a.db"
    assert str(address) == f"sqlite:///{tmp_path}/results/a.db"
    assert read_address(str(address)) == address


def test_a_path_and_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert read_address(tmp_path / "a.db").file == tmp_path / "a.db"
    assert read_address("~/a.db").file == tmp_path / "a.db"


def test_a_home_folder_that_nobody_knows() -> None:
    with pytest.raises(InputError, match="the home folder of the user 'no-such-user'"):
        Store.open("~no-such-user/a.db")


def test_a_place_that_may_not_be_looked_at(tmp_path: Path) -> None:
    for readonly in (False, True):
        with pytest.raises(StoreError, match=r"cannot be opened \(File name too long.*another with --store"):
            Store.open(tmp_path / ("a" * 300), readonly=readonly)


@pytest.mark.parametrize("written", ["sqlite://", "sqlite:///:memory:", ":memory:"])
def test_memory(written: str) -> None:
    assert read_address(written).kind == "memory"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("me:secret@host:5432/team", "me:***@host:5432/team"),
        ("me@host/team?password=secret", "me@host/team?password=***"),
        ("/team?sslpassword=secret&sslmode=require", "/team?sslmode=require&sslpassword=***"),
    ],
)
def test_a_server_and_its_password(written: str, shown: str) -> None:
    address = read_address(f"postgresql://{written}")
    assert address.kind == "postgresql"
    assert address.url.drivername == "postgresql+psycopg"
    assert str(address) == address.where == f"postgresql+psycopg://{shown}"


@pytest.mark.parametrize("search", [autotune.search, autotune.ask_tell])
def test_a_store_that_is_open_is_no_address(
    search: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It made a file that was called <autotune.store.store.Store object at 0x7f2a>."""
    monkeypatch.chdir(tmp_path)
    study = autotune.StudySpec("study", Space([Flag("x")]))
    with Store.open("sqlite://") as store, pytest.raises(InputError, match="the store is of the type Store"):
        search(study, store=store)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("written", ["mysql://host/db", "http://host/db", "://", "postgresql://host:port/db"])
def test_what_is_no_store(written: str) -> None:
    with pytest.raises(InputError, match="postgresql://USER@HOST/DATABASE"):
        read_address(written)


def test_the_default_and_its_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AUTOTUNE_STORE", raising=False)
    assert default_url() == "sqlite:///results/autotune.db"
    monkeypatch.setenv("AUTOTUNE_STORE", "")
    assert default_url() == "sqlite:///results/autotune.db"
    monkeypatch.setenv("AUTOTUNE_STORE", str(tmp_path / "mine.db"))
    with Store.open() as store:
        assert store.url == f"sqlite:///{tmp_path}/mine.db"


NO_UTF8 = os.fsdecode(b"caf\xe9.db")


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "what?.db", "#1.db", "ünï.db", NO_UTF8, "file:x.db"])
def test_odd_names(name: str, tmp_path: Path) -> None:
    with Store.open(tmp_path / name):
        assert (tmp_path / name).is_file()
    with Store.open(tmp_path / name, readonly=True) as store:
        assert store.studies() == []
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_stays_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Store.open("a.db") as store:
        monkeypatch.chdir(tmp_path / "elsewhere")
        store.load((), {"e": {}}, ())
    assert not (tmp_path / "elsewhere" / "a.db").exists()


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"is a folder.*autotune\.db"):
        Store.open(tmp_path)


def test_a_reader_needs_one_that_is_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no store at .* yet"):
        Store.open(tmp_path / "new" / "a.db", readonly=True)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"):
        Store.open(tmp_path / "file" / "a.db")


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_nothing_new_is_made_beside_the_rest_of_a_deleted_store(ending: str, tmp_path: Path) -> None:
    file, rest = tmp_path / "a.db", tmp_path / f"a.db{ending}"
    rest.write_bytes(b"the last transactions")
    for _ in range(2):
        with pytest.raises(
            StoreError, match=rf"a\.db is gone.*a\.db{ending}: put the store back.* delete it too"
        ):
            Store.open(file)
    assert list(tmp_path.iterdir()) == [rest] and rest.read_bytes() == b"the last transactions"
    rest.unlink()
    with Store.open(file) as store:
        assert store.studies() == []


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match="cannot be reached"):
        Store.open(f"postgresql://me:secret@/team?host={tmp_path}")


def test_a_password_with_an_at_sign_is_not_taken_for_the_host() -> None:
    """Its second half had been printed: the host is shown, and the password is not."""
    with pytest.raises(InputError, match="two '@'") as refused:
        read_address("postgresql://tuner:se@cret@server/studies")
    assert "cret" not in str(refused.value) and "%40" in str(refused.value)
    assert "cret" not in str(read_address("postgresql://tuner:se%40cret@server/studies"))


def test_a_password_with_signs_of_an_address_is_to_be_encoded() -> None:
    """What is wrong had not been said: 'not a database URL'."""
    with pytest.raises(
        InputError, match=r"(?s)cannot be read.*write @ as %40, : as %3A and / as %2F"
    ) as refused:
        read_address("postgresql://tuner:p@ss:cr/et@server:5432/studies")
    assert "et@" not in str(refused.value)
    assert read_address("postgresql://tuner:p%40ss%3Acr%2Fet@server/studies").url.password == "p@ss:cr/et"
    with pytest.raises(InputError) as refused:
        read_address("nothing://")
    assert "%40" not in str(refused.value)
