"""Macros of knobs that a space does not have, as far as a file's text shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.measure.loading.written_macros import require_macros
from autotune.space.spec import PythonObjective

KERNEL = """
from autotune.measure.kernels import compiled_c
from autotune.measure.kernels.compiled_c import CompiledC

raise RuntimeError("nothing of this file is run")

class Kernel({bases}):
    function = "run"
    {body}
"""


def refused(folder: Path, body: str, bases: str = "CompiledC") -> str:
    (folder / "it.py").write_text(KERNEL.format(bases=bases, body=body))
    try:
        require_macros(PythonObjective("it.py:Kernel", folder), ["tile", "unroll"])
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("bases", ["CompiledC", "compiled_c.CompiledC"])
@pytest.mark.parametrize(
    "body",
    [
        'macros = {"tile": "TILE", "unrol": "UNROLL"}',
        'macros: ClassVar[Mapping[str, str]] = {"tile": "TILE", "unrol": "UNROLL"}',
    ],
)
def test_a_macro_of_a_knob_that_no_space_has(tmp_path: Path, body: str, bases: str) -> None:
    said = refused(tmp_path, body, bases)
    assert f"{tmp_path / 'it.py'}:7" in said
    assert "Kernel.macros has the knob 'unrol'" in said and "did you mean 'unroll'?" in said


@pytest.mark.parametrize(
    ("body", "bases"),
    [
        ('macros = {"tile": "TILE"}', "CompiledC"),
        ("macros = {name: name.upper() for name in KNOBS}", "CompiledC"),
        ('macros = {**MORE, "unrol": "UNROLL"}', "CompiledC"),
        ('macros = {"unrol": "UNROLL"}', "Another"),
        ('macros = {"unrol": "UNROLL"}', "CompiledC, Another"),
        ('macros = {"unrol": "UNROLL"}', "CompiledC, knobs=1"),
        ('macros = {"unrol": "UNROLL"}\n    macros = {}', "CompiledC"),
        ('macros = {"unrol": "UNROLL"}\n    def knob_problems(self, knobs): return []', "CompiledC"),
        ("pass", "CompiledC"),
    ],
)
def test_what_is_not_sure_is_left_to_the_search(tmp_path: Path, body: str, bases: str) -> None:
    assert refused(tmp_path, body, bases) == ""
