"""The ``sources`` of an objective's class, as far as its text says them."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.measure.loading.declared_sources import declared_sources
from autotune.measure.loading.sources import require_sources, source_files, unread_sources
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


def test_a_source_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """Edits of the file that was meant would go unnoticed, and results of what it was would count."""
    (tmp_path / "kernel.c").touch()
    (tmp_path / "objective.py").write_text("class Mine:\n    sources = ('kernal.c', 'kernel.c')\n")
    with pytest.raises(InputError) as raised:
        require_sources(PythonObjective("objective.py:Mine", tmp_path))
    assert "Mine names 'kernal.c' among its `sources`, and there is no" in str(raised.value)
    assert "did you mean 'kernel.c'?" in str(raised.value)


@pytest.mark.parametrize("value", ["('kernel.c', 'folder')", "tuple(Path().glob('*.c'))", "()"])
def test_sources_that_are_there_or_cannot_be_read_are_let_through(tmp_path: Path, value: str) -> None:
    (tmp_path / "kernel.c").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "objective.py").write_text(f"class Mine:\n    sources = {value}\n")
    require_sources(PythonObjective("objective.py:Mine", tmp_path))
