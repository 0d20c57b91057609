"""Drivers to test against where there is none: small C files behind the real loaders."""

from __future__ import annotations

import subprocess
from pathlib import Path


def compile_library(source: str, folder: Path, name: str) -> None:
    """Compile a C file of this folder to the shared library ``folder/name``."""
    path = Path(__file__).with_name(source)
    subprocess.run(["gcc", "-shared", "-fPIC", str(path), "-o", str(folder / name)], check=True)
