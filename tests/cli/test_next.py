"""The commands that a verb ends with work when they are pasted."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.cli.options import same_store
from autotune.store.databases.address import VARIABLE, read_address
from tests.cli.conftest import autotune

FILES = [
    "study.db",
    "my studies/a $b.db",
    "./study.db",
    "sqlite:///my studies/it's.db",
    "sqlite:////abs/study.db",
    "~/s.db",
]


@pytest.mark.parametrize("written", FILES)
def test_the_store_is_the_same_whoever_named_it(monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    option, said = shlex.split(same_store(written))
    assert option == "--store" and read_address(said) == read_address(written)
    monkeypatch.setenv(VARIABLE, written)
    assert same_store(None) == same_store(written)


def test_the_default_store_needs_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert same_store(None) == ""


def test_a_password_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://me:secret@host/db?sslmode=require&application_name=a"
    assert "secret" not in same_store(url) and "host/db" in same_store(url)
    _, said = shlex.split(same_store(f"{url}&sslpassword=secret"))
    bare = read_address("postgresql://me@host/db?sslmode=require&application_name=a")
    assert read_address(said) == bare, "nor stars, which would be taken for it"
    monkeypatch.setenv(VARIABLE, url)
    assert same_store(None) == ""


def test_every_command_that_a_search_ends_with_can_be_pasted(folder: Path, tmp_path: Path) -> None:
    there = tmp_path / "my space"
    there.mkdir()
    shutil.copy(folder / "objective.py", there)
    (there / "space.yaml").write_text(
        (folder / "space.yaml").read_text().replace("finalists: 2", "finalists: 0")
    )
    done = autotune(tmp_path, "search", "my space/space.yaml", "--store", "a & b.db", "--trials", "4")
    assert done.returncode == 0, done.stderr
    commands = [line for line in done.stdout.partition("next:")[2].splitlines() if line.strip()]
    assert len(commands) == 4
    for command in commands:
        run = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert run.returncode == 0, (command, run.stderr)
    assert {path.name for path in tmp_path.glob("*.db")} == {"a & b.db"}, "another store was made"


def test_the_python_that_is_meant_is_named(folder: Path) -> None:
    done = autotune(folder, "search", "space.yaml", "--store", "study.db", "--trials", "12")
    best = next(line for line in done.stdout.splitlines() if " best --format yaml" in line)
    python = Path(shutil.which(shlex.split(best)[0]) or "")
    assert python == Path(sys.executable)


def test_the_commands_for_a_folder_whose_name_begins_with_a_dash(tmp_path: Path) -> None:
    done = autotune(tmp_path, "init", "--", "-x")
    check, search = (
        line.removeprefix("next:").split() for line in done.stdout.splitlines() if " ./-x" in line
    )
    assert check[:2] == ["autotune", "check"] and search[:3] == ["autotune", "search", check[2]]
    assert autotune(tmp_path, *check[1:]).returncode == 0
