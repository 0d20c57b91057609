"""``triton-layer-norm``: normalises each row of a matrix, scales and shifts it, in one kernel, in Triton.

Also writes each row's mean and reciprocal standard deviation, which the backward pass takes. A row that
fits a block is read once; of a longer one the blocks' means and squared deviations are merged (T. F. Chan,
G. H. Golub, R. J. LeVeque, *Algorithms for computing the sample variance*, The American Statistician 37(3),
1983).

Workload: ``rows``, ``columns`` (any positive integers), ``dtype`` (``float32``, ``float16``, ``bfloat16``).
The oracle is the definition in float64. Vendor baseline: torch's layer norm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from triton_compile import Launch
from triton_objective import ROW_TOLERANCES, Shape, TritonObjective, float_type

from autotune.measure.kernels.roofline import Work
from autotune.measure.objective import Context
from autotune.space.configuration import Configuration

EPSILON = 1e-5
"""Added to the variance, as torch does by default."""


@triton.jit
def layer_norm(
    x, weight, bias, y, mean, deviation, rows, columns, epsilon,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, LOOPED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """Rows ROWS at a time, by a fixed number of programs in turn; LOOPED: a row takes several blocks."""
    lanes = tl.arange(0, BLOCK)
    for first in tl.range(tl.program_id(0) * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
        row = first + tl.arange(0, ROWS)
        here = row < rows
        offsets = row.to(tl.int64)[:, None] * columns + lanes[None, :]
        if LOOPED:
            middle = tl.zeros((ROWS,), tl.float32)
            squares = tl.zeros((ROWS,), tl.float32)
            seen = 0.0
            for start in tl.range(0, columns, BLOCK, num_stages=STAGES):
                left = lanes < columns - start
                inside = here[:, None] & left[None, :]
                values = tl.load(x + offsets + start, mask=inside, other=0.0).to(tl.float32)
                count = tl.sum(left.to(tl.float32), 0)
                block_middle = tl.sum(values, 1) / count
                apart = tl.where(left[None, :], values - block_middle[:, None], 0.0)
                shift = block_middle - middle
                middle += shift * (count / (seen + count))
                squares += tl.sum(apart * apart, 1) + shift * shift * (seen * count / (seen + count))
                seen += count
            scale = tl.rsqrt(squares / columns + epsilon)
            for start in tl.range(0, columns, BLOCK, num_stages=STAGES):
                left = lanes < columns - start
                inside = here[:, None] & left[None, :]
                values = tl.load(x + offsets + start, mask=inside, other=0.0).to(tl.float32)
                w = tl.load(weight + start + lanes, mask=left, other=0.0).to(tl.float32)
                b = tl.load(bias + start + lanes, mask=left, other=0.0).to(tl.float32)
                values = (values - middle[:, None]) * scale[:, None] * w[None, :] + b[None, :]
                tl.store(y + offsets + start, values.to(y.dtype.element_ty), mask=inside)
        else:
            left = lanes < columns
            inside = here[:, None] & left[None, :]
            values = tl.load(x + offsets, mask=inside, other=0.0).to(tl.float32)
            w = tl.load(weight + lanes, mask=left, other=0.0).to(tl.float32)
            b = tl.load(bias + lanes, mask=left, other=0.0).to(tl.float32)
            middle = tl.sum(values, 1) / columns
            apart = tl.where(left[None, :], values - middle[:, None], 0.0)
            scale = tl.rsqrt(tl.sum(apart * apart, 1) / columns + epsilon)
            values = apart * scale[:, None] * w[None, :] + b[None, :]
            tl.store(y + offsets, values.to(y.dtype.element_ty), mask=inside)
        tl.store(mean + row, middle, mask=here)
        tl.store(deviation + row, scale, mask=here)


class LayerNorm(TritonObjective):
    """y = layer norm of x along its rows, with weight and bias. Metrics: ``time`` in seconds, ``error``."""

    workload_facts = (*TritonObjective.device_facts, "rows", "columns", "dtype")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.rows, self.columns = context.size("rows"), context.size("columns")
        self.dtype = float_type(context)
        self.tolerance = {"y": ROW_TOLERANCES[self.dtype], "mean": 1e-5, "deviation": 1e-5}

    def inputs(self) -> Mapping[str, Shape]:
        vector = ((self.columns,), self.dtype)
        return {"x": ((self.rows, self.columns), self.dtype), "weight": vector, "bias": vector}

    def outputs(self) -> Mapping[str, Shape]:
        of_rows = ((self.rows,), torch.float32)
        return {"y": ((self.rows, self.columns), self.dtype), "mean": of_rows, "deviation": of_rows}

    def random(self, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> torch.Tensor:
        """Normal; x lies far from zero, where a difference of large sums would show."""
        values = super().random(name, shape, rng)
        return values + 8.0 if name == "x" else values

    def reference(self, inputs: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        x, weight, bias = (inputs[name].double() for name in ("x", "weight", "bias"))
        mean = x.mean(dim=1)
        deviation = (x.var(dim=1, correction=0) + EPSILON).rsqrt()
        y = (x - mean[:, None]) * deviation[:, None] * weight + bias
        return {"y": y, "mean": mean, "deviation": deviation}

    def work(self) -> Work:
        """Two sums, a difference, a square, and four operations to normalise, scale and shift."""
        size = self.rows * self.columns
        moved = (2 * size + 2 * self.columns) * self.dtype.itemsize + 2 * self.rows * 4
        return Work(bytes=moved, operations=8 * size, arithmetic="float32")

    def launches(self, configuration: Configuration) -> tuple[Launch, ...]:
        names = ("x", "weight", "bias", "y", "mean", "deviation")
        sizes = {"rows": self.rows, "columns": self.columns, "epsilon": EPSILON}
        return self.by_rows(layer_norm, {**dict(zip(names, names, strict=True)), **sizes}, configuration)

    def library(self, inputs: Mapping[str, torch.Tensor]) -> Any:
        """torch's layer norm, which gives mean and reciprocal deviation as well."""
        x, weight, bias = inputs["x"], inputs["weight"], inputs["bias"]
        if x.device.type == "cpu":  # there they would have the type of x, with its few digits
            x, weight, bias = x.float(), weight.float(), bias.float()
        return torch.native_layer_norm(x, [self.columns], weight, bias, EPSILON)
