"""A small store of keys and values, and a folder on a disk for it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
from autotune.space.spec import PythonObjective
from tests.objectives.beside import OBJECTIVES, importable

STORAGE = OBJECTIVES / "storage"
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


@contextmanager
def on_disk(folder: Path) -> Iterator[Path]:
    """A folder on a disk: this one, or where it lies in memory one of /var/tmp."""
    importable(STORAGE)
    from files_of_kernel import IN_MEMORY, file_system

    if file_system(folder) not in IN_MEMORY:
        yield folder
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as other:
        if file_system(Path(other)) in IN_MEMORY:
            pytest.skip("no folder that lies on a disk")
        yield Path(other)


def small_store(cache: Path, folder: Path = STORAGE, **workload: Any) -> Any:
    importable(folder)
    spec = PythonObjective("sqlite_store.py:SqliteStore", folder)
    return load_objective(spec, Context({**SMALL, **workload}, {}, cache))
