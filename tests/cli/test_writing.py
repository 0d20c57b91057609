"""Files that verbs write."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from autotune.cli.writing import refuse_existing, write_text
from autotune.errors import InputError, OutputError


def test_a_text_and_its_folder(tmp_path: Path) -> None:
    write_text(tmp_path / "new" / "a.yaml", "größe: 1\n")
    assert (tmp_path / "new" / "a.yaml").read_bytes() == "größe: 1\n".encode()


def test_a_database_is_never_written_over(tmp_path: Path) -> None:
    file = tmp_path / "rule.json"
    with closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE a (b)")
    with pytest.raises(InputError, match="is a database"):
        write_text(file, "{}")


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "a.yaml", tmp_path / ("a" * 300)):
        with pytest.raises(OutputError, match="cannot write"):
            write_text(place, "")


def test_what_is_there_is_written_over_where_that_is_said(tmp_path: Path) -> None:
    source = tmp_path / "source.json"
    refuse_existing(tmp_path / "a.yaml", False, source)
    refuse_existing(tmp_path, True, source)
    with pytest.raises(InputError, match="add --force"):
        refuse_existing(tmp_path, False, source)


def test_what_is_read_is_never_written_over(tmp_path: Path) -> None:
    source, link, hard = (tmp_path / name for name in ("source.json", "link.yaml", "hard.yaml"))
    source.touch()
    link.symlink_to(source)
    hard.hardlink_to(source)
    for output in (source, link, hard):
        for force in (False, True):
            with pytest.raises(InputError, match="would be lost"):
                refuse_existing(output, force, source)
