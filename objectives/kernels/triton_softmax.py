"""``triton-softmax``: the softmax of each row of a matrix in one kernel, in Triton.

A row that fits a block is read once. A longer one is read twice: first for its maximum and the sum of
its exponentials at once, which each lane keeps for its own columns (M. Milakov and N. Gimelshein, *Online
normalizer calculation for softmax*, arXiv:1805.02867), then to write it.

Workload: ``rows``, ``columns`` (any positive integers), ``dtype`` (``float32``, ``float16``, ``bfloat16``).
The oracle is torch's softmax in float64: each entry is held against itself, since nearly all are far smaller
than the largest. Vendor baseline: torch's softmax.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import triton
import triton.language as tl
from triton_compile import Launch
from triton_objective import ROW_TOLERANCES, Shape, TritonObjective, float_type

from autotune.measure.gpu.tensors import tensor_error
from autotune.measure.kernels.roofline import Work
from autotune.measure.objective import Context
from autotune.space.configuration import Configuration

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def softmax(
    x, y, rows, columns,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, LOOPED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Rows ROWS at a time, by a fixed number of programs in turn; LOOPED: a row takes several blocks."""
    lanes = tl.arange(0, BLOCK)
    for first in tl.range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
        row = first + tl.arange(0, ROWS)
        here = row < rows
        offsets = row.to(tl.int64)[:, None] * columns + lanes[None, :]
        if LOOPED:
            top = tl.full((ROWS, BLOCK), float("-inf"), tl.float32)
            total = tl.zeros((ROWS, BLOCK), tl.float32)
            for start in tl.range(0, columns, BLOCK, num_stages=STAGES):
                inside = here[:, None] & (lanes < columns - start)[None, :]
                values = (
                    tl.load(x + offsets + start, mask=inside, other=float("-inf")).to(tl.float32) * LOG2_E
                )
                higher = tl.maximum(top, values)
                safe = tl.where(higher == float("-inf"), 0.0, higher)  # -inf minus -inf is no number
                total = total * tl.exp2(top - safe) + tl.exp2(values - safe)
                top = higher
            row_top = tl.max(top, 1)
            row_total = tl.sum(total * tl.exp2(top - row_top[:, None]), 1)
            for start in tl.range(0, columns, BLOCK, num_stages=STAGES):
                inside = here[:, None] & (lanes < columns - start)[None, :]
                values = tl.load(x + offsets + start, mask=inside, other=0.0).to(tl.float32) * LOG2_E
                values = tl.exp2(values - row_top[:, None]) / row_total[:, None]
                tl.store(y + offsets + start, values.to(y.dtype.element_ty), mask=inside)
        else:
            inside = here[:, None] & (lanes < columns)[None, :]
            values = tl.load(x + offsets, mask=inside, other=float("-inf")).to(tl.float32) * LOG2_E
            powers = tl.exp2(values - tl.max(values, 1)[:, None])
            values = powers / tl.sum(powers, 1)[:, None]
            tl.store(y + offsets, values.to(y.dtype.element_ty), mask=inside)


class Softmax(TritonObjective):
    """y = softmax of x along its rows. Metrics: ``time`` in seconds, ``error`` relative to each entry."""

    workload_facts = (*TritonObjective.device_facts, "rows", "columns", "dtype")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.rows, self.columns = context.size("rows"), context.size("columns")
        self.dtype = float_type(context)
        self.tolerance = ROW_TOLERANCES[self.dtype]

    def inputs(self) -> Mapping[str, Shape]:
        return {"x": ((self.rows, self.columns), self.dtype)}

    def outputs(self) -> Mapping[str, Shape]:
        return {"y": ((self.rows, self.columns), self.dtype)}

    def reference(self, inputs: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        return {"y": torch.softmax(inputs["x"].double(), dim=1)}

    def _error(self, name: str, answer: torch.Tensor, expected: Mapping[str, torch.Tensor]) -> float:
        """Over each entry, or over the least number that the type has all its digits for."""
        allowed = self._allowed(name, str(self.dtype).removeprefix("torch."), expected)
        right = expected[name].to(answer.device)
        sizes = right.clamp(min=torch.finfo(answer.dtype).tiny)
        return tensor_error("y / softmax(x)", answer.double() / sizes, right / sizes, allowed)

    def work(self) -> Work:
        """An exponential, a division, a subtraction, and what the maximum and the sum take."""
        size = self.rows * self.columns
        return Work(bytes=2 * size * self.dtype.itemsize, operations=5 * size, arithmetic="float32")

    def launches(self, configuration: Configuration) -> tuple[Launch, ...]:
        arguments = {"x": "x", "y": "y", "rows": self.rows, "columns": self.columns}
        return self.by_rows(softmax, arguments, configuration)

    def library(self, inputs: Mapping[str, torch.Tensor]) -> Any:
        """torch's softmax."""
        return torch.softmax(inputs["x"], dim=1)

    def library_into(self, inputs: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor]) -> Any:
        return torch.softmax(inputs["x"], dim=1, out=outputs["y"])
