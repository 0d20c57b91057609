"""Databases that other tools may write to, and those that they must not."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.interop.foreign_databases import is_database, refuse_database, refuse_store
from tests.interop.exported import make


def test_a_store_is_refused_and_other_databases_are_not(tmp_path: Path) -> None:
    make(tmp_path / "study.db").close()
    with pytest.raises(InputError, match="is a store of autotune's"):
        refuse_store(f"sqlite:///{tmp_path}/study.db")
    with closing(sqlite3.connect(tmp_path / "other.db")) as other, other:
        other.execute("CREATE TABLE studies (id)")
    (tmp_path / "notes.txt").write_text("no database")
    for url in ("other.db", "notes.txt", "nothing.db"):
        refuse_store(f"sqlite:///{tmp_path}/{url}")
    refuse_store("sqlite://")
    refuse_store("postgresql://nobody@127.0.0.1:1/nothing")
    refuse_store("unheard-of://server/base")
    assert not (tmp_path / "nothing.db").exists()


def test_no_text_is_written_over_a_database(tmp_path: Path) -> None:
    make(tmp_path / "study.db").close()
    (tmp_path / "notes.txt").write_text("no database")
    assert is_database(tmp_path / "study.db")
    with pytest.raises(InputError, match=r"study\.db is a database"):
        refuse_database(tmp_path / "study.db")
    refuse_database(tmp_path / "notes.txt")
    refuse_database(tmp_path / "nothing")
    refuse_database(tmp_path)
