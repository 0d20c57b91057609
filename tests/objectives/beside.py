"""The modules of a folder of ``objectives/`` for their tests, as they are or with something planted."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

OBJECTIVES = Path(__file__).parents[2] / "objectives"


def importable(folder: Path) -> None:
    """The modules of this folder can be imported by name, and those of copies of it are forgotten."""
    for file in (OBJECTIVES / folder.name).glob("*.py"):
        sys.modules.pop(file.stem, None)
    sys.path[:] = [str(folder), *(entry for entry in sys.path if Path(entry).name != folder.name)]


def planted(folder: Path, name: str, changes: tuple[tuple[str, str], ...], into: Path) -> Path:
    """A copy of a folder, ``into`` another, in which the file ``name`` has texts in the place of others."""
    copy = into / folder.name
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for old, new in changes:
        changed(copy / name, old, new)
    return copy


def changed(file: Path, old: str, new: str) -> None:
    """Put one text in the place of another."""
    text = file.read_text()
    assert old in text, f"nothing to plant in the place of: {old}"
    file.write_text(text.replace(old, new))
