"""The space of a kernel for each of its cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.hook.kernels.space import KernelSpace
from autotune.hook.recipes.case import Case
from autotune.space.knobs import Flag, OrderedValues
from autotune.space.space import Space


def case(**values: int) -> Case:
    return Case(values, {})


def test_knobs_by_name(tmp_path: Path) -> None:
    knobs = {
        "BLOCK": [128, 64, 64],
        "FUSED": [True, False],
        "HOW": ["tree", "line"],
        "num_warps": {"values": [2, 4, 8], "default": 4},
        "num_stages": range(1, 4),
    }
    space = KernelSpace("add", knobs, [], tmp_path / "kernels.py").space(case(n=4))
    assert len(space.feasible) == 2 * 2 * 2 * 3 * 3
    assert dict(space.default()) == {
        "BLOCK": 128, "FUSED": True, "HOW": "tree", "num_warps": 4, "num_stages": 1,
    }  # fmt: skip


def test_constraints_follow_the_case(tmp_path: Path) -> None:
    spaces = KernelSpace("add", {"BLOCK": [16, 32, 64]}, ["BLOCK <= n"], tmp_path / "kernels.py")
    assert [len(spaces.space(case(n=n)).feasible) for n in (16, 40, 64, 40)] == [1, 2, 3, 2]


def test_a_space_that_no_case_changes_is_made_once(tmp_path: Path) -> None:
    spaces = KernelSpace("add", {"BLOCK": [16, 32]}, ["BLOCK > 16"], tmp_path / "kernels.py")
    assert spaces.space(case(n=1)) is spaces.space(case(n=2))


def test_a_space_file_lies_beside_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "add.yaml").write_text(
        "autotune: 1\nname: x\nobjective: k.py:f\nworkload: {n: 1}\n"
        'knobs: {BLOCK: {values: [16, 32]}}\nconstraints: ["BLOCK <= n"]\n'
    )
    spaces = KernelSpace("add", "add.yaml", [], tmp_path / "kernels.py")
    spec = spaces.spec(case(n=16, m=3))
    assert (spec.name, len(spec.space.feasible), spec.source) == ("add", 1, tmp_path / "kernels.py")


def test_a_space_from_python(tmp_path: Path) -> None:
    space = Space([OrderedValues("BLOCK", (16, 32)), Flag("FUSED")])
    assert KernelSpace("add", space, [], tmp_path / "k.py").space(case(n=1)) is space


def test_what_is_wrong_is_said_of_the_kernel(tmp_path: Path) -> None:
    for knobs in ({"BLOCK": []}, {"BLOCK": {"range": [1]}}, {"max": [1, 2]}):
        with pytest.raises(InputError, match=r"the space of the kernel add \(.*kernels.py\)"):
            KernelSpace("add", knobs, [], tmp_path / "kernels.py").space(case(n=1))


@pytest.mark.parametrize("knob", [[64, None], {"values": [64, None]}, np.array([64, 128]), None])
def test_values_that_no_knob_can_have_are_said_at_once(tmp_path: Path, knob: Any) -> None:
    with pytest.raises(InputError, match=r"kernel add .*: the knob 'BLOCK' cannot be tuned over") as raised:
        KernelSpace("add", {"num_warps": [4, 8], "BLOCK": knob}, [], tmp_path / "kernels.py")
    assert "expected: a list of numbers, flags or texts" in str(raised.value)
