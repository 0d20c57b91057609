"""The modules of ``objectives/distributed`` for their tests, with something planted."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
from autotune.space.spec import PythonObjective
from tests.objectives.beside import OBJECTIVES, planted

FOLDER = OBJECTIVES / "distributed"


@contextmanager
def with_fault(
    target: str, workload: dict[str, Any], name: str, old: str, new: str, into: Path
) -> Iterator[Any]:
    """An objective of a copy of the folder, in whose file ``name`` stands ``new`` in the place of ``old``."""
    copy = planted(FOLDER, name, ((old, new),), into)
    known = {file.stem for file in FOLDER.glob("*.py")} & set(sys.modules)
    before = {module: sys.modules.pop(module) for module in known}
    sys.path.insert(0, str(copy))
    try:
        objective = load_objective(PythonObjective(target, copy), Context(workload, {}, into))
        try:
            yield objective
        finally:
            objective.tidy()
    finally:
        sys.path.remove(str(copy))
        for file in FOLDER.glob("*.py"):
            sys.modules.pop(file.stem, None)
        sys.modules.update(before)
