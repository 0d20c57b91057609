"""The facts of a workload, as Python hands them over."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.space import Flag, Space


@dataclass(frozen=True)
class Gemm:
    m: int = 8


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (Gemm(), "the workload is of the type Gemm\n  expected: facts by their names: {'m': 960, 'n': 960}"),
        (Gemm(), "dataclasses.asdict makes a mapping of a data class"),
        (None, "the workload is of the type NoneType"),
        ({"gemm": Gemm()}, "'gemm' of the workload is of the type Gemm\n  expected: a number, a flag"),
        ({"n": None}, "'n' of the workload is None"),
        ({"shape": np.arange(3)}, "its method tolist() makes a list of it"),
        ({"dtype": np.float32}, "of the type type\n  expected: a number, a flag, a text"),
        ({"dtype": np.float32}, "its name is a text: 'float32'"),
        ({1: 2}, "a fact of the workload is named 1"),
    ],
)
def test_what_is_no_workload_is_said(workload: object, message: str) -> None:
    """It had been an AttributeError of autotune's own, or spoke of knobs."""
    with pytest.raises(InputError, match=re.escape(message)):
        Space([Flag("a")], workload=workload)  # type: ignore[arg-type]


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Space([Flag("a")], device={"x": Path(), "y": 1j, "z": 2})  # type: ignore[dict-item]
    assert [str(one.message) for one in caught.value.problems] == [
        f"'x' of the device is of the type {type(Path()).__name__}",
        "'y' of the device is of the type complex",
    ]


def test_numbers_of_numpy_are_facts() -> None:
    space = Space([Flag("a")], workload={"n": np.int64(3), "shape": [1, (2, 3)], "type": {"bits": 32}})
    assert dict(space.workload) == {"n": 3, "shape": (1, (2, 3)), "type": {"bits": 32}}
