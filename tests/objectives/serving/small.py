"""A small model that is served."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
from autotune.space.spec import PythonObjective
from tests.objectives.beside import OBJECTIVES, importable

SERVING = OBJECTIVES / "serving"
SMALL = {"inputs": 8, "hidden": 16, "outputs": 3, "limit_ms": 20_000, "repeated": 0.5, "popular": 20}
"""No machine is too slow for the limit."""


def small_server(cache: Path, folder: Path = SERVING, **workload: Any) -> Any:
    importable(folder)
    spec = PythonObjective("serving.py:Serving", folder)
    return load_objective(spec, Context({**SMALL, **workload}, {}, cache))
