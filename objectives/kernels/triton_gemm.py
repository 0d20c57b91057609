"""``triton-gemm``: C = A B in Triton, with split-K and a grouped order of tiles, for tensor cores.

There are two kernels. One reads its tiles through pointers and works everywhere. The other asks Hopper's
tensor memory accelerator (TMA) for them by tensor descriptors, and its programs may take several tiles each.

Workload: ``m``, ``n``, ``k`` (any positive integers), ``dtype`` (``float16``, ``bfloat16``, ``float32``,
``float8_e4m3fn`` or ``float8_e5m2``, where the device has it), ``precision`` of float32 (``tf32`` or
``ieee``), ``b_order`` (``row`` or ``column``: how B lies in memory; default row, of float8 column). C has the
type of A, and float16 where that has 8 bits; sums are in float32.

The oracle is the product in float64. Vendor baseline: torch's matrix product, which is cuBLAS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
import triton
import triton.language as tl
from triton_compile import Launch, stride
from triton_objective import PRECISIONS, Shape, TritonObjective

from autotune.measure.kernels.roofline import Work
from autotune.measure.objective import Baseline, Context, Infeasible
from autotune.space.configuration import Configuration

TYPES: Mapping[str, torch.dtype] = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float8_e4m3fn": torch.float8_e4m3fn,
    "float8_e5m2": torch.float8_e5m2,
}

TOLERANCES: Mapping[str, float] = {
    "float16": 2e-3,
    "bfloat16": 1e-2,
    "tf32": 2e-3,
    "ieee": 1e-5,
    # Products are exact; Hopper's tensor cores keep some 14 bits of the running sum.
    "float8_e4m3fn": 1e-2,
    "float8_e5m2": 1e-2,
}

DESCRIPTORS_SINCE = 9.0
"""Compute capability of the first devices with a tensor memory accelerator."""

DESCRIBED_BYTES = 16
"""What the rows of a matrix are to be a multiple of for a descriptor of it."""

SUM_BLOCK = 1024
"""Elements of C that one program of the second kernel of a split product adds up."""


@triton.jit
def place(tile, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Row and column of a tile among the tiles, which are numbered down bands of GROUP rows of them."""
    band = tile // (GROUP * tiles_n)
    within = tile % (GROUP * tiles_n)
    height = min(tiles_m - band * GROUP, GROUP)
    return band * GROUP + within % height, within // height


@triton.jit
def product(
    a, b, c, m, n, k, a_row, a_column, b_row, b_column, c_row, part_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, SPLIT: tl.constexpr,
    EVEN_M: tl.constexpr, EVEN_N: tl.constexpr, EVEN_K: tl.constexpr,
    PRECISION: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    """One tile of C, or of one of its SPLIT partial sums."""
    tile_m, tile_n = place(tl.program_id(0), tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N), GROUP)
    part = tl.program_id(1)
    steps = tl.cdiv(k, BLOCK_K * SPLIT)
    begin = part * steps * BLOCK_K
    rows = tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    # 64 bits for the tile's corner; offsets within a tile have as many only where they need them.
    a += (tile_m * BLOCK_M).to(tl.int64) * a_row + begin.to(tl.int64) * a_column
    b += (tile_n * BLOCK_N).to(tl.int64) * b_column + begin.to(tl.int64) * b_row
    a_tile = a + rows[:, None] * a_row + depth[None, :] * a_column
    b_tile = b + depth[:, None] * b_row + columns[None, :] * b_column
    row_inside = rows < m - tile_m * BLOCK_M
    column_inside = columns < n - tile_n * BLOCK_N

    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(steps):
        depth_inside = depth < k - begin - step * BLOCK_K
        if EVEN_M and EVEN_K:
            a_values = tl.load(a_tile)
        elif EVEN_K:
            a_values = tl.load(a_tile, mask=row_inside[:, None], other=0.0)
        else:
            a_values = tl.load(a_tile, mask=row_inside[:, None] & depth_inside[None, :], other=0.0)
        if EVEN_N and EVEN_K:
            b_values = tl.load(b_tile)
        elif EVEN_K:
            b_values = tl.load(b_tile, mask=column_inside[None, :], other=0.0)
        else:
            b_values = tl.load(b_tile, mask=depth_inside[:, None] & column_inside[None, :], other=0.0)
        if WIDEN:
            a_values = a_values.to(tl.float32)
            b_values = b_values.to(tl.float32)
        total = tl.dot(a_values, b_values, total, input_precision=PRECISION)
        a_tile += BLOCK_K * a_column
        b_tile += BLOCK_K * b_row

    c += part.to(tl.int64) * part_stride + (tile_m * BLOCK_M).to(tl.int64) * n + tile_n * BLOCK_N
    c_tile = c + rows[:, None] * c_row + columns[None, :]
    tl.store(c_tile, total.to(c.dtype.element_ty), mask=row_inside[:, None] & column_inside[None, :])


@triton.jit
def described_product(
    a, b, c, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr, PROGRAMS: tl.constexpr, SPECIALISE: tl.constexpr,
    COLUMN_B: tl.constexpr, PRECISION: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    """Every PROGRAMS-th tile of C, by descriptors: past the edge zeros are read and nothing is written."""
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    a_tiles = tl.make_tensor_descriptor(a, [m, k], [k, 1], [BLOCK_M, BLOCK_K])
    if COLUMN_B:
        b_tiles = tl.make_tensor_descriptor(b, [n, k], [k, 1], [BLOCK_N, BLOCK_K])
    else:
        b_tiles = tl.make_tensor_descriptor(b, [k, n], [n, 1], [BLOCK_K, BLOCK_N])
    c_tiles = tl.make_tensor_descriptor(c, [m, n], [n, 1], [BLOCK_M, BLOCK_N])
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, warp_specialize=SPECIALISE):
        tile_m, tile_n = place(tile, tiles_m, tiles_n, GROUP)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for step in range(tl.cdiv(k, BLOCK_K)):
            a_values = a_tiles.load([row, step * BLOCK_K])
            if COLUMN_B:
                b_values = b_tiles.load([column, step * BLOCK_K]).T
            else:
                b_values = b_tiles.load([step * BLOCK_K, column])
            if WIDEN:
                a_values = a_values.to(tl.float32)
                b_values = b_values.to(tl.float32)
            total = tl.dot(a_values, b_values, total, input_precision=PRECISION)
        c_tiles.store([row, column], total.to(c.dtype.element_ty))


@triton.jit
def sum_parts(parts, c, size, SPLIT: tl.constexpr, BLOCK: tl.constexpr):
    """C from its SPLIT partial sums in float32, each of ``size`` elements."""
    begin = tl.program_id(0).to(tl.int64) * BLOCK
    elements = tl.arange(0, BLOCK)
    inside = elements < size - begin
    parts += begin
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for _ in range(SPLIT):
        total += tl.load(parts + elements, mask=inside, other=0.0)
        parts += size
    tl.store(c + begin + elements, total.to(c.dtype.element_ty), mask=inside)


class Gemm(TritonObjective):
    """C = A B. Metrics: ``time`` in seconds, ``error`` over the largest entry of C."""

    sources: ClassVar[tuple[str, ...]] = ("triton_objective.py", "triton_compile.py")
    workload_facts = (*TritonObjective.device_facts, "m", "n", "k", "dtype", "precision", "b_order")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.m, self.n, self.k = (context.size(size) for size in "mnk")
        name = context.choice("dtype", TYPES, default="float16")
        self.dtype = TYPES[name]
        self.float8 = self.dtype.itemsize == 1
        if self.float8 and self.capability is not None and self.capability < 8.9:
            raise Infeasible(f"{name} needs compute capability 8.9, this device has {self.capability}")
        self.precision = context.choice("precision", PRECISIONS, default="tf32")
        self.rounds = self.precision == "tf32"
        usual = "column" if self.float8 else "row"
        self.column_b = context.choice("b_order", ("row", "column"), default=usual) == "column"
        self.tolerance = TOLERANCES[self.precision if name == "float32" else name]

    # -- the problem -------------------------------------------------------------------------

    def inputs(self) -> Mapping[str, Shape]:
        b = (self.n, self.k) if self.column_b else (self.k, self.n)
        return {"a": ((self.m, self.k), self.dtype), "b": (b, self.dtype)}

    def outputs(self) -> Mapping[str, Shape]:
        return {"c": ((self.m, self.n), torch.float16 if self.float8 else self.dtype)}

    def random(self, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> torch.Tensor:
        """Standard normal; the last of k stands out, so that leaving it out shows however large k is."""
        values = super().random(name, shape, rng)
        along_k = -1 if name == "a" or self.column_b else 0
        values.select(along_k, -1).mul_(4.0)
        return values

    def reference(self, inputs: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        return {"c": inputs["a"].double() @ self._b(inputs).double()}

    def work(self) -> Work:
        read = (self.m * self.k + self.k * self.n) * self.dtype.itemsize
        written = self.m * self.n * self.outputs()["c"][1].itemsize
        # Tensor cores are as fast in both types of 8 bits, and the peak is measured in one.
        arithmetic = "float8_e4m3fn" if self.float8 else str(self.dtype).removeprefix("torch.")
        if self.dtype is torch.float32 and self.rounds:
            arithmetic = "tf32"
        return Work(read + written, 2 * self.m * self.n * self.k, arithmetic)

    def _b(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return inputs["b"].t() if self.column_b else inputs["b"]

    # -- the configuration -------------------------------------------------------------------

    def scratch(self, configuration: Configuration) -> Mapping[str, Shape]:
        split = int(configuration["split_k"])
        return {"parts": ((split, self.m, self.n), torch.float32)} if split > 1 else {}

    def launches(self, configuration: Configuration) -> tuple[Launch, ...]:
        # A shape or a device without descriptors has a space without the knob.
        if configuration.get("loads") == "descriptors":
            return (self._described(configuration),)
        block_m, block_n, block_k = _block(configuration)
        split = int(configuration["split_k"])
        tiles = triton.cdiv(self.m, block_m) * triton.cdiv(self.n, block_n)
        size = self.m * self.n
        b_row, b_column = (1, self.k) if self.column_b else (self.n, 1)
        rows, depth, columns = min(block_m, self.m), min(block_k, self.k), min(block_n, self.n)
        first = Launch(
            product,
            (tiles, split),
            {
                "a": "a", "b": "b", "c": "parts" if split > 1 else "c",
                "m": self.m, "n": self.n, "k": self.k,
                "a_row": stride(self.k, rows), "a_column": 1,
                "b_row": stride(b_row, depth), "b_column": stride(b_column, columns),
                "c_row": stride(self.n, rows), "part_stride": size,
            },
            {
                "BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k,
                "GROUP": int(configuration["group"]), "SPLIT": split,
                "EVEN_M": self.m % block_m == 0, "EVEN_N": self.n % block_n == 0,
                "EVEN_K": self.k % (block_k * split) == 0,
                "PRECISION": self.precision, "WIDEN": self.widens(self.dtype),
            },
            warps=int(configuration["warps"]),
            stages=int(configuration["stages"]),
        )  # fmt: skip
        if split == 1:
            return (first,)
        second = Launch(
            sum_parts,
            (triton.cdiv(size, SUM_BLOCK),),
            {"parts": "parts", "c": "c", "size": size},
            {"SPLIT": split, "BLOCK": SUM_BLOCK},
        )
        return first, second

    def _described(self, configuration: Configuration) -> Launch:
        """The one launch by descriptors; raises :class:`Infeasible` where there can be none."""
        self._must_be_described(int(configuration["split_k"]))
        block_m, block_n, block_k = _block(configuration)
        tiles = triton.cdiv(self.m, block_m) * triton.cdiv(self.n, block_n)
        programs = self.programs(tiles, int(configuration["programs"]))
        return Launch(
            described_product,
            (programs,),
            {"a": "a", "b": "b", "c": "c", "m": self.m, "n": self.n, "k": self.k},
            {
                "BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k,
                "GROUP": int(configuration["group"]), "PROGRAMS": programs,
                "SPECIALISE": bool(configuration.get("specialise", False)),
                "COLUMN_B": self.column_b,
                "PRECISION": self.precision, "WIDEN": self.widens(self.dtype),
            },
            warps=int(configuration["warps"]),
            stages=int(configuration["stages"]),
        )  # fmt: skip

    def _must_be_described(self, split: int) -> None:
        instead = "loads: pointers  works"
        if not self.interpreted and self.capability is not None and self.capability < DESCRIPTORS_SINCE:
            raise Infeasible(
                f"loads: descriptors  needs a tensor memory accelerator, which devices have from compute "
                f"capability {DESCRIPTORS_SINCE} on, and this one has {self.capability}; {instead}"
            )
        if split > 1:
            raise Infeasible(f"loads: descriptors  has no split_k, which is {split}; 1 or  {instead}")
        tensors = {**self.inputs(), **self.outputs()}
        for name, ((_, elements), dtype) in tensors.items():
            size = elements * dtype.itemsize
            if size % DESCRIBED_BYTES:
                raise Infeasible(
                    f"loads: descriptors  needs rows that are a multiple of {DESCRIBED_BYTES} bytes; those "
                    f"of {name} have {elements} x {dtype.itemsize} = {size} bytes; {instead}"
                )

    # -- baselines ---------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        """None where cuBLAS refuses: two matrices of e5m2, and rows of 8 bits that 16 does not divide."""
        refused = self.dtype is torch.float8_e5m2 or self.k % 16 or self.n % 16
        return () if self.float8 and self.device.type == "cuda" and refused else super().baselines()

    def library(self, inputs: Mapping[str, torch.Tensor]) -> Any:
        """torch's matrix product: cuBLAS on a GPU."""
        if self.float8:
            one = torch.ones((), device=self.device)
            b = inputs["b"].t() if self.column_b else inputs["b"].t().contiguous().t()
            return torch._scaled_mm(
                inputs["a"], b, scale_a=one, scale_b=one, out_dtype=torch.float16, use_fast_accum=True
            )
        return torch.matmul(inputs["a"], self._b(inputs))

    def library_into(self, inputs: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor]) -> Any:
        if self.float8:
            return self.library(inputs)
        return torch.matmul(inputs["a"], self._b(inputs), out=outputs["c"])


def _block(configuration: Configuration) -> tuple[int, int, int]:
    """Rows and columns of a tile of C, and how much of k is one step."""
    block_m, block_n, block_k = (int(configuration[f"block_{size}"]) for size in "mnk")
    return block_m, block_n, block_k
