"""What is refused of a kernel's decorator, which needs no Triton."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autotune
from autotune.errors import InputError
from autotune.hook.kernels.checks import check_parameters, read_texts, read_tolerance
from autotune.space.knobs import Flag
from autotune.space.space import Space


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"space": None}, r"(?s)space is None.*autotune.Space or a space file"),
        ({"space": [64, 128]}, r"(?s)space is \[64, 128\].*knobs by name"),
        ({"key": None}, r"(?s)key is None.*expected: a list of names"),
        ({"key": "n"}, r"(?s)key is the text 'n'.*a list of names: \['n'\]"),
        ({"key": [1]}, "key has 1 in it"),
        ({"written": "out"}, "written is the text 'out'"),
        ({"constraints": "BLOCK > 1"}, r"(?s)constraints is the text.*a list of rules: \['BLOCK > 1'\]"),
        ({"constraints": [True]}, "constraints has True in it"),
        (
            {"constraints": ["B > 1"], "space": "k.yaml"},
            r"constraints are given, but space is a file: \['B > 1'\]",
        ),
        (
            {"constraints": ["B > 1"], "space": Space([Flag("B")])},
            r"(?s)space is an autotune.Space.*in the space itself",
        ),
        ({"tolerance": "x"}, "tolerance is 'x'"),
        ({"tolerance": -1}, r"(?s)tolerance is -1.*a number from 0 on"),
        ({"tolerance": float("nan")}, "tolerance is nan"),
        ({"tolerance": True}, "tolerance is True"),
        ({"trials": 0}, r"(?s)trials is 0.*a whole number, 1 or more"),
        ({"trials": 2.5, "time": -1}, r"(?s)trials is 2.5.*time is -1.*seconds, more than 0"),
        ({"time": "soon"}, "time is 'soon'"),
    ],
)
def test_what_is_no_setting_is_said_before_there_is_a_kernel(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        autotune.kernel(**{"space": {"BLOCK": [64, 128]}, "key": ["n"], **settings})


def test_what_is_one_is_read() -> None:
    assert read_texts("key", ()) == () and read_texts("key", iter(["n", "m"])) == ("n", "m")
    assert read_tolerance(None) is None
    assert [read_tolerance(one) for one in (0, 0.5, np.float32(0.25))] == [0.0, 0.5, 0.25]


def test_a_parameter_that_the_kernel_does_not_have() -> None:
    check_parameters("written", ["out"], ["x", "out"], "add")
    with pytest.raises(InputError, match=r"(?s)kernel add has no parameter 'oud', which written.*mean 'out'"):
        check_parameters("written", ["oud"], ["x", "out"], "add")
