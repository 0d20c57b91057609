"""A search of the bowl."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import autotune
from autotune.space.spec import StudySpec
from tests.session.bowl import bowl, spec


@pytest.fixture
def search(tmp_path: Path) -> Callable[..., autotune.Result]:
    def run(given: StudySpec | None = None, **options: object) -> autotune.Result:
        options = {
            "objective": bowl,
            "store": tmp_path / "study.db",
            "strategy": "random",
            "seed": 5,
            **options,
        }
        return autotune.search(given or spec(tmp_path), **options)  # type: ignore[arg-type]

    return run
