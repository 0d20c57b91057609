"""A fault that is planted in a Triton kernel is caught by its check, every time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from autotune.measure.objective import WrongAnswer
from autotune.space.configuration import Configuration
from tests.objectives.triton_child import check_planted, child, needs_triton, read_space

pytestmark = [pytest.mark.torch, needs_triton]

PRODUCT = {"m": 33, "n": 35, "k": 70}
DESCRIBED = {"m": 33, "n": 40, "k": 72}
DESCRIPTORS = {"loads": "descriptors", "programs": 1, "block_m": 32, "block_n": 32}
PADDED = {"pad": True, "block_k": 32}
ROWS = {"rows": 6, "columns": 300, "dtype": "float32"}
HEADS = {"batch": 1, "heads": 1, "length": 75, "head_dim": 16}
UNMASKED_KEYS = (
    '            scores = tl.where((key < keys)[None, :], scores, float("-inf"))\n',
    "            scores = scores\n",
)

FAULTS: dict[str, tuple[str, tuple[str, str], dict[str, Any], dict[str, Any]]] = {
    "gemm: one too many of k": (
        "triton-gemm", ("_depth - begin", "_depth + 1 - begin"), PRODUCT, {"block_k": 32},
    ),
    "gemm: the last of k is left out": (
        "triton-gemm", ("_depth - begin", "_depth - 1 - begin"), PRODUCT, {"block_k": 32},
    ),
    "gemm: the last of a large k is left out": (
        "triton-gemm", ("_depth - begin", "_depth - 1 - begin"),
        {"m": 16, "n": 16, "k": 8195, "dtype": "bfloat16"}, {"block_m": 16, "block_n": 16, "block_k": 256},
    ),
    "gemm: a row too many": (
        "triton-gemm", ("rows < m - tile_m", "rows <= m - tile_m"), PRODUCT, {"block_m": 16},
    ),
    "gemm: a column too many": (
        "triton-gemm", ("columns < n - tile_n", "columns <= n - tile_n"), PRODUCT, {"block_n": 16},
    ),
    "gemm: the last row is not written": (
        "triton-gemm", ("rows < m - tile_m", "rows < m - 1 - tile_m"), PRODUCT, {"block_m": 16},
    ),
    "gemm: parts of k are not added": (
        "triton-gemm", ("total += tl.load(parts", "total = tl.load(parts"), PRODUCT, {"split_k": 2},
    ),
    "gemm: a part of k is left out": (
        "triton-gemm", ("in range(SPLIT)", "in range(SPLIT - 1)"), PRODUCT, {"split_k": 2},
    ),
    "gemm: parts are left from the last trial": (
        "triton-gemm", ("store_tile(c_part", "if part == 0:\n        store_tile(c_part"),
        PRODUCT, {"split_k": 2},
    ),
    "gemm: the output is left from the last trial": (
        "triton-gemm", ("store_tile(c_part", "if k < 0:\n        store_tile(c_part"), PRODUCT, {},
    ),
    "gemm by descriptors: the last of k is left out": (
        "triton-gemm", ("range(tl.cdiv(k, BLOCK_K))", "range(k // BLOCK_K)"), DESCRIBED, DESCRIPTORS,
    ),
    "gemm by descriptors: the last tile is left out": (
        "triton-gemm", ("tiles_m * tiles_n, PROGRAMS", "tiles_m * tiles_n - 1, PROGRAMS"),
        DESCRIBED, DESCRIPTORS,
    ),
    "gemm by descriptors: a program takes one tile and no other": (
        "triton-gemm", ("tiles_m * tiles_n, PROGRAMS", "PROGRAMS, PROGRAMS"),
        {**DESCRIBED, "m": 400, "n": 400}, {**DESCRIPTORS, "block_m": 16},
    ),
    "gemm by descriptors: the output is left from the last trial": (
        "triton-gemm", ("c_tiles.store", "if k < 0:\n                c_tiles.store"), DESCRIBED, DESCRIPTORS,
    ),
    "gemm of padded rows: nothing is written behind their ends": (
        "triton-gemm", ("column < copy_columns", "column < columns"), PRODUCT, PADDED,
    ),
    "gemm of padded rows: no rows are written behind the last of k": (
        "triton-gemm", ("row < copy_rows", "row < rows"), PRODUCT, PADDED,
    ),
    "gemm of padded rows: the last of each is not copied": (
        "triton-gemm", ("(column < columns)[None, :]", "(column < columns - 1)[None, :]"), PRODUCT, PADDED,
    ),
    "gemm of padded rows by descriptors: nothing is written behind their ends": (
        "triton-gemm", ("column < copy_columns", "column < columns"), PRODUCT, {**PADDED, **DESCRIPTORS},
    ),
    "gemm of padded rows by descriptors: C is left from the last trial": (
        "triton-gemm", ("store_tile(c, total", "if k < 0:\n                store_tile(c, total"),
        PRODUCT, {**PADDED, **DESCRIPTORS},
    ),
    "softmax: one too many": (
        "triton-softmax", ("(lanes < columns)", "(lanes <= columns)"), ROWS, {"block": 512},
    ),
    "softmax: the last of a long row is left out": (
        "triton-softmax", ("lanes < columns - start", "lanes < columns - 1 - start"), ROWS, {"block": 128},
    ),
    "softmax: what is far below the largest entry is taken for nothing": (
        "triton-softmax", ("values = powers /", "values = tl.where(powers < 0.008, 0.0, powers) /"),
        {"rows": 6, "columns": 3000, "dtype": "bfloat16"}, {"block": 4096},
    ),
    "softmax: rows past the last": (
        "triton-softmax", ("here = row < rows", "here = row <= rows"), ROWS, {"rows_at_once": 4},
    ),
    "layer norm: zeros past the end count": (
        "triton-layer-norm",
        ("tl.where(left[None, :], values - middle[:, None], 0.0)", "values - middle[:, None]"),
        ROWS, {"block": 512},
    ),
    "layer norm: blocks are merged as if their means were the same": (
        "triton-layer-norm", (" + shift * shift * (seen * count / (seen + count))", ""), ROWS, {"block": 128},
    ),
    "layer norm: the statistics are left from the last trial": (
        "triton-layer-norm", ("tl.store(mean + row, middle, mask=here)", "pass"), ROWS, {"block": 128},
    ),
    "reduction: a share reads into the next": (
        "triton-reduction", ("min(share, reduced - begin)", "share + 1"),
        {"rows": 1000, "columns": 5}, {"parts": 4, "block_reduced": 32},
    ),
    "reduction: the last one is left out": (
        "triton-reduction", ("elements < count - start", "elements < count - 1 - start"),
        {"rows": 100003, "columns": 1}, {"block_kept": 1, "block_reduced": 4096},
    ),
    "attention: a query does not see itself": (
        "triton-attention", ("<= row[:, None]", "< row[:, None]"), {**HEADS, "causal": True}, {"block_n": 32},
    ),
    "attention: blocks that need a mask go without": (
        "triton-attention", ("tile * BLOCK_M + 1) // BLOCK_N", "tile * BLOCK_M + BLOCK_N) // BLOCK_N"),
        {**HEADS, "causal": True}, {"block_m": 32, "block_n": 16},
    ),
    "attention: keys past the last count": (
        "triton-attention", UNMASKED_KEYS, {**HEADS, "causal": False}, {"block_n": 32},
    ),
    "attention: some keys of the last rows of many are left out": (
        "triton-attention",
        ("inside = (key < keys)[:, None]", "inside = (key < keys)[:, None] & (key != keys - 40)[:, None]"),
        {**HEADS, "length": 2000, "causal": True, "dtype": "bfloat16"}, {"block_m": 128, "block_n": 64},
    ),
    "attention: the sum is not scaled down": (
        "triton-attention", ("total = total * shrink", "total = total"), {**HEADS, "causal": False},
        {"block_n": 16},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def interpreter() -> Iterator[ProcessPoolExecutor]:
    with child(interpret=True) as process:
        yield process


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught_every_time(interpreter: ProcessPoolExecutor, fault: str) -> None:
    name, planted, workload, knobs = FAULTS[fault]
    configuration = Configuration({**read_space(name).space.default(), **knobs})
    for seed in range(3):
        with pytest.raises(WrongAnswer):
            interpreter.submit(check_planted, name, planted, workload, configuration, seed).result()
