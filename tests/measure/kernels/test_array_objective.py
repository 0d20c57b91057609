"""The oracle of kernels over arrays: what it lets through and what it does not."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from autotune.measure.facts import CONSTANT_INPUTS
from autotune.measure.kernels.array_objective import READING_SECONDS, ArrayObjective
from autotune.measure.kernels.guarded import (
    ALIGNMENT,
    FEW,
    GUARD_BYTES,
    CheckedInputs,
    GuardedArray,
    aligned,
    scaled_error,
)
from autotune.measure.objective import Context, WrongAnswer
from autotune.measure.phases.runner import Runner
from autotune.space.spec import MeasureSettings, MetricSpec
from autotune.status import Status

CONTEXT = Context({}, {}, Path())


class Kernel(ArrayObjective):
    """out = x + 1, computed by whatever is loaded."""

    dtype: Any = np.float32
    calls = 0

    def make_inputs(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"x": rng.integers(0, 100, (4, 5)).astype(self.dtype)}

    def outputs(self) -> dict[str, Any]:
        return {"out": ((4, 5), self.dtype)}

    def reference(self, inputs: Any) -> dict[str, np.ndarray]:
        return {"out": inputs["x"] + 1}

    def call(self, loaded: Callable[..., None], inputs: Any, outputs: Any) -> None:
        self.calls += 1
        loaded(inputs["x"], outputs["out"])


class IntegerKernel(Kernel):
    dtype = np.int32


def right(x: np.ndarray, out: np.ndarray) -> None:
    np.add(x, 1, out=out)


def check(kernel: Callable[..., None], kind: type[Kernel] = Kernel) -> float:
    return kind(CONTEXT).check(kernel, np.random.default_rng(0))["error"]


@pytest.mark.parametrize("kind", [Kernel, IntegerKernel])
def test_a_right_kernel_passes(kind: type[Kernel]) -> None:
    assert check(right, kind) == 0


def test_small_errors_are_rounding_for_floats_and_wrong_for_integers() -> None:
    def nearly(x: np.ndarray, out: np.ndarray) -> None:
        right(x, out)
        out += np.asarray(1e-4, dtype=out.dtype) if out.dtype.kind == "f" else 1

    assert 0 < check(nearly) < 1e-4
    with pytest.raises(WrongAnswer, match=r"out\[0, 0\] is \d+ instead of \d+; 1 of out is wrong"):
        check(nearly, IntegerKernel)


@pytest.mark.parametrize("kind", [Kernel, IntegerKernel])
def test_an_element_that_is_never_written_is_noticed(kind: type[Kernel]) -> None:
    def forgetful(x: np.ndarray, out: np.ndarray) -> None:
        out[:, :4] = x[:, :4] + 1

    with pytest.raises(WrongAnswer, match=r"out\[0, 4\] is .* instead of .*; 0.2 of out is wrong"):
        check(forgetful, kind)


@pytest.mark.parametrize("place", [-1, 20, -GUARD_BYTES // 4, 19 + GUARD_BYTES // 4])
def test_what_lies_outside_an_input_is_no_number(place: int) -> None:
    def too_far(x: np.ndarray, out: np.ndarray) -> None:
        pointer = ctypes.cast(x.ctypes.data, ctypes.POINTER(ctypes.c_float))
        np.add(x, 1 + 0 * np.float32(pointer[place]), out=out)

    with pytest.raises(WrongAnswer, match=r"out\[0, 0\] is nan"):
        check(too_far)


def test_an_input_that_is_not_in_one_piece_is_given_as_it_is() -> None:
    whole = np.arange(8.0)
    masked = np.ma.masked_less(whole[1:], 3.0)
    made = {"half": whole[::2], "whole": whole, "empty": np.empty((0, 3)), "masked": masked}
    inputs = CheckedInputs(made)
    assert list(inputs.arrays) == list(made) and inputs.arrays["half"] is made["half"]
    copy = inputs.arrays["whole"]
    assert not np.shares_memory(copy, whole) and (copy == whole).all()
    assert inputs.arrays["empty"].shape == (0, 3)
    assert inputs.arrays["masked"] is masked and aligned(masked) is masked
    inputs.verify()


def test_a_flag_that_is_never_written_is_wrong_whatever_it_should_be() -> None:
    for right in (True, False):
        guarded = GuardedArray((3,), np.bool_)
        guarded.poison()
        guarded.array[:2] = right
        reference = np.full(3, right)
        assert scaled_error("keep", reference.copy(), reference, 0.0) == 0
        with pytest.raises(WrongAnswer, match=rf"keep\[2\] is 203 instead of {right:d}"):
            scaled_error("keep", guarded.array, reference, 0.0)


@pytest.mark.parametrize(
    ("offset", "side"), [(-1, "before"), (80, "behind"), (-4000, "before"), (4000, "behind")]
)
def test_a_single_byte_outside_is_noticed(offset: int, side: str) -> None:
    def spill(x: np.ndarray, out: np.ndarray) -> None:
        right(x, out)
        ctypes.memset(out.ctypes.data + offset, 1, 1)

    with pytest.raises(WrongAnswer, match=f"writes outside its buffer: byte .* {side} out was changed"):
        check(spill)


@pytest.mark.parametrize(("offset", "side"), [(-1, "before"), (80, "behind")])
def test_a_single_byte_outside_an_input_is_noticed(offset: int, side: str) -> None:
    def spill(x: np.ndarray, out: np.ndarray) -> None:
        right(x, out)
        ctypes.memset(x.ctypes.data + offset, 1, 1)

    with pytest.raises(WrongAnswer, match=f"writes outside its buffer: byte 1 {side} x was changed"):
        check(spill)


def test_a_changed_input_is_noticed_even_where_the_answer_is_right() -> None:
    def spoil(x: np.ndarray, out: np.ndarray) -> None:
        right(x, out)
        x[2, 2] = -x[2, 2] - 1

    with pytest.raises(WrongAnswer, match="changes its input x"):
        check(spoil)


def test_an_answer_that_is_kept_for_later_calls_is_noticed() -> None:
    kept: list[np.ndarray] = []

    def first_answer(x: np.ndarray, out: np.ndarray) -> None:
        kept.append(x + 1)
        out[...] = kept[0]

    with pytest.raises(WrongAnswer, match="out"):
        check(first_answer)


def test_an_answer_that_is_kept_for_each_shape_is_noticed() -> None:
    """As by weights that are packed once for a shape: each shape of a check had been called once."""

    class Rows(Kernel):
        def make_inputs(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
            return {"x": rng.standard_normal((int(self.context.workload["rows"]), 5), dtype=np.float32)}

        def outputs(self) -> dict[str, Any]:
            return {"out": ((int(self.context.workload["rows"]), 5), np.float32)}

        def vary(self, rng: np.random.Generator) -> dict[str, int]:
            return {"rows": int(rng.integers(1, 1000))}

    kept: dict[int, np.ndarray] = {}

    def first_of_its_shape(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = kept.setdefault(len(x), x + 1)

    objective = Rows(Context({"rows": 4}, {}, Path()))
    assert objective.check(right, np.random.default_rng(0))["error"] == 0
    with pytest.raises(WrongAnswer, match=r"where the workload has rows .* out"):
        objective.check(first_of_its_shape, np.random.default_rng(0))


def test_what_goes_wrong_from_the_second_call_on_is_noticed() -> None:
    calls: list[int] = []

    def once(x: np.ndarray, out: np.ndarray) -> None:
        calls.append(1)
        np.add(x, len(calls), out=out)

    with pytest.raises(WrongAnswer, match="out"):
        check(once)


def test_a_tolerance_of_ones_own() -> None:
    class Strict(Kernel):
        tolerance = {"out": 1e-9}  # noqa: RUF012

    def nearly(x: np.ndarray, out: np.ndarray) -> None:
        right(x, out)
        out *= np.float32(1 + 1e-6)

    assert check(nearly) > 0
    with pytest.raises(WrongAnswer, match="tolerance 1e-09"):
        check(nearly, Strict)


class Total(Kernel):
    """out = the sum of x: a single number."""

    def outputs(self) -> dict[str, Any]:
        return {"out": ((), self.dtype)}

    def reference(self, inputs: Any) -> dict[str, np.ndarray]:
        return {"out": inputs["x"].sum(dtype=self.dtype)}


class IntegerTotal(Total):
    dtype = np.int32


@pytest.mark.parametrize("kind", [Total, IntegerTotal])
def test_an_output_that_is_a_single_number(kind: type[Kernel]) -> None:
    def total(x: np.ndarray, out: np.ndarray) -> None:
        out[...] = x.sum(dtype=out.dtype)

    def forgetful(x: np.ndarray, out: np.ndarray) -> None:
        pass

    assert check(total, kind) == 0
    with pytest.raises(WrongAnswer, match=r"out is .* instead of \d+"):
        check(forgetful, kind)


class Sized(Kernel):
    """As many elements as the workload says; other numbers of them as well."""

    def make_inputs(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"x": rng.standard_normal(self.context.workload["size"], dtype=np.float32)}

    def outputs(self) -> dict[str, Any]:
        return {"out": ((self.context.workload["size"],), np.float32)}

    def vary(self, rng: np.random.Generator) -> dict[str, Any]:
        return {"size": int(rng.integers(1, 50))}


def test_what_is_wrong_for_other_shapes_only_is_noticed() -> None:
    def in_eights(x: np.ndarray, out: np.ndarray) -> None:
        np.add(x, 1, out=out)
        out[len(out) // 8 * 8 :] = 0

    objective = Sized(Context({"size": 64, "name": "kept"}, {}, Path()))
    assert objective.check(right, np.random.default_rng(0))["error"] == 0
    with pytest.raises(WrongAnswer, match=r"where the workload has size \d+: out\[\d+\] is 0.0 instead"):
        objective.check(in_eights, np.random.default_rng(0))


@pytest.mark.parametrize("offset", range(0, ALIGNMENT, 4))
def test_where_the_allocator_put_an_input_makes_no_difference(offset: int) -> None:
    raw = np.empty(20 * 4 + 2 * ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % ALIGNMENT + offset

    class Placed(Kernel):
        def make_inputs(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
            x = raw[start : start + 80].view(np.float32).reshape(4, 5)
            x[...] = rng.integers(0, 100, (4, 5))
            return {"x": x}

    seen = []

    def noted(x: np.ndarray, out: np.ndarray) -> None:
        seen.append((x.ctypes.data % ALIGNMENT, out.ctypes.data % ALIGNMENT, x.sum()))

    Placed(CONTEXT).measure(noted, np.random.default_rng(0))
    expected = np.random.default_rng(0).integers(0, 100, (4, 5)).sum()
    assert set(seen) == {(0, 0, np.float32(expected))}


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (7, 3)])
def test_an_aligned_copy_is_the_same_array(shape: tuple[int, ...]) -> None:
    array = np.arange(4 + int(np.prod(shape)), dtype=np.float32)[4:].reshape(shape)
    copy = aligned(array)
    assert copy.shape == shape
    assert copy.dtype == array.dtype
    assert np.array_equal(copy, array)
    assert not copy.size or copy.ctypes.data % ALIGNMENT == 0, "an empty one has no first element"
    turned = np.ones((6, 5), dtype=np.float32).T
    assert aligned(turned) is turned


def test_inputs_are_fresh_for_each_trial_and_kept_within_it() -> None:
    seen = []
    kernel = Kernel(CONTEXT)

    def watch(x: np.ndarray, out: np.ndarray) -> None:
        seen.append(x.tobytes())

    first, second = np.random.default_rng(1), np.random.default_rng(2)
    for rng in (first, first, second):
        kernel.measure(watch, rng)
    assert len(set(seen)) == 2


class Table(Kernel):
    """out = x + 1, looked up in a table that is made of the inputs."""

    made = 0

    def set_up(self, loaded: Callable[..., None], inputs: Any) -> dict[int, int]:
        self.made += 1
        out = np.empty_like(inputs["x"])
        loaded(inputs["x"], out)
        return dict(zip(inputs["x"].flat, out.flat, strict=True))

    def call(self, loaded: dict[int, int], inputs: Any, outputs: Any) -> None:  # type: ignore[override]
        self.calls += 1
        outputs["out"][...] = np.vectorize(loaded.__getitem__)(inputs["x"])


def test_what_is_set_up_is_made_of_each_inputs_once() -> None:
    kernel = Table(CONTEXT)
    assert kernel.check(right, np.random.default_rng(0)) == {"error": 0}
    assert kernel.made == kernel.calls == 2, "of the inputs that are checked, and of others before"
    rng = np.random.default_rng(0)
    kernel.measure(right, rng)
    kernel.measure(right, rng)
    assert kernel.made == 3 and kernel.calls > 4
    kernel.measure(right, np.random.default_rng(1))
    assert kernel.made == 4


def test_a_reading_lasts_long_enough_for_the_clock() -> None:
    kernel = Kernel(CONTEXT)
    rng = np.random.default_rng(0)
    kernel.measure(right, rng)
    calibrated, kernel.calls = kernel.calls, 0
    seconds = kernel.measure(right, rng)["time"]
    assert calibrated > kernel.calls > 1, "it is calibrated once"
    assert seconds * kernel.calls > READING_SECONDS / 20
    again, kernel.calls = kernel.calls, 0
    kernel.measure(right, np.random.default_rng(1))
    assert kernel.calls == again, "fresh inputs do not calibrate again"


@given(hnp.arrays(np.float64, 7, elements=st.floats(allow_nan=True, allow_infinity=True)))
def test_an_array_has_no_error_against_itself(array: np.ndarray) -> None:
    assert scaled_error("x", array, array.copy(), 0.0) == 0


@given(
    hnp.arrays(np.float64, 5, elements=st.floats(-100, 100)),
    st.integers(0, 4),
    st.sampled_from([np.nan, np.inf, -np.inf, 1e6]),
)
def test_any_bad_element_is_found(array: np.ndarray, index: int, bad: float) -> None:
    answer = array.copy()
    answer[index] = bad
    with pytest.raises(WrongAnswer, match=rf"x\[{index}\]"):
        scaled_error("x", answer, array, 1e-3)


@given(
    st.lists(st.integers(0, 9), max_size=3).map(tuple), st.sampled_from(["f4", "f8", "i1", "c16", "?", "u8"])
)
def test_a_guarded_array_is_aligned_contiguous_and_fenced(shape: tuple[int, ...], dtype: str) -> None:
    guarded = GuardedArray(shape, dtype)
    guarded.poison()
    guarded.verify("out")
    array = guarded.array
    assert array.shape == shape and array.dtype == np.dtype(dtype) and array.flags.c_contiguous
    assert array.ctypes.data % ALIGNMENT == 0 or array.size == 0
    assert guarded._before.size == guarded._behind.size == GUARD_BYTES


def test_integers_of_any_kinds_are_compared_to_the_last_digit() -> None:
    signed = np.array([2**62 + 1])
    assert scaled_error("x", signed.astype(np.uint64), signed, 0.0) == 0
    with pytest.raises(WrongAnswer):
        scaled_error("x", signed.astype(np.uint64) - np.uint64(1), signed, 0.0)


class Constant(ArrayObjective):
    """out = a + b, of inputs of which some are one number throughout."""

    def make_inputs(self, rng: np.random.Generator) -> dict[str, np.ndarray]:
        drawn = rng.random(FEW)
        return {
            "a": np.zeros((8, FEW // 8), np.float32),
            "b": drawn,
            "c": np.full(FEW, 2.5)[::-1],
            "few": np.ones(FEW - 1),
            "mask": np.ones(FEW, np.int32),
            "none": np.full(FEW, np.nan),
        }

    def outputs(self) -> dict[str, Any]:
        return {"out": ((FEW,), np.float64)}

    def reference(self, inputs: Any) -> dict[str, np.ndarray]:
        return {"out": inputs["a"].reshape(-1) + inputs["b"]}

    def call(self, loaded: None, inputs: Any, outputs: Any) -> None:
        outputs["out"][:] = self.reference(inputs)["out"]


def test_inputs_that_are_one_number_throughout_are_in_the_facts_of_the_trial() -> None:
    runner = Runner(Constant(CONTEXT), [MetricSpec("time", "minimize", "s")], MeasureSettings(max_readings=3))
    outcome = runner.measure(lambda: None, 0)
    assert outcome.status is Status.OK and outcome.facts[CONSTANT_INPUTS] == {"a": 0.0, "c": 2.5}
