"""The store when its disk is full, may not be written, or its file is not what it should be.

What fails is real: file systems that are full, files that are overwritten.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.errors import StoreError
from autotune.measure.outcome import Outcome
from autotune.store.store import Store
from tests.faults.storing import finished
from tests.store.build import Bench, bench, outcome


def with_noise(n: int = 50) -> Outcome:
    """An outcome with a file that cannot be compressed."""
    return outcome(n=n, artifacts={"binary": random.randbytes(20_000)})


def fill(b: Bench, first: int, at_most: int = 5000) -> tuple[list[int], StoreError]:
    """Run trials until the store refuses; the ids that finished, and what it said."""
    done: list[int] = []
    for tile in range(first, first + at_most):
        try:
            trial = b.trial(tile)
            b.store.finish(trial.id, with_noise())
            done.append(trial.id)
        except StoreError as error:
            return done, error
    raise AssertionError("the store never refused")


# -- no room -------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.getuid() == 0 and not _mount("-t", "tmpfs", "-o", "size=2m", "tmpfs", folder)
    if not mounted:
        pytest.skip("mounting a small tmpfs needs root and the right to mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def _mount(*arguments: object) -> int:
    return subprocess.run(["mount", *map(str, arguments)], stderr=subprocess.DEVNULL).returncode


def test_a_full_disk_says_so_and_loses_nothing(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(400_000))
    with Store.open(small_disk / "a.db") as store:
        b = bench(store)
        done, error = fill(b, 0)
        assert done
        assert "the disk is full" in str(error)
        assert "Every trial that was finished is safe" in str(error)
        assert "Make space" in str(error)
        assert finished(store, b) == done  # it can still be read

        ballast.unlink()
        more, _ = fill(b, 10_000)  # the same store goes on
        assert more
    shutil.copytree(small_disk, small_disk.parent / "copy")
    with Store.open(small_disk.parent / "copy" / "a.db") as store:
        assert finished(store, b) == done + more
        assert store.integrity() == []


def test_a_limit_on_file_sizes_says_so_and_loses_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with Store.open(tmp_path / "a.db") as store:
        b = bench(store)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, hard))
        try:
            done, error = fill(b, 0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert done
        assert "a limit on file sizes is reached" in str(error)
        assert "Every trial that was finished is safe" in str(error)
        assert finished(store, b) == done
        trial = b.trial(10_000)
        store.finish(trial.id, with_noise())
    with Store.open(tmp_path / "a.db") as store:
        assert finished(store, b) == [*done, trial.id]
        assert store.integrity() == []


def test_no_room_for_a_new_store(small_disk: Path) -> None:
    with (
        (small_disk / "ballast").open("wb", buffering=0) as ballast,
        pytest.raises(OSError, match="No space"),
    ):
        while True:
            ballast.write(bytes(4096))
    with pytest.raises(StoreError, match="disk is full"):
        Store.open(small_disk / "a.db")
    (small_disk / "ballast").unlink()
    with Store.open(small_disk / "a.db") as store:
        assert store.studies() == []


# -- no right to write ---------------------------------------------------------------------------


def test_a_read_only_disk_can_be_read(small_disk: Path) -> None:
    with Store.open(small_disk / "a.db") as store:
        b = bench(store)
        trial = b.trial(1)
        store.finish(trial.id, outcome())
    assert _mount("-o", "remount,ro", small_disk) == 0
    with Store.open(small_disk / "a.db", readonly=True) as store:
        assert finished(store, b) == [trial.id]
        assert store.integrity() == []
    # A verification, of which no readings are kept then, does not go on.
    with pytest.raises(StoreError, match=r"may not be written.*again: a search goes on where it stood"):
        Store.open(small_disk / "a.db")
    with pytest.raises(StoreError, match="cannot be opened"):
        Store.open(small_disk / "folder" / "b.db")
    with pytest.raises(StoreError, match=r"c\.db cannot be opened"):  # it had named a draft of its own
        Store.open(small_disk / "c.db")


# -- not the file it should be -------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"autotune: 1\nname: gemm\n" * 200, b"x", bytes(8192)])
def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "space.yaml"
    file.write_bytes(content)
    for readonly in (False, True):
        with pytest.raises(StoreError, match="not an SQLite database"):
            Store.open(file, readonly=readonly)
    assert file.read_bytes() == content
    assert list(tmp_path.iterdir()) == [file]


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    Store.open(file).close()
    schema = file.stat().st_size // 4096
    with Store.open(file) as store:
        b = bench(store)
        b.propose(*range(500))
    content = bytearray(file.read_bytes())
    for page in range(schema, len(content) // 4096):  # the schema survives, the rows do not
        content[page * 4096 : page * 4096 + 2048] = b"\xa5" * 2048
    file.write_bytes(content)
    with Store.open(file) as store:
        with pytest.raises(StoreError, match="is damaged") as caught:
            store.trials(b.study.id)
        assert ".recover" in str(caught.value)
        assert any("integrity check" in line for line in store.integrity())


@pytest.mark.parametrize(
    ("written", "altered"),
    [(b'"dtype":"float32"', b'"dtype";"float32"'), (b"CREATE TABLE studies", b"CREATE \xf8ABLE studies")],
    ids=["within a row", "within the schema"],
)
def test_a_file_in_which_bytes_have_changed_says_so(tmp_path: Path, written: bytes, altered: bytes) -> None:
    file = tmp_path / "a.db"
    with Store.open(file) as store:
        bench(store)
    content = file.read_bytes()
    assert written in content
    file.write_bytes(content.replace(written, altered))
    with pytest.raises(StoreError, match=r"a\.db is damaged.*\.recover"), Store.open(file) as store:
        store.studies()


def test_a_file_that_is_deleted_meanwhile(tmp_path: Path) -> None:
    file, elsewhere = tmp_path / "a.db", tmp_path / "b.db"
    with Store.open(file) as store:
        b = bench(store)
        trial = b.trial(1)
        file.rename(elsewhere)
        with pytest.raises(StoreError, match="moved or deleted"):
            store.finish(trial.id, outcome())
        elsewhere.rename(file)
        store.finish(trial.id, outcome())
        assert finished(store, b) == [trial.id]
