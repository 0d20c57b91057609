"""``triton-gemm``: C = A B in Triton, with split-K and a grouped order of tiles, for tensor cores.

There are two kernels. One reads its tiles through pointers and works everywhere. The other asks Hopper's
tensor memory accelerator (TMA) for them by tensor descriptors, and its programs may take several tiles each.
Both may read copies of A and B with padded rows, which are made at every launch.

Workload: ``m``, ``n``, ``k`` (any positive integers), ``dtype`` (``float16``, ``bfloat16``, ``float32``,
``float8_e4m3fn`` or ``float8_e5m2``, where the device has it), ``precision`` of float32 (``tf32`` or
``ieee``), ``b_order`` (``row`` or ``column``: how B lies in memory; default row, of float8 column). C has the
type of A, and float16 where that has 8 bits; sums are in float32.

The oracle is the product in float64. Vendor baseline: torch's matrix product, which is cuBLAS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
import triton
from triton_compile import Launch, stride
from triton_gemm_kernels import described_product, product, sum_parts
from triton_objective import PRECISIONS, Shape, TritonObjective
from triton_padding import ALIGNED_BYTES, Matrix, aligned, copy_launch, padded

from autotune.measure.kernels.library_call import LibraryCall
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

SUM_BLOCK = 1024
"""Elements of C that one program of the second kernel of a split product adds up."""


class Gemm(TritonObjective):
    """C = A B. Metrics: ``time`` in seconds, ``error`` over the largest entry of C."""

    workload_facts = (*TritonObjective.device_facts, "m", "n", "k", "dtype", "precision", "b_order")

    _one: torch.Tensor
    """What the library is to scale by: 1. Made in a reading it would be a launch of its own."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.m, self.n, self.k = (context.size(size) for size in "mnk")
        name = context.choice("dtype", TYPES, default="float16")
        self.dtype = TYPES[name]
        self.float8 = self.dtype.itemsize == 1
        if self.float8 and self.capability is not None and self.capability < 8.9:
            raise Infeasible(f"{name} needs compute capability 8.9, this device has {self.capability}")
        self.precision = context.choice("precision", PRECISIONS, default="tf32")
        usual = "column" if self.float8 else "row"
        self.column_b = context.choice("b_order", ("row", "column"), default=usual) == "column"
        self.arithmetic = self.precision if name == "float32" else name
        self.tolerance = TOLERANCES[self.arithmetic]

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
        peaks = {"ieee": "float32", "float8_e5m2": "float8_e4m3fn"}
        arithmetic = peaks.get(self.arithmetic, self.arithmetic)
        return Work(read + written, 2 * self.m * self.n * self.k, arithmetic)

    def _b(self, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        return inputs["b"].t() if self.column_b else inputs["b"]

    # -- the configuration -------------------------------------------------------------------

    def scratch(self, configuration: Configuration) -> Mapping[str, Shape]:
        made: dict[str, Shape] = {
            copy.name: ((copy.rows, copy.columns), self.dtype) for _, copy in self._copied(configuration)
        }
        split = int(configuration["split_k"])
        if split > 1:
            made["parts"] = ((split, self.m, self.n), torch.float32)
        return made

    def launches(self, configuration: Configuration) -> tuple[Launch, ...]:
        """Copies of A and B where they are wanted, the product, and the sum of its parts."""
        copies = [copy_launch(matrix, copy, self.dtype) for matrix, copy in self._copied(configuration)]
        # A shape or a device without descriptors has a space without the knob.
        if configuration.get("loads") == "descriptors":
            return *copies, self._described(configuration)
        split = int(configuration["split_k"])
        if split == 1:
            return *copies, self._product(configuration, "c")
        size = self.m * self.n
        second = Launch(
            sum_parts,
            (triton.cdiv(size, SUM_BLOCK),),
            {"parts": "parts", "c": "c", "size": size},
            {"SPLIT": split, "BLOCK": SUM_BLOCK},
        )
        return *copies, self._product(configuration, "parts"), second

    def _product(self, configuration: Configuration, c: str) -> Launch:
        """The product through pointers; of one that is split its parts."""
        block_m, block_n, block_k = _block(configuration)
        split = int(configuration["split_k"])
        a, b = self._read(configuration)
        b_depth, b_columns = self._depth_and_columns(b)
        b_row, b_column = (1, b.columns) if self.column_b else (b.columns, 1)
        rows, depth, columns = min(block_m, self.m), min(block_k, self.k), min(block_n, self.n)
        return Launch(
            product,
            (triton.cdiv(self.m, block_m) * triton.cdiv(self.n, block_n), split),
            {
                **self._read_arguments(configuration, c),
                "a_row": stride(a.columns, rows), "a_column": 1,
                "b_row": stride(b_row, depth), "b_column": stride(b_column, columns),
                "c_row": stride(self.n, rows), "part_stride": self.m * self.n,
            },
            {
                "BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k,
                "GROUP": int(configuration["group"]), "SPLIT": split,
                "EVEN_M": _lie_within(self.m, self.m, block_m),
                "EVEN_N": _lie_within(b_columns, self.n, block_n),
                "EVEN_K": _lie_within(min(a.columns, b_depth), self.k, block_k * split),
                "PRECISION": self.precision, "WIDEN": self.widens(self.dtype),
            },
            warps=int(configuration["warps"]),
            stages=int(configuration["stages"]),
        )  # fmt: skip

    def _described(self, configuration: Configuration) -> Launch:
        """The product by descriptors; raises :class:`Infeasible` where there can be none."""
        self._must_be_described(configuration)
        block_m, block_n, block_k = _block(configuration)
        tiles = triton.cdiv(self.m, block_m) * triton.cdiv(self.n, block_n)
        programs = self.programs(tiles, int(configuration["programs"]))
        c_type = self.outputs()["c"][1]
        return Launch(
            described_product,
            (programs,),
            {
                **self._read_arguments(configuration, "c"),
                "c_row": stride(self.n, min(block_m, self.m)),
            },
            {
                "BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k,
                "GROUP": int(configuration["group"]), "PROGRAMS": programs,
                "COLUMN_B": self.column_b, "DESCRIBE_C": aligned(self.n, c_type),
                "PRECISION": self.precision, "WIDEN": self.widens(self.dtype),
            },
            warps=int(configuration["warps"]),
            stages=int(configuration["stages"]),
        )  # fmt: skip

    def _must_be_described(self, configuration: Configuration) -> None:
        instead = "loads: pointers  works"
        if not self.interpreted and self.capability is not None and self.capability < DESCRIPTORS_SINCE:
            raise Infeasible(
                f"loads: descriptors  needs a tensor memory accelerator, which devices have from compute "
                f"capability {DESCRIPTORS_SINCE} on, and this one has {self.capability}; {instead}"
            )
        split = int(configuration["split_k"])
        if split > 1:
            raise Infeasible(f"loads: descriptors  has no split_k, which is {split}; 1 or  {instead}")
        for matrix in self._read(configuration):
            if not aligned(matrix.columns, self.dtype):
                elements, size = matrix.columns, self.dtype.itemsize
                raise Infeasible(
                    f"loads: descriptors  needs rows that are a multiple of {ALIGNED_BYTES} bytes; those of "
                    f"{matrix.name} have {elements} x {size} = {elements * size} bytes; pad: true  or  "
                    f"{instead}"
                )

    # -- what the product reads ---------------------------------------------------------------

    def _factors(self) -> tuple[Matrix, Matrix]:
        (a, _), (b, _) = self.inputs().values()
        return Matrix("a", *a), Matrix("b", *b)

    def _copy(self, matrix: Matrix) -> Matrix:
        """The copy of A or B with padded rows."""
        rows, columns = matrix.rows, padded(matrix.columns, self.dtype)
        if matrix.name == "b" and not self.column_b:
            rows = padded(rows, self.dtype)  # as deep as the copy of A: then no mask is needed along k
        return Matrix(f"padded_{matrix.name}", rows, columns)

    def _copied(self, configuration: Configuration) -> Sequence[tuple[Matrix, Matrix]]:
        """What is copied first, and its copy."""
        if not configuration.get("pad", False):
            return ()
        ragged = [matrix for matrix in self._factors() if not aligned(matrix.columns, self.dtype)]
        return [(matrix, self._copy(matrix)) for matrix in ragged]

    def _read(self, configuration: Configuration) -> Sequence[Matrix]:
        """What is read for A and for B."""
        copies = dict(self._copied(configuration))
        return [copies.get(matrix, matrix) for matrix in self._factors()]

    def _depth_and_columns(self, b: Matrix) -> tuple[int, int]:
        """Elements along k and along n of what is read for B."""
        return (b.columns, b.rows) if self.column_b else (b.rows, b.columns)

    def _read_arguments(self, configuration: Configuration, c: str) -> dict[str, str | int]:
        """What the parameters of both kernels begin with."""
        a, b = self._read(configuration)
        b_depth, b_columns = self._depth_and_columns(b)
        return {
            "a": a.name, "b": b.name, "c": c, "m": self.m, "n": self.n, "k": self.k,
            "a_depth": a.columns, "b_depth": b_depth, "b_columns": b_columns,
        }  # fmt: skip

    # -- baselines ---------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        """None where cuBLAS refuses: two matrices of e5m2, and rows of 8 bits that 16 does not divide."""
        refused = self.dtype is torch.float8_e5m2 or self.k % 16 or self.n % 16
        return () if self.float8 and self.device.type == "cuda" and refused else super().baselines()

    def load_baseline(self, baseline: Baseline) -> LibraryCall:
        self._one = torch.ones((), device=self.device)
        return super().load_baseline(baseline)

    def library(self, inputs: Mapping[str, torch.Tensor]) -> Any:
        """torch's matrix product: cuBLAS on a GPU."""
        if self.float8:
            b = inputs["b"].t() if self.column_b else inputs["b"].t().contiguous().t()
            one = self._one
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


def _lie_within(extent: int, size: int, block: int) -> bool:
    """Whether the blocks that ``size`` is cut into end within ``extent``, so that they need no mask."""
    return triton.cdiv(size, block) * block <= extent
