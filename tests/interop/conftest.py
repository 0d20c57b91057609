from __future__ import annotations

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


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A store with a study that learned from another."""
    return make_origin(tmp_path)


@pytest.fixture
def archive(origin: Path, tmp_path: Path) -> Path:
    """The study's archive."""
    return write(origin, tmp_path / "odd.zip")
