"""A store that somebody has altered with SQL: readers are told where, and `autotune doctor` lists it all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from autotune.cli.best import command as best
from autotune.cli.doctor import command as doctor
from autotune.cli.show import command as show
from autotune.cli.trial import command as trial
from autotune.cli.why import command as why
from autotune.errors import AutotuneError, StoreError
from autotune.store.schema import metadata
from autotune.store.store import Store
from tests.cli.calling import call, document
from tests.store.build import bench, outcome


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with a trial that has succeeded."""
    with Store.open(tmp_path / "a.db") as opened:
        made = bench(opened)
        opened.finish(made.trial(1).id, outcome())
    return tmp_path / "a.db"


def alter(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


ALTERED = [
    ("studies", "document", "'[3]'", "is wrong: [3] is no object"),
    ("studies", "workload", "'{'", "is wrong: Expecting property name"),
    ("studies", "metrics", "'[3]'", "is wrong: '[3]' is no list of metrics"),
    ("studies", "created_at", "'long ago'", "is wrong: 'long ago' is no number"),
    ("studies", "next_told", "-1", "is wrong: -1 is no count"),
    ("studies", "next_told", "'x'", "is wrong: 'x' is no whole number"),
    ("segments", "document", "'[]'", "is wrong: [] is no object"),
    ("sessions", "settings", "'3'", "is wrong: 3 is no object"),
    ("trials", "configuration", "'[1]'", "is wrong: [1] is no object"),
    ("trials", "status", "'okay'", "is wrong: 'okay' is none of waiting, running, ok,"),
    ("trials", "purpose", "'play'", "is wrong: 'play' is none of search, final,"),
    ("trials", "metrics", "'{\"time\": 3}'", "is wrong: "),
    ("trials", "metrics", '\'{"time":{"value":"1","low":1,"high":1,"n":1}}\'', "is wrong: '1' is no number"),
    ("trials", "finished_at", "'x'", "is wrong: 'x' is no number"),
    ("trials", "peak_memory", "'much'", "is wrong: 'much' is no"),
    ("readings", "value", "'x'", "is wrong: 'x' is no number"),
    ("readings", "context", "'{'", "is wrong: Expecting property name"),
]


@pytest.mark.parametrize(("table", "column", "value", "said"), ALTERED)
def test_a_value_that_cannot_have_been_written_is_said_with_its_place(
    file: Path, table: str, column: str, value: str, said: str
) -> None:
    alter(file, f"UPDATE {table} SET {column} = {value}")
    key = "1/0" if table == "readings" else "1"
    [first, *_] = document(doctor, "--store", file)["findings"]
    assert first.startswith(f"{table} row {key}: {column} {said}")
    raised = [call(*verb, "--store", file).exception for verb in VERBS]
    told = [error for error in raised if isinstance(error, StoreError)]
    assert all(error is None or isinstance(error, AutotuneError) for error in raised)
    assert all(f"a.db is damaged ({first})" in str(error) for error in told)
    assert told or (table, column) in UNSHOWN


VERBS: tuple[tuple[Any, ...], ...] = (
    (show,),
    (show, "--study", "gemm"),
    (trial, "1"),
    (why, "1"),
    (best,),
)
UNSHOWN = {("trials", "purpose"), ("studies", "next_told")}
"""No verb fails for these."""


def test_a_value_that_is_missing_is_listed(file: Path) -> None:
    """SQLite refuses that, unless somebody has made the table anew."""
    with closing(sqlite3.connect(file)) as connection:
        [(made,)] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'segments'")
        made = made.replace("segments", "loose", 1).replace("reason TEXT NOT NULL", "reason TEXT")
        connection.executescript(
            f"{made}; INSERT INTO loose SELECT * FROM segments; UPDATE loose SET reason = NULL;"
            "DROP TABLE segments; ALTER TABLE loose RENAME TO segments;"
        )
    found = document(doctor, "--store", file)["findings"]
    assert found == ["segments row 1: reason is NULL"]


def test_all_of_a_store_that_nobody_altered_can_have_been_written(file: Path) -> None:
    with Store.open(file, readonly=True) as opened:
        assert opened.integrity() == []
    assert {"trials", "readings", "recipes"} <= metadata.tables.keys()
