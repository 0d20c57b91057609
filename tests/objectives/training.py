"""The modules of ``objectives/training`` for their tests, and small objectives of them."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
from autotune.space.configuration import FrozenMap
from autotune.space.reading.reader import read_spec
from autotune.space.spec import StudySpec
from tests.objectives.beside import OBJECTIVES
from tests.objectives.ready import SPACES

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="not installed: torch")

SMALL: dict[str, dict[str, Any]] = {
    "digits-mlp": {"width": 32, "depth": 1, "epochs": 3},
    "digits-mlp-time": {"width": 32, "depth": 1, "epochs": 12, "target": 1.5},
    "digits-cnn": {"channels": 2, "epochs": 3},
    "language-model": {"layers": 1, "width": 8, "heads": 2, "context": 16, "step_samples": 64, "epochs": 3},
}
"""Sizes at which a training takes a moment."""


def importable(of: str = "training") -> None:
    """The modules of a folder of objectives can be imported by name, as they import one another."""
    folder = str(OBJECTIVES / of)
    if folder not in sys.path:
        sys.path.append(folder)


def read_small(name: str, **workload: Any) -> StudySpec:
    """A ready space at a small size, on the CPU."""
    spec = read_spec(SPACES / f"{name}.yaml")
    own = {**spec.workload, **SMALL[name], "device": "cpu", **workload}
    return StudySpec(**{**vars(spec), "workload": FrozenMap(own)})


def small_objective(name: str, cache: Path, **workload: Any) -> Any:
    spec = read_small(name, **workload)
    return load_objective(spec.objective, Context(spec.workload, {}, cache))
