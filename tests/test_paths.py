"""Paths as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.paths import expanded, may_be_there


def test_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/a.db") == tmp_path / "a.db"
    assert expanded("a~/b.db") == Path("a~/b.db")


def test_a_home_folder_that_nobody_knows() -> None:
    with pytest.raises(InputError, match="the home folder of the user 'no-such-user' that ~no-such-user"):
        expanded("~no-such-user/a.db")


def test_a_user_whom_the_machine_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(_: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", unknown)
    with pytest.raises(InputError, match=r"~/a\.db: the home folder that ~ stands for is not known"):
        expanded("~/a.db")


def test_what_cannot_be_looked_at_may_be_there(tmp_path: Path) -> None:
    assert not may_be_there(tmp_path / "a")
    assert may_be_there(tmp_path)
    assert may_be_there(tmp_path / ("a" * 300))
