"""Triton kernels are compiled for a GPU that is elsewhere; what is not possible is refused and said."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.measure.objective import Infeasible
from autotune.space.configuration import Configuration
from tests.objectives.triton_child import (
    NAMES,
    child,
    compile_only,
    construct,
    described,
    needs_triton,
    read_space,
    scratch_of_launches,
    tiled,
    wide_arguments,
    woken,
)

pytestmark = [pytest.mark.torch, needs_triton]

DESCRIPTORS = {"loads": "descriptors", "programs": 1}

SMALL = {
    "triton-gemm": {"block_m": 16, "block_n": 16, "block_k": 16, "warps": 1, "stages": 2},
    "triton-attention": {"block_m": 16, "block_n": 16, "warps": 1, "stages": 1},
    "triton-softmax": {"block": 128},
    "triton-layer-norm": {"block": 128},
    "triton-reduction": {"block_kept": 4, "block_reduced": 32},
}
"""Configurations that are compiled quickly."""


@pytest.fixture(scope="module")
def compiler() -> Iterator[ProcessPoolExecutor]:
    with child(interpret=False) as process:
        yield process


def small(name: str, **knobs: int) -> Configuration:
    return Configuration({**read_space(name).space.default(), **SMALL[name], **knobs})


def test_triton_is_woken_by_a_kernel_of_no_space(compiler: ProcessPoolExecutor, tmp_path: Path) -> None:
    assert compiler.submit(woken, tmp_path).result() == ["_nothing"]


@pytest.mark.parametrize("name", NAMES)
def test_the_default_compiles_for_an_h200_without_one(
    compiler: ProcessPoolExecutor, name: str, tmp_path: Path
) -> None:
    code = compiler.submit(compile_only, name, {}, read_space(name).space.default(), tmp_path).result()
    resources = code["resources"]
    assert 0 < resources["registers"] <= 255 and resources["spilled_bytes"] == 0
    assert 0 < resources["shared_bytes"] <= 232_448
    assert code["fingerprint"] and code["facts"]["compile_seconds"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_size_of_one_compiles(compiler: ProcessPoolExecutor, name: str, tmp_path: Path) -> None:
    sizes = ("m", "n", "k", "rows", "columns", "batch", "heads", "length", "head_dim")
    ones = dict.fromkeys((size for size in sizes if size in read_space(name).workload), 1)
    assert compiler.submit(compile_only, name, ones, small(name), tmp_path).result()["fingerprint"]


@pytest.mark.parametrize(
    ("name", "workload", "knobs", "wide"),
    [
        ("triton-gemm", {}, {}, [set()]),
        ("triton-gemm", {"m": 512, "n": 64, "k": 2**24}, {"block_m": 256}, [{"a_row"}]),
        ("triton-gemm", {"m": 8, "n": 64, "k": 2**24}, {"block_m": 256}, [set()]),
        (
            "triton-gemm",
            {"m": 128, "n": 64, "k": 2**24 - 1},
            {"block_m": 128, "pad": True},
            [set(), {"a_row"}],
        ),
        (
            "triton-gemm",
            {"m": 128, "n": 2**24, "k": 128},
            {"block_m": 128, "block_k": 128},
            [{"b_row", "c_row"}],
        ),
        (
            "triton-gemm",
            {"m": 64, "n": 512, "k": 2**24, "b_order": "column"},
            {"block_n": 256},
            [{"b_column"}],
        ),
        ("triton-reduction", {"axis": 0}, {}, [set()]),
        ("triton-reduction", {"rows": 4096, "columns": 2**20}, {"block_reduced": 2048}, [{"reduced_stride"}]),
        ("triton-reduction", {"rows": 2**20, "columns": 4096, "axis": 1}, {"block_kept": 1024}, [set()]),
        ("triton-reduction", {"rows": 2**11, "columns": 2**22}, {"parts": 512}, [set(), {"reduced_stride"}]),
        ("triton-attention", {}, {}, [set()]),
        ("triton-attention", {"length": 16, "keys": 2**25, "causal": False}, {}, [{"FAR"}]),
    ],
)
def test_strides_that_do_not_fit_32_bits_over_a_tile_have_64(
    compiler: ProcessPoolExecutor,
    tmp_path: Path,
    name: str,
    workload: dict[str, object],
    knobs: dict[str, int],
    wide: list[set[str]],
) -> None:
    """The product of a row within a tile and such a stride had been another address."""
    arguments = (name, workload, small(name, **knobs), tmp_path)
    found = compiler.submit(wide_arguments, *arguments).result()
    part = {"part_stride"}  # of a whole partial sum, and of no matter here
    assert [set(one) - part for one in found] == wide
    if any(wide):
        assert compiler.submit(compile_only, *arguments).result()["fingerprint"]


def test_what_is_split_has_a_second_launch(compiler: ProcessPoolExecutor, tmp_path: Path) -> None:
    split = compiler.submit(compile_only, "triton-gemm", {}, small("triton-gemm", split_k=2), tmp_path)
    assert split.result()["launches"] == ["product", "sum_parts"]
    parts = compiler.submit(
        compile_only, "triton-reduction", {}, small("triton-reduction", parts=4), tmp_path
    )
    assert parts.result()["launches"] == ["sums", "sums"]


@pytest.mark.parametrize(
    ("workload", "knobs", "threads"),
    [
        ({}, {"block_m": 128, "block_n": 256, "block_k": 64, "warps": 8, "stages": 3}, 8 * 32),
        ({"dtype": "bfloat16", "b_order": "column"}, {"block_m": 64, "programs": 0}, 4 * 32),
        ({"dtype": "float32"}, {}, 4 * 32),
        ({"dtype": "float32", "precision": "ieee"}, {}, 4 * 32),
        ({"dtype": "float8_e4m3fn"}, {"block_m": 64}, 4 * 32),
        ({"m": 1, "n": 8, "k": 8}, {}, 4 * 32),
    ],
    ids=str,
)
def test_a_product_by_descriptors_compiles(
    compiler: ProcessPoolExecutor,
    tmp_path: Path,
    workload: dict[str, object],
    knobs: dict[str, object],
    threads: int,
) -> None:
    made = compiler.submit(compile_only, "triton-gemm", workload, described(**knobs), tmp_path).result()
    assert made["launches"] == ["described_product"] and made["threads"] == [threads]
    resources = made["resources"]
    assert resources["spilled_bytes"] == 0 and resources["registers"] * threads <= 65536


@pytest.mark.parametrize(
    ("workload", "knobs", "launches"),
    [
        ({}, {}, ["copy_padded", "copy_padded", "product"]),
        ({}, {"split_k": 2}, ["copy_padded", "copy_padded", "product", "sum_parts"]),
        ({"n": 2000}, {"block_k": 128}, ["copy_padded", "product"]),
        ({"b_order": "column", "dtype": "bfloat16"}, {}, ["copy_padded", "copy_padded", "product"]),
        ({"dtype": "float32"}, {}, ["copy_padded", "copy_padded", "product"]),
        ({"dtype": "float8_e5m2"}, {}, ["copy_padded", "copy_padded", "product"]),
        ({}, DESCRIPTORS, ["copy_padded", "copy_padded", "described_product"]),
        ({"k": 3008}, DESCRIPTORS, ["copy_padded", "described_product"]),
        (
            {"dtype": "float8_e4m3fn", "n": 2000},
            DESCRIPTORS,
            ["copy_padded", "copy_padded", "described_product"],
        ),
        ({"m": 1, "n": 1, "k": 1}, {}, ["copy_padded", "copy_padded", "product"]),
        ({"m": 1, "n": 1, "k": 1}, DESCRIPTORS, ["copy_padded", "copy_padded", "described_product"]),
    ],
    ids=str,
)
def test_a_product_of_padded_rows_compiles(
    compiler: ProcessPoolExecutor,
    tmp_path: Path,
    workload: dict[str, object],
    knobs: dict[str, object],
    launches: list[str],
) -> None:
    ragged = {"m": 3000, "n": 1999, "k": 3001, **workload}
    made = compiler.submit(compile_only, "triton-gemm", ragged, tiled(pad=True, **knobs), tmp_path).result()
    assert made["launches"] == launches and made["resources"]["spilled_bytes"] == 0


def test_padded_rows_are_copied_ahead_into_shared_memory(
    compiler: ProcessPoolExecutor, tmp_path: Path
) -> None:
    """Which takes reads of four bytes or more: masks and strides keep none of them from that."""

    def shared_bytes(**knobs: object) -> int:
        ragged = {"m": 3000, "n": 1999, "k": 3001}
        one = tiled(block_m=64, block_n=64, stages=4, **knobs)
        made = compiler.submit(compile_only, "triton-gemm", ragged, one, tmp_path).result()
        return int(made["resources"]["shared_bytes"])

    tile = 2 * 64 * 32 * 2
    assert shared_bytes(pad=False) < 3 * tile
    assert shared_bytes(pad=True) >= 3 * tile
    assert shared_bytes(pad=True, block_k=128) >= 3 * 4 * tile  # with masks along k


def test_what_descriptors_take_of_shared_memory_is_in_the_rules(
    compiler: ProcessPoolExecutor, tmp_path: Path
) -> None:
    """No rule forbids what would fit: of each stage but one, and of the tile of C."""
    space = read_space("triton-gemm").space
    for stages in (2, 3, 4):
        one = described(block_m=128, block_n=256, block_k=64, warps=8, stages=stages)
        assert one in space
        made = compiler.submit(
            compile_only, "triton-gemm", {}, one, tmp_path, shared_memory_bytes=10**6
        ).result()
        tiles = (128 + 256) * 64 * 2, 128 * 256 * 2
        assert made["resources"]["shared_bytes"] >= (stages - 1) * tiles[0] + tiles[1]


def test_devices_without_a_tensor_memory_accelerator_refuse_descriptors(
    compiler: ProcessPoolExecutor, tmp_path: Path
) -> None:
    made = compiler.submit(compile_only, "triton-gemm", {}, described(), tmp_path, compute_capability=8.0)
    with pytest.raises(Infeasible, match=r"from compute capability 9\.0 on, and this one has 8\.0"):
        made.result()


def test_only_our_launches_get_our_scratch_memory(compiler: ProcessPoolExecutor) -> None:
    """Triton has one place for whom it asks, and other people's launches may have set it or not."""
    assert compiler.submit(scratch_of_launches, 4096).result() == [-1, 4096, 4096, -1]


def test_too_much_shared_memory_is_infeasible_before_a_launch(
    compiler: ProcessPoolExecutor, tmp_path: Path
) -> None:
    default = read_space("triton-reduction").space.default()
    compiled = compiler.submit(
        compile_only, "triton-reduction", {}, default, tmp_path, shared_memory_bytes=1024
    )
    with pytest.raises(Infeasible, match="shared memory"):
        compiled.result()


def test_what_triton_refuses_is_infeasible(compiler: ProcessPoolExecutor, tmp_path: Path) -> None:
    broken = Configuration({**read_space("triton-softmax").space.default(), "block": 300})
    with pytest.raises(Infeasible, match="power of 2"):
        compiler.submit(compile_only, "triton-softmax", {}, broken, tmp_path).result()


def test_the_same_code_has_the_same_fingerprint(compiler: ProcessPoolExecutor, tmp_path: Path) -> None:
    def fingerprint(m: int, stages: int) -> str:
        workload = {"m": m, "n": 33, "k": 33}  # rows of an odd length cannot be copied ahead
        configuration = small("triton-gemm", stages=stages)
        made = compiler.submit(compile_only, "triton-gemm", workload, configuration, tmp_path)
        return str(made.result()["fingerprint"])

    assert fingerprint(33, stages=2) == fingerprint(33, stages=4)
    assert fingerprint(33, stages=2) != fingerprint(65, stages=2)  # the same binary in another grid


def test_without_a_gpu_and_without_the_interpreter_it_is_refused(compiler: ProcessPoolExecutor) -> None:
    with pytest.raises(InputError, match="there is no GPU here"):
        compiler.submit(construct, "triton-softmax", {}, with_gpu=False).result()
    with pytest.raises(InputError, match="needs TRITON_INTERPRET=1"):
        compiler.submit(construct, "triton-softmax", {"interpret": True}, with_gpu=True).result()


def test_the_interpreter_is_not_timed_unasked() -> None:
    with child(interpret=True) as interpreter:
        with pytest.raises(InputError, match="say nothing of a GPU"):
            interpreter.submit(construct, "triton-softmax", {}, with_gpu=True).result()
        interpreter.submit(construct, "triton-softmax", {"interpret": True}, with_gpu=False).result()


def test_a_type_that_the_device_lacks_is_refused(compiler: ProcessPoolExecutor, tmp_path: Path) -> None:
    float8 = {"dtype": "float8_e4m3fn"}
    compiled = compiler.submit(
        compile_only, "triton-gemm", float8, small("triton-gemm"), tmp_path, compute_capability=8.0
    )
    with pytest.raises(InputError, match=r"needs compute capability 8\.9"):
        compiled.result()
