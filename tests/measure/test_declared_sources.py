"""The ``sources`` of an objective's class, as far as its text says them."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.measure.declared_sources import declared_sources
from autotune.measure.sources import source_files, unread_sources
from autotune.space.spec import PythonObjective


def declared(folder: Path, text: str) -> list[str]:
    (folder / "objective.py").write_text(text)
    found = declared_sources(folder / "objective.py", "Mine")
    assert not found.unread
    return [str(file.relative_to(folder)) for file in found.files]


@pytest.mark.parametrize(
    "text",
    [
        "class Mine:\n    sources = ('kernel.c', 'kernel.h')",
        "class Mine:\n    sources: ClassVar[tuple[str, ...]] = ('kernel.c', 'kernel.h')",
        "FILES = ['kernel.c', 'kernel.h']\nclass Mine:\n    sources = tuple(FILES)",
        "C, H = 'no', 'no'\nC: str = 'kernel.c'\nclass Mine:\n    H = 'kernel.h'\n    sources = (C, H)",
        "class Base:\n    sources = ('kernel.c', 'kernel.h')\nclass Mine(Base[int]):\n    pass",
        "class Base:\n    sources = ('kernel.c',)\n"
        "class Mine(Base):\n    sources = (*Base.sources, 'kernel.h')",
        "class Base:\n    sources = ('kernel.c',)\n"
        "class Mine(Base):\n    sources = Base.sources + ('kernel.h',)",
        "class Top:\n    sources = ('no.c',)\nclass One(Top):\n    pass\n"
        "class Two(Top):\n    sources = ('kernel.c', 'kernel.h')\nclass Mine(One, Two):\n    pass",
    ],
)
def test_what_a_file_says(tmp_path: Path, text: str) -> None:
    assert declared(tmp_path, text) == ["kernel.c", "kernel.h"]


@pytest.mark.parametrize(
    "text",
    [
        "from shared.base import Base\nclass Mine(Base): pass",
        "from shared import base\nclass Mine(base.Base): pass",
        "import shared.base\nclass Mine(shared.base.Base): pass",
        "import shared.base as b\nclass Mine(b.Base): pass",
        "from shared import Base as B\nclass Mine(B): pass",
        "from shared.base import *\nclass Mine(Base): pass",
        "from shared.base import Base as Mine",
    ],
)
def test_a_base_class_of_the_project(tmp_path: Path, text: str) -> None:
    """Its files lie beside it, wherever the class itself is."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "__init__.py").write_text("from .base import Base\n")
    (tmp_path / "shared" / "base.py").write_text("class Base:\n    sources = ('kernel.c',)\n")
    assert declared(tmp_path, text) == ["shared/kernel.c"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "class Mine(Missing, there.is_none): pass",
        "class Mine(Mine): pass",
        "from other import Mine",
        "class Mine:\n    sources = ()",
        "Mine = 3",
    ],
)
def test_where_there_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.py").write_text("from objective import Mine\n")
    assert declared(tmp_path, text) == []


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("tuple(Path().glob('*.c'))", ["*.c"]),
        ("(*FOUND, 'kernel.c')", ["kernel.c"]),
        ("sources + ('kernel.c',)", ["kernel.c", "kernel.c"]),
        ("os.SOURCES", []),
    ],
)
def test_what_only_running_it_could_tell_is_said(tmp_path: Path, text: str, known: list[str]) -> None:
    (tmp_path / "objective.py").write_text(f"import os\nclass Mine:\n    sources = {text}\n")
    objective = PythonObjective("objective.py:Mine", tmp_path)
    assert f"Mine names by `sources = {text}`" in unread_sources(objective)
    files = declared_sources(tmp_path / "objective.py", "Mine").files
    assert [file.name for file in files] == known


def test_an_inherited_source_is_one_of_the_objective(tmp_path: Path) -> None:
    (tmp_path / "base.py").write_text("class Base:\n    sources = ('kernel.c',)\n")
    (tmp_path / "objective.py").write_text("from base import Base\nclass Mine(Base): pass\n")
    objective = PythonObjective("objective.py:Mine", tmp_path)
    assert [file.name for file in source_files(objective)] == ["objective.py", "kernel.c", "base.py"]
    assert unread_sources(objective) == ""
