"""The modules of ``objectives/storage`` for their tests, as they are or with something planted in them."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
from autotune.space.spec import PythonObjective

FOLDER = Path(__file__).parents[3] / "objectives" / "storage"
SMALL = {
    "rows": 60,
    "value_bytes": 90,
    "skew": 0.5,
    "reads": 400,
    "misses": 80,
    "scans": 80,
    "scan_rows": 20,
    "transactions": 24,
    "transaction_rows": 5,
}


def importable(folder: Path = FOLDER) -> None:
    """The modules of this folder can be imported by name, and none of another one is there any more."""
    for file in FOLDER.glob("*.py"):
        sys.modules.pop(file.stem, None)
    sys.path[:] = [str(folder), *(entry for entry in sys.path if Path(entry).name != FOLDER.name)]


@contextmanager
def on_disk(folder: Path) -> Iterator[Path]:
    """A folder on a disk: this one, or where it lies in memory one of /var/tmp."""
    importable()
    from files_of_kernel import IN_MEMORY, file_system

    if file_system(folder) not in IN_MEMORY:
        yield folder
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as other:
        if file_system(Path(other)) in IN_MEMORY:
            pytest.skip("no folder that lies on a disk")
        yield Path(other)


def small_store(cache: Path, folder: Path = FOLDER, **workload: Any) -> Any:
    importable(folder)
    spec = PythonObjective("sqlite_store.py:SqliteStore", folder)
    return load_objective(spec, Context({**SMALL, **workload}, {}, cache))


def planted(cache: Path, *changes: tuple[str, str]) -> Any:
    """The objective where its table has these texts in the place of others."""
    folder = cache / FOLDER.name
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "sqlite_table.py"
    text = file.read_text()
    for old, new in changes:
        assert old in text, f"nothing to plant in the place of: {old}"
        text = text.replace(old, new)
    file.write_text(text)
    return small_store(cache, folder)
