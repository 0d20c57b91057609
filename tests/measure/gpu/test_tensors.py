"""Guarded tensors, and the comparison of tensors, against the same for arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from autotune.measure.gpu.tensors import (
    ALIGNMENT,
    GUARD_BYTES,
    CheckedInputs,
    GuardedTensor,
    tensor_error,
    unchanged,
)
from autotune.measure.kernels.guarded import FEW, scaled_error
from autotune.measure.objective import WrongAnswer

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch installs it")
pytestmark = pytest.mark.torch

DTYPES = [
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "float8_e4m3fn",
    "float8_e5m2",
    "int32",
    "uint8",
    "bool",
]


@pytest.mark.parametrize("name", DTYPES)
def test_poison_is_not_a_number_in_every_format(name: str) -> None:
    dtype = getattr(torch, name)
    guarded = GuardedTensor((3, 5), dtype, "cpu")
    guarded.poison()
    guarded.verify("out")
    assert guarded.tensor.dtype == dtype and tuple(guarded.tensor.shape) == (3, 5)
    assert guarded.tensor.is_contiguous() and guarded.tensor.data_ptr() % ALIGNMENT == 0
    if dtype.is_floating_point:
        assert bool(guarded.tensor.to(torch.float64).isnan().all())
    assert guarded.untouched()
    guarded.tensor[2, 4] = 1
    assert not guarded.untouched()


@pytest.mark.parametrize("offset", [-1, 15, -GUARD_BYTES, 15 + GUARD_BYTES - 1])
def test_a_single_byte_outside_is_noticed(offset: int) -> None:
    guarded = GuardedTensor((3, 5), torch.uint8, "cpu")
    guarded.poison()
    raw = guarded._raw
    raw[guarded.tensor.data_ptr() - raw.data_ptr() + offset] = 0
    side = "before" if offset < 0 else "behind"
    with pytest.raises(WrongAnswer, match=f"byte {abs(offset) if offset < 0 else offset - 14} {side} out"):
        guarded.verify("out")


@pytest.mark.parametrize("name", DTYPES)
def test_around_an_input_is_no_number_in_every_format(name: str) -> None:
    values = torch.arange(15).reshape(3, 5).to(getattr(torch, name))
    inputs = CheckedInputs({"flat": values, "turned": values.t()})
    inside = inputs.tensors["flat"]
    assert bool((inside == values).all()) and inside.data_ptr() % 16 == 0
    around = inside.as_strided((17,), (1,), inside.storage_offset() - 1)[[0, 16]]
    if values.dtype.is_floating_point:
        assert bool(around.to(torch.float64).isnan().all())
    assert inputs.tensors["turned"].data_ptr() == values.data_ptr(), "not in one piece"
    inputs.verify()


def test_an_empty_output_has_nothing_to_write() -> None:
    guarded = GuardedTensor((0, 4), torch.float32, "cpu")
    guarded.poison()
    guarded.verify("out")
    assert not guarded.untouched()
    assert tensor_error("out", guarded.tensor, torch.zeros(0, 4), 0.0) == 0


ANY = st.floats(allow_nan=True, allow_infinity=True, width=32)


@settings(deadline=None)
@given(hnp.arrays(np.float32, 5, elements=ANY), hnp.arrays(np.float32, 5, elements=ANY), st.floats(0, 2))
def test_errors_are_those_of_arrays(answer: Any, reference: Any, tolerance: float) -> None:
    try:
        expected = scaled_error("x", answer, reference, tolerance)
    except WrongAnswer as wrong:
        with pytest.raises(WrongAnswer) as caught:
            tensor_error("x", torch.from_numpy(answer), torch.from_numpy(reference), tolerance)
        assert str(caught.value).split("[")[0] == str(wrong).split("[")[0]
    else:
        found = tensor_error("x", torch.from_numpy(answer), torch.from_numpy(reference), tolerance)
        assert math.isclose(found, expected, rel_tol=1e-12)


def test_integers_agree_or_are_wrong() -> None:
    right = torch.arange(6).reshape(2, 3)
    assert tensor_error("kept", right.to(torch.int32), right, 0.0) == 0
    wrong = right.clone()
    wrong[1, 2] = 7
    with pytest.raises(WrongAnswer, match=r"kept\[1, 2\] is 7 instead of 5"):
        tensor_error("kept", wrong, right, 0.0)


def test_a_flag_that_is_never_written_is_wrong_whatever_it_should_be() -> None:
    for right in (True, False):
        guarded = GuardedTensor((3,), torch.bool, "cpu")
        guarded.poison()
        guarded.tensor[:2] = right
        reference = torch.full((3,), right)
        assert tensor_error("keep", reference.clone(), reference, 0.0) == 0
        with pytest.raises(WrongAnswer, match=rf"keep\[2\] is 203 instead of {right:d}"):
            tensor_error("keep", guarded.tensor, reference, 0.0)


def test_a_changed_bit_of_an_input_is_noticed_even_where_it_is_nan() -> None:
    before = torch.tensor([1.0, float("nan")])
    unchanged({"x": before}, {"x": before.clone()})
    with pytest.raises(WrongAnswer, match="changes its input x"):
        unchanged({"x": before}, {"x": torch.tensor([1.0, 2.0])})


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float8_e4m3fn"])
def test_inputs_that_are_one_number_throughout_are_named(name: str) -> None:
    kind = getattr(torch, name)
    inputs = CheckedInputs(
        {
            "zeros": torch.zeros(8, FEW // 8).to(kind),
            "halves": torch.full((FEW, 2), 0.5).to(kind).t(),
            "rising": torch.arange(FEW).float().to(kind),
            "few": torch.zeros(FEW - 1).to(kind),
            "mask": torch.ones(FEW, dtype=torch.int32),
        }
    )
    assert inputs.constant() == {"zeros": 0.0, "halves": 0.5}
