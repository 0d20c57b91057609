from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.archives.cases import make_origin, write


@pytest.fixture
def quiet_optuna() -> Iterator[None]:
    """Optuna says nothing but errors."""
    import optuna

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(level)


@pytest.fixture(scope="session")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the next two copy: the store before its study was written, and both after it."""
    folder = tmp_path_factory.mktemp("originals")
    origin = make_origin(folder)
    shutil.copy(origin, folder / "before.db")
    write(origin, folder / "odd.zip")
    return folder


@pytest.fixture
def origin(originals: Path, tmp_path: Path) -> Path:
    """A store with a study that learned from another."""
    return shutil.copy(originals / "before.db", tmp_path / "origin.db")


@pytest.fixture
def archive(originals: Path, origin: Path, tmp_path: Path) -> Path:
    """The study's archive."""
    shutil.copy(originals / "origin.db", origin)  # which knows now that it has written it
    return shutil.copy(originals / "odd.zip", tmp_path / "odd.zip")
