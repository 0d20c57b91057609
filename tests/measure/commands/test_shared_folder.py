"""Who is at a folder, and whose build stands in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autotune.measure.commands.shared_folder import BuildStamp, alone_at
from autotune.measure.cores.turns import VARIABLE


def test_a_stamp_says_what_was_built_last_and_by_whom(tmp_path: Path) -> None:
    own, other = (BuildStamp(tmp_path, tmp_path / owner) for owner in ("own", "other"))
    assert own.read() == ""
    own.clear()
    own.write("one\nof two lines")
    assert own.read() == "one\nof two lines" and other.read() == ""
    assert BuildStamp(tmp_path / "elsewhere", tmp_path / "own").read() == ""
    other.clear()
    assert own.read() == "", "somebody has begun to build"
    other.write("one")
    assert other.read() == "one" and own.read() == ""


def test_a_folder_has_one_stamp_by_whatever_path_it_is_reached(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    BuildStamp(tmp_path / "folder", tmp_path).write("one")
    assert BuildStamp(tmp_path / "link", tmp_path).read() == "one"


def test_where_nothing_can_be_written_down_it_is_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    stamp = BuildStamp(tmp_path, tmp_path)
    with alone_at(tmp_path):
        shutil.rmtree(tmp_path / "nowhere")  # as a mount that goes away
        stamp.clear()
        stamp.write("one")
        assert stamp.read() == ""
