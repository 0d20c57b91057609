"""The kernel says what of a file is on the disk, and what it lies on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.objectives.beside import importable
from tests.objectives.storage.small import STORAGE, on_disk


def test_what_is_written_is_unwritten_until_it_is_synchronised(tmp_path: Path) -> None:
    importable(STORAGE)
    from files_of_kernel import cached

    with on_disk(tmp_path) as folder, (folder / "some").open("wb", buffering=0) as file:
        file.write(bytes(100_000))
        found = cached(folder / "some")
        if found is None:
            pytest.skip("this kernel does not say what of a file is on the disk")
        assert found.held > 0 and found.unwritten > 0
        os.fsync(file.fileno())
        assert cached(folder / "some").unwritten == 0  # type: ignore[union-attr]


def test_a_file_system_has_its_name() -> None:
    importable(STORAGE)
    from files_of_kernel import file_system

    assert file_system(Path("/proc/self")) == "proc" and file_system(Path("/")) not in ("", "proc")


def test_a_mounted_folder_is_known_by_its_letters() -> None:
    importable(STORAGE)
    from files_of_kernel import unescaped

    assert unescaped(r"/mnt/große\040Platte\134") == "/mnt/große Platte\\"


def test_bringing_a_page_to_the_disk_takes_time_and_leaves_nothing(tmp_path: Path) -> None:
    importable(STORAGE)
    from files_of_kernel import sync_seconds

    assert sync_seconds(tmp_path) > 0 and not list(tmp_path.iterdir())
