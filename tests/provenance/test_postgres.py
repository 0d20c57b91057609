"""Which PostgreSQL server is found: the newest, or the one that a variable names."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.provenance.postgres import FOLDER, NEEDED, NoServerError, server_programs
from autotune.provenance.probe import postgresql_server


def installed(folder: Path, version: str, names: tuple[str, ...] = NEEDED) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with three, one of them on the PATH."""
    monkeypatch.delenv(FOLDER, raising=False)
    monkeypatch.setenv("PATH", f"{installed(tmp_path / 'old', '9.6')}:/usr/bin:/bin")
    for version in ("9.10", "16.2", "15.11"):
        installed(tmp_path / f"usr/lib/postgresql/{version}/bin", version)
    return tmp_path


def test_of_several_the_newest_is_taken(root: Path) -> None:
    found = server_programs(root)
    assert (found.version, found.folder) == ("16.2", root / "usr/lib/postgresql/16.2/bin")


def test_one_on_the_path_is_enough(root: Path) -> None:
    assert server_programs(root / "nowhere").folder == root / "old"


def test_the_one_that_is_named_is_taken(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(root / "old"))
    assert server_programs(root).version == "9.6"
    assert postgresql_server().detail == f"9.6 in {root / 'old'}"


def test_one_without_its_programs_is_none(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(root / "usr/lib/postgresql/17/bin", "17.0", ("postgres", "initdb"))
    assert server_programs(root).version == "16.2"
    monkeypatch.setenv(FOLDER, str(root / "usr/lib/postgresql/17/bin"))
    with pytest.raises(
        NoServerError, match=f"no PostgreSQL server in .*17.*{FOLDER}.*pgbench, psql are needed"
    ):
        server_programs(root)
    found = postgresql_server()
    assert not found.available and "apt install postgresql" in found.remedy
