"""``triton-reduction``: the sums of a matrix along one of its axes, in Triton.

Several programs may share a sum: each adds up a part, and a second launch of the same kernel adds the parts.

Workload: ``rows``, ``columns`` (any positive integers), ``axis`` (0: of each column; 1: of each row; a long
vector is a matrix of one row), ``dtype`` (``float32``, ``float16``, ``bfloat16``). Sums are in float32.

The data are small whole numbers, whose sums float32 holds exactly in any order: the oracle is exact, and
an element left out always shows. Vendor baseline: torch's sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from triton_compile import Launch, stride
from triton_objective import Shape, TritonObjective, float_type

from autotune.measure.kernels.roofline import Work
from autotune.measure.objective import Context, Infeasible
from autotune.space.configuration import Configuration

LARGEST = 3
"""The data are whole numbers from -3 to 3, but 0. Sums past 2^24, which float32 would round, do not happen:
they are a random walk."""


@triton.jit
def sums(
    x, y, kept, reduced, kept_stride, reduced_stride, share,
    KEPT: tl.constexpr, REDUCED: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """KEPT sums of ``share`` elements each, REDUCED at a time; part p of sum s goes to y[p, s]."""
    part = tl.program_id(1)
    first = tl.program_id(0) * KEPT
    outputs = first + tl.arange(0, KEPT)
    elements = tl.arange(0, REDUCED)
    wanted = outputs < kept
    begin = part * share
    count = min(share, reduced - begin)
    x += begin.to(tl.int64) * reduced_stride + first.to(tl.int64) * kept_stride
    tile = x + tl.arange(0, KEPT)[:, None] * kept_stride + elements[None, :] * reduced_stride
    total = tl.zeros((KEPT, REDUCED), tl.float32)
    for start in tl.range(0, share, REDUCED, num_stages=STAGES):
        inside = wanted[:, None] & (elements < count - start)[None, :]
        total += tl.load(tile, mask=inside, other=0.0).to(tl.float32)
        tile += REDUCED * reduced_stride
    tl.store(y + part.to(tl.int64) * kept + outputs, tl.sum(total, 1), mask=wanted)


class Reduction(TritonObjective):
    """y = sums of x along an axis. Metrics: ``time`` in seconds, ``error``, which is 0."""

    workload_facts = (*TritonObjective.device_facts, "rows", "columns", "axis", "dtype")
    tolerance = 0.0

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.rows, self.columns = context.size("rows"), context.size("columns")
        self.axis = context.size("axis", 0, least=0)
        if self.axis not in (0, 1):
            raise Infeasible(f"axis is 0 or 1, not {self.axis}")
        self.dtype = float_type(context)
        self.kept, self.reduced = (self.columns, self.rows) if self.axis == 0 else (self.rows, self.columns)

    def inputs(self) -> Mapping[str, Shape]:
        return {"x": ((self.rows, self.columns), self.dtype)}

    def outputs(self) -> Mapping[str, Shape]:
        return {"y": ((self.kept,), torch.float32)}

    def random(self, name: str, shape: tuple[int, ...], rng: np.random.Generator) -> torch.Tensor:
        """Small whole numbers, none of them 0."""
        generator = self.generator(rng)
        sizes = torch.randint(1, LARGEST + 1, shape, generator=generator, device=self.device)
        signs = torch.randint(0, 2, shape, generator=generator, device=self.device)
        return (sizes * (2 * signs - 1)).float()

    def reference(self, inputs: Mapping[str, torch.Tensor]) -> Mapping[str, torch.Tensor]:
        return {"y": inputs["x"].double().sum(dim=self.axis)}

    def work(self) -> Work:
        size = self.rows * self.columns
        moved = size * self.dtype.itemsize + self.kept * 4
        return Work(bytes=moved, operations=size, arithmetic="float32")

    def scratch(self, configuration: Configuration) -> Mapping[str, Shape]:
        parts = int(configuration["parts"])
        return {"partial": ((parts, self.kept), torch.float32)} if parts > 1 else {}

    def launches(self, configuration: Configuration) -> tuple[Launch, ...]:
        parts = int(configuration["parts"])
        kept, reduced = int(configuration["block_kept"]), int(configuration["block_reduced"])
        strides = (1, self.columns) if self.axis == 0 else (self.columns, 1)
        first = Launch(
            sums,
            (triton.cdiv(self.kept, kept), parts),
            self._arguments(
                "x",
                "partial" if parts > 1 else "y",
                self.reduced,
                (stride(strides[0], min(kept, self.kept)), stride(strides[1], min(reduced, self.reduced))),
                parts,
            ),
            {"KEPT": kept, "REDUCED": reduced, "STAGES": int(configuration["stages"])},
            warps=int(configuration["warps"]),
            stages=int(configuration["stages"]),
        )
        if parts == 1:
            return (first,)
        block = max(1, min(64, triton.next_power_of_2(self.kept)))
        second = Launch(
            sums,
            (triton.cdiv(self.kept, block), 1),
            self._arguments("partial", "y", parts, (1, stride(self.kept, parts)), 1),
            {"KEPT": block, "REDUCED": triton.next_power_of_2(parts), "STAGES": 1},
        )
        return first, second

    def _arguments(
        self, x: str, y: str, reduced: int, strides: tuple[int, int], parts: int
    ) -> dict[str, str | int | float]:
        return {
            "x": x,
            "y": y,
            "kept": self.kept,
            "reduced": reduced,
            "kept_stride": strides[0],
            "reduced_stride": strides[1],
            "share": triton.cdiv(reduced, parts),
        }

    def library(self, inputs: Mapping[str, torch.Tensor]) -> Any:
        """torch's sum."""
        return torch.sum(inputs["x"], dim=self.axis, dtype=torch.float32)

    def library_into(self, inputs: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor]) -> Any:
        return torch.sum(inputs["x"], dim=self.axis, dtype=torch.float32, out=outputs["y"])
