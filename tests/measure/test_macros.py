"""The value of a macro is the knob's own, and not what is left of it as a whole number."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.measure.macros import definitions
from autotune.space.configuration import FrozenMap, Value


def test_numbers_and_texts_stand_as_they_are_and_flags_as_numbers() -> None:
    macros: dict[str, Value] = {
        "N": 4,
        "X": 2.5,
        "E": 1e-5,
        "TYPE": "unsigned long",
        "YES": True,
        "NO": False,
    }
    wanted = ["-DN=4", "-DX=2.5", "-DE=1e-05", "-DTYPE=unsigned long", "-DYES=1", "-DNO=0"]
    assert definitions(macros) == wanted


def test_so_do_numpys() -> None:
    macros = {"N": np.int64(4), "X": np.float32(0.5), "YES": np.bool_(True)}
    assert definitions(macros) == ["-DN=4", "-DX=0.5", "-DYES=1"]  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [("i", "j"), FrozenMap({"embed": 0})])
def test_what_no_macro_can_be_is_said(value: Value) -> None:
    with pytest.raises(TypeError, match=r"the macro ORDER cannot be set to .* one macro of each part"):
        definitions({"ORDER": value})
