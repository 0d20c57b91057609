"""Paths as people write them."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from autotune.errors import InputError
from autotune.paths import expanded, may_be_there, written_whole


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


def test_what_cannot_be_written_whole_leaves_what_was_there(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("before")
    with pytest.raises(OSError, match="no space"), written_whole(file) as draft:
        draft.write_text("half of ")
        raise OSError("no space")
    assert file.read_text() == "before" and list(tmp_path.iterdir()) == [file]


def test_what_is_written_whole_keeps_its_permissions_and_the_links_to_it(tmp_path: Path) -> None:
    file, link = tmp_path / "a.txt", tmp_path / "link.txt"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    with written_whole(link) as draft:
        draft.write_text("after")
        assert file.read_text() == "before" and draft.suffix == ".txt"
    assert link.is_symlink() and file.read_text() == "after" and file.stat().st_mode & 0o777 == 0o640
    assert sorted(tmp_path.iterdir()) == [file, link]


def test_a_pipe_is_written_to_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with written_whole(pipe) as draft:
        assert draft == pipe


def test_what_lies_in_memory_is_a_file_like_any_other() -> None:
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        pytest.skip("this machine has no /dev/shm to write to")
    with TemporaryDirectory(dir=memory) as folder, written_whole(Path(folder) / "a.txt") as draft:
        assert draft != Path(folder) / "a.txt"
        draft.write_text("whole")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_what_is_open_already_is_written_to_directly(name: str) -> None:
    with written_whole(Path(name)) as draft:
        assert draft == Path(name)
