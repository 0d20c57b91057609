"""Every Triton kernel agrees with its oracle on ragged shapes, in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.measure.gpu.peaks import ARITHMETIC
from autotune.measure.objective import Infeasible
from autotune.provenance.device import device_facts
from autotune.space.reading.reader import read_spec
from tests.objectives.ready import SPACES
from tests.objectives.triton_child import (
    NAMES,
    arithmetic_of,
    baselines_on_a_gpu,
    check,
    check_library,
    check_planted,
    child,
    described,
    grids,
    needs_triton,
    read_space,
    rounding_of_libraries,
    sampled,
    sampled_padded,
    scratch_of,
    tiled,
    work_of_library,
)

pytestmark = [pytest.mark.torch, needs_triton]

RAGGED: dict[str, list[dict[str, Any]]] = {
    "triton-gemm": [
        {"m": 65, "n": 70, "k": 45, "dtype": "float16"},
        {"m": 33, "n": 17, "k": 129, "dtype": "bfloat16"},
        {"m": 17, "n": 129, "k": 7, "dtype": "float32", "precision": "ieee", "b_order": "column"},
        {"m": 31, "n": 33, "k": 35, "dtype": "float8_e4m3fn"},
        {"m": 31, "n": 33, "k": 35, "dtype": "float8_e5m2", "b_order": "row"},
        {"m": 1, "n": 1, "k": 1},
    ],
    "triton-softmax": [
        {"rows": 7, "columns": 300},
        {"rows": 9, "columns": 515, "dtype": "float16"},
        {"rows": 3, "columns": 129, "dtype": "bfloat16"},
        {"rows": 1, "columns": 1},
    ],
    "triton-layer-norm": [
        {"rows": 7, "columns": 300, "dtype": "float32"},
        {"rows": 9, "columns": 515, "dtype": "float16"},
        {"rows": 3, "columns": 129, "dtype": "bfloat16"},
        {"rows": 1, "columns": 1},
    ],
    "triton-reduction": [
        {"rows": 133, "columns": 37, "axis": 0},
        {"rows": 5, "columns": 301, "axis": 1, "dtype": "float16"},
        {"rows": 1, "columns": 1001, "axis": 1, "dtype": "bfloat16"},
        {"rows": 1, "columns": 1},
    ],
    "triton-attention": [
        {"batch": 1, "heads": 2, "length": 75, "head_dim": 20, "causal": True},
        {"batch": 2, "heads": 1, "length": 60, "keys": 131, "head_dim": 16, "causal": False},
        {"batch": 1, "heads": 1, "length": 33, "head_dim": 5, "dtype": "bfloat16"},
        {"batch": 1, "heads": 1, "length": 33, "head_dim": 32, "dtype": "float32", "precision": "ieee"},
        {"batch": 1, "heads": 1, "length": 1, "head_dim": 1},
    ],
}

CASES = [(name, workload) for name, workloads in RAGGED.items() for workload in workloads]


@pytest.fixture(scope="module")
def interpreter() -> Iterator[ProcessPoolExecutor]:
    with child(interpret=True) as process:
        yield process


@pytest.mark.parametrize(("name", "workload"), CASES, ids=str)
def test_the_default_and_others_are_right_on_ragged_shapes(
    interpreter: ProcessPoolExecutor, name: str, workload: dict[str, Any]
) -> None:
    configurations = [read_space(name).space.default(), *(sampled(name, seed) for seed in range(3))]
    for configuration in configurations:
        error = interpreter.submit(check, name, workload, configuration).result()
        assert error < 1e-2, dict(configuration)


DESCRIBED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"m": 65, "n": 72, "k": 40}, {}),
    ({"m": 130, "n": 136, "k": 72}, {"block_m": 16, "block_n": 16, "block_k": 64, "group": 2}),
    ({"m": 130, "n": 136, "k": 72}, {"block_m": 64, "block_n": 16, "programs": 0}),
    ({"m": 70, "n": 80, "k": 48, "b_order": "column"}, {"block_k": 64, "programs": 2}),
    ({"m": 33, "n": 24, "k": 136, "dtype": "bfloat16"}, {"block_n": 64}),
    ({"m": 17, "n": 132, "k": 12, "dtype": "float32"}, {"block_k": 16}),
    ({"m": 17, "n": 132, "k": 12, "dtype": "float32", "precision": "ieee", "b_order": "column"}, {}),
    ({"m": 31, "n": 48, "k": 80, "dtype": "float8_e4m3fn"}, {}),
    ({"m": 31, "n": 48, "k": 80, "dtype": "float8_e5m2", "b_order": "row"}, {"block_m": 16}),
    ({"m": 1, "n": 8, "k": 8}, {}),
    ({"m": 33, "n": 35, "k": 72, "b_order": "column"}, {}),  # no rows are ragged but those of C
]
"""Problems that no tile divides, with rows of A and B that are multiples of 16 bytes; knobs of a product."""


@pytest.mark.parametrize(("workload", "knobs"), DESCRIBED, ids=str)
def test_a_product_by_descriptors_is_right(
    interpreter: ProcessPoolExecutor, workload: dict[str, Any], knobs: dict[str, Any]
) -> None:
    error = interpreter.submit(check, "triton-gemm", workload, described(**knobs)).result()
    assert error < 1e-2


@settings(max_examples=6, deadline=None, database=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(1, 70), n=st.integers(1, 9), k=st.integers(1, 11))
def test_any_product_by_descriptors_is_right(
    interpreter: ProcessPoolExecutor, seed: int, m: int, n: int, k: int
) -> None:
    drawn = sampled("triton-gemm", seed, loads="descriptors")
    sizes = {"m": m, "n": 8 * n, "k": 8 * k}
    assert interpreter.submit(check, "triton-gemm", sizes, drawn, seed).result() < 1e-2


PADDED: list[dict[str, Any]] = [
    {"m": 65, "n": 70, "k": 45},
    {"m": 65, "n": 70, "k": 45, "b_order": "column"},
    {"m": 33, "n": 72, "k": 135},  # only A has to be copied, and B goes no further than k
    {"m": 33, "n": 35, "k": 72},  # only B
    {"m": 33, "n": 17, "k": 129, "dtype": "bfloat16"},
    {"m": 17, "n": 129, "k": 70, "dtype": "float32", "precision": "ieee"},
    {"m": 17, "n": 45, "k": 67, "dtype": "float32", "b_order": "column"},
    {"m": 31, "n": 33, "k": 135, "dtype": "float8_e4m3fn"},
    {"m": 31, "n": 40, "k": 135, "dtype": "float8_e5m2", "b_order": "row"},  # C needs no pointers here
    {"m": 1, "n": 1, "k": 1},
    {"m": 64, "n": 64, "k": 64},  # a space of somebody's own may offer it where nothing is to be copied
]


@pytest.mark.parametrize("workload", PADDED, ids=str)
def test_a_product_of_padded_rows_is_right(
    interpreter: ProcessPoolExecutor, workload: dict[str, Any]
) -> None:
    """Through pointers, with and without masks along k; of parts; by descriptors."""
    padded = [tiled(pad=True), tiled(pad=True, block_k=128, block_n=64), described(pad=True)]
    if workload["k"] > 64:
        padded.append(tiled(pad=True, split_k=2))
    for configuration in padded:
        assert interpreter.submit(check, "triton-gemm", workload, configuration).result() < 1e-2


@settings(max_examples=6, deadline=None, database=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), m=st.integers(1, 70), n=st.integers(1, 70), k=st.integers(1, 90))
def test_any_product_of_padded_rows_is_right(
    interpreter: ProcessPoolExecutor, seed: int, m: int, n: int, k: int
) -> None:
    drawn = sampled_padded(seed)
    assert interpreter.submit(check, "triton-gemm", {"m": m, "n": n, "k": k}, drawn, seed).result() < 1e-2


def test_what_is_copied_is_what_is_ragged(interpreter: ProcessPoolExecutor) -> None:
    """Rows of whole lines of 128 bytes: 64 halves; a copy of B has rows of zeros behind k, too."""

    def copies(**workload: Any) -> dict[str, tuple[int, ...]]:
        return interpreter.submit(scratch_of, "triton-gemm", workload, tiled(pad=True)).result()

    assert copies(m=30, n=70, k=45) == {"padded_a": (30, 64), "padded_b": (64, 128)}
    assert copies(m=30, n=70, k=45, b_order="column") == {"padded_a": (30, 64), "padded_b": (70, 64)}
    assert copies(m=30, n=72, k=45) == {"padded_a": (30, 64)}
    assert copies(m=30, n=70, k=48) == {"padded_b": (64, 128)}
    assert copies(m=30, n=72, k=48) == copies(m=30, n=70, k=48, b_order="column") == {}


def test_programs_share_the_tiles_of_a_product(interpreter: ProcessPoolExecutor) -> None:
    """A multiprocessor of an H200, of which there are 132, has so many of them."""

    def programs(m: int, count: int) -> list[tuple[int, ...]]:
        sizes = {"m": m, "n": 2048, "k": 64}
        return interpreter.submit(grids, "triton-gemm", sizes, described(programs=count)).result()

    assert programs(2048, 1) == [(132,)] and programs(2048, 2) == [(264,)]
    assert programs(2048, 0) == [(64 * 64,)]
    assert programs(32, 1) == [(64,)]


@pytest.mark.parametrize(
    ("workload", "knobs", "why"),
    [
        ({"n": 33}, {}, "those of b have 33 x 2 = 66 bytes; pad: true  or  loads: pointers  works"),
        ({"k": 36}, {}, "those of a have 36 x 2 = 72 bytes"),
        ({"n": 24, "k": 32, "dtype": "float8_e4m3fn", "b_order": "row"}, {}, "those of b have 24 x 1"),
        ({}, {"split_k": 2}, "has no split_k"),
        ({"k": 33}, {"split_k": 2, "pad": True}, "has no split_k"),
    ],
    ids=str,
)
def test_what_descriptors_cannot_do_is_refused(
    interpreter: ProcessPoolExecutor, workload: dict[str, Any], knobs: dict[str, Any], why: str
) -> None:
    """A space of somebody's own may offer it."""
    sizes = {"m": 32, "n": 32, "k": 32, **workload}
    with pytest.raises(Infeasible, match=why):
        interpreter.submit(check, "triton-gemm", sizes, described(**knobs)).result()


@pytest.mark.parametrize(
    ("device", "workload", "ragged"),
    [
        ("h200", {}, False),
        ("h100", {"m": 3001, "n": 2008, "k": 1000}, False),
        ("h200", {"n": 1999}, True),
        ("h200", {"k": 3001}, True),
        ("h200", {"n": 2004}, True),
        ("h200", {"n": 2004, "dtype": "float32"}, False),
        ("h200", {"n": 2008, "dtype": "float8_e4m3fn"}, True),
        ("h200", {"n": 2000, "dtype": "float8_e4m3fn"}, False),
        ("a100", {}, False),
        ("a100", {"n": 1999}, True),
    ],
    ids=str,
)
def test_the_space_offers_descriptors_and_padding_where_they_work(
    device: str, workload: dict[str, Any], ragged: bool
) -> None:
    """Ragged rows can be padded on any device, and by descriptors only padded ones are read."""
    facts = {**read_space("triton-gemm").workload, **workload}
    space = read_spec(SPACES / "triton-gemm.yaml", device=device_facts(device), workload=facts).space
    drawn = list(space.sample(np.random.default_rng(0), 300))
    assert {one.get("pad") for one in drawn} == ({True, False} if ragged else {None})
    assert space.default().get("pad") == (False if ragged else None)
    described = [one for one in drawn if one.get("loads") == "descriptors"]
    assert bool(described) == (device != "a100")
    assert all("loads" not in one for one in drawn if device == "a100" or one.get("pad") is False)
    assert all(one["split_k"] == 1 and "programs" in one for one in described)
    assert not any("programs" in one for one in drawn if one not in described)
    assert not ragged or any(one["pad"] and one["split_k"] > 1 for one in drawn)


@pytest.mark.parametrize("name", NAMES)
def test_any_configuration_is_right_on_any_shape(interpreter: ProcessPoolExecutor, name: str) -> None:
    shapes = {
        "triton-gemm": {"m": 70, "n": 70, "k": 90},
        "triton-attention": {"length": 90, "head_dim": 40},
        "triton-reduction": {"rows": 400, "columns": 20},
    }.get(name, {"rows": 20, "columns": 400})
    fixed = {"batch": 1, "heads": 2} if name == "triton-attention" else {}

    @settings(max_examples=6, deadline=None, database=None, derandomize=True)
    @given(
        seed=st.integers(0, 2**32 - 1),
        shape=st.fixed_dictionaries({size: st.integers(1, most) for size, most in shapes.items()}),
    )
    def right(seed: int, shape: dict[str, int]) -> None:
        assert interpreter.submit(check, name, {**fixed, **shape}, sampled(name, seed), seed).result() < 1e-2

    right()


@pytest.mark.parametrize(("name", "workload"), CASES, ids=str)
def test_pytorch_is_a_baseline_and_right(
    interpreter: ProcessPoolExecutor, name: str, workload: dict[str, Any]
) -> None:
    errors = interpreter.submit(check_library, name, workload).result()
    assert list(errors) == ["torch"] and errors["torch"] < 1e-2


@pytest.mark.parametrize("name", ["triton-gemm", "triton-attention"])
def test_the_library_rounds_as_the_kernel_does(interpreter: ProcessPoolExecutor, name: str) -> None:
    """cuBLAS in full float32 is several times slower than in tf32: a kernel in tf32 had won by that."""
    assert interpreter.submit(rounding_of_libraries, name, "tf32").result()
    assert not interpreter.submit(rounding_of_libraries, name, "ieee").result()


def test_in_a_reading_of_the_library_is_nothing_but_the_product(interpreter: ProcessPoolExecutor) -> None:
    """A scale of 1 was made anew in each: a launch more, of some microseconds on a GPU."""
    workload = {"m": 32, "n": 32, "k": 64, "dtype": "float8_e4m3fn"}
    assert interpreter.submit(work_of_library, "triton-gemm", workload).result() == [
        "aten.t.default",
        "aten._scaled_mm.default",
    ]


@pytest.mark.parametrize(
    ("name", "workload", "names"),
    [
        ("triton-softmax", {}, ["torch", "torch-compile"]),
        ("triton-attention", {}, ["torch", "torch-compile", "cudnn"]),
        ("triton-attention", {"dtype": "float32"}, ["torch", "torch-compile"]),
        ("triton-gemm", {"dtype": "float8_e4m3fn"}, ["torch", "torch-compile"]),
        ("triton-gemm", {"dtype": "float8_e4m3fn", "k": 1000}, []),
        ("triton-gemm", {"dtype": "float8_e5m2"}, []),
    ],
)
def test_the_vendors_on_a_gpu_are_those_that_can_do_it(
    interpreter: ProcessPoolExecutor, name: str, workload: dict[str, Any], names: list[str]
) -> None:
    assert interpreter.submit(baselines_on_a_gpu, name, workload).result() == names


def test_each_type_is_held_against_a_peak_that_is_measured(interpreter: ProcessPoolExecutor) -> None:
    """Of ``float8_e5m2`` none is: its roofline had been that of its memory alone."""
    for dtype in ("float16", "bfloat16", "float32", "float8_e4m3fn", "float8_e5m2"):
        for precision in ("tf32", "ieee"):
            workload = {"dtype": dtype, "precision": precision}
            assert interpreter.submit(arithmetic_of, "triton-gemm", workload).result() in ARITHMETIC, workload


@pytest.mark.parametrize("split", [True, False])
def test_keys_are_found_by_64_bits_as_well(interpreter: ProcessPoolExecutor, split: bool) -> None:
    """Where a head has 2^31 numbers, offsets of 32 bits had led to other memory."""
    configuration = read_space("triton-attention").space.configuration({"split": split})
    workload = {"batch": 1, "heads": 2, "length": 75, "head_dim": 20, "causal": True}
    always = ("self.keys * self.head_dim >= 2**31", "True")
    arguments = ("triton-attention", always, workload, configuration, 0)
    assert interpreter.submit(check_planted, *arguments).result() < 1e-2


def test_any_number_of_heads_fits_a_grid(interpreter: ProcessPoolExecutor) -> None:
    """They had been its second side, of which CUDA allows 65,535: every launch was an invalid argument."""
    default = read_space("triton-attention").space.default()
    workload = {"batch": 8192, "heads": 12, "length": 200}
    assert interpreter.submit(grids, "triton-attention", workload, default).result() == [(2 * 8192 * 12,)]
