"""The modules of ``objectives/distributed`` for their tests."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).parents[3] / "objectives" / "distributed"


def importable() -> None:
    """The modules of the folder can be imported by name, as they import one another."""
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
