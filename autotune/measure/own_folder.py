"""The folder that a configuration has of its own in the scratch folder of a search, while it is tried."""

from __future__ import annotations

import shutil
from pathlib import Path

from autotune.space.configuration import Configuration

FOLDER = "trials"
"""Where in the scratch folder these folders lie."""


def own_folder(scratch: Path, configuration: Configuration) -> Path:
    """Where what is built for a configuration lies, and its checkpoints."""
    return scratch / FOLDER / configuration.hash


def remove_own_folder(scratch: Path, configuration: Configuration) -> None:
    """Remove it, since a hundred builds or checkpoints may fill the disk."""
    shutil.rmtree(own_folder(scratch, configuration), ignore_errors=True)
