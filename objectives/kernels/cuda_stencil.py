"""``cuda-stencil``: steps of a heat equation on a grid (as in hotspot) in CUDA C, several in one launch.

Workload: ``height``, ``width``, ``steps`` (any positive integers). The oracle takes the steps in float64.
Baseline: the steps in PyTorch, whole grids at a time. The default is a first version: one cell a thread, one
step a launch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from autotune.measure.kernels.cuda_objective import Block, CudaObjective, Loaded, Tensor
from autotune.measure.kernels.library_call import LibraryCall
from autotune.measure.kernels.roofline import Work
from autotune.measure.objective import Baseline, Context
from autotune.space.configuration import Configuration

KNOBS = ("block_x", "block_y", "tile_x", "tile_y", "fused", "power_shared", "unroll", "min_blocks")

SX, SY, SZ, SP, AMBIENT = 0.125, 0.15, 0.05, 0.2, 0.3
"""The coefficients: stable, and different, so that axes that are swapped show."""

OPERATIONS = 13
"""Additions and multiplications of a cell in a step."""


class Stencil(CudaObjective):
    """Steps of the heat equation. Metrics: ``time`` (s, of all steps), ``error`` over the largest cell."""

    sources: ClassVar[tuple[str, ...]] = ("cuda_stencil.cu",)
    workload_facts = (*CudaObjective.device_facts, "height", "width", "steps")
    source: ClassVar[Path] = Path(__file__).with_suffix(".cu")
    kernels: ClassVar[tuple[str, ...]] = ("stencil",)
    tolerance: ClassVar[float] = 1e-5

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.height, self.width, self.steps = (context.size(name) for name in ("height", "width", "steps"))
        self._between: Tensor | None = None

    # -- the problem -------------------------------------------------------------------------

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, Tensor]:
        import torch

        generator, shape = self.generator(rng), (self.height, self.width)
        return {
            "temperature": torch.randn(shape, generator=generator, device=self.device),
            "power": torch.randn(shape, generator=generator, device=self.device),
        }

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        import torch

        return {"out": ((self.height, self.width), torch.float32)}

    def reference(self, inputs: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        grid, power = inputs["temperature"].double(), inputs["power"].double()
        for _ in range(self.steps):
            grid = _step(grid, power)
        return {"out": grid}

    def vary(self, rng: np.random.Generator) -> Mapping[str, Any]:
        height, width = (int(size) for size in rng.integers(1, 120, 2))
        return {"height": height, "width": width, "steps": int(rng.integers(1, 12))}

    def work(self) -> Work:
        cells = self.height * self.width
        return Work(bytes=4 * 3 * cells, operations=OPERATIONS * cells * self.steps)

    # -- the kernel --------------------------------------------------------------------------

    def macros(self, configuration: Configuration) -> Mapping[str, int]:
        return {knob.upper(): int(configuration[knob]) for knob in KNOBS}

    def blocks(self, configuration: Configuration) -> Mapping[str, Block]:
        c = self.macros(configuration)
        held_x = c["BLOCK_X"] * c["TILE_X"] + 2 * c["FUSED"]
        held_y = c["BLOCK_Y"] * c["TILE_Y"] + 2 * c["FUSED"]
        grids = (2 if c["FUSED"] > 1 else 1) + c["POWER_SHARED"]
        return {"stencil": Block((c["BLOCK_X"], c["BLOCK_Y"], 1), 4 * grids * held_x * held_y)}

    def launch(self, loaded: Loaded, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> None:
        """Launches of at most so many steps, to and fro between the output and a grid of our own."""
        c = self.macros(loaded.configuration)
        out_x, out_y = c["BLOCK_X"] * c["TILE_X"], c["BLOCK_Y"] * c["TILE_Y"]
        grid = (-(-self.width // out_x), -(-self.height // out_y))
        launches = -(-self.steps // c["FUSED"])
        between = self._grid_between(outputs["out"]) if launches > 1 else None
        sizes = ctypes.c_int(self.height), ctypes.c_int(self.width)
        factors = tuple(map(ctypes.c_float, (SX, SY, SZ, SP, AMBIENT)))
        source = inputs["temperature"]
        for launch in range(launches):
            target = outputs["out"] if (launches - 1 - launch) % 2 == 0 else between
            steps = ctypes.c_int(min(c["FUSED"], self.steps - launch * c["FUSED"]))
            loaded.launch("stencil", grid, source, inputs["power"], target, *sizes, steps, *factors)
            source = target

    def _grid_between(self, like: Tensor) -> Tensor:
        import torch

        if self._between is None:
            self._between = torch.full_like(like, float("nan"))
        return self._between

    # -- baselines ---------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        return (Baseline("torch", "the same steps in PyTorch, whole grids at a time"),)

    def load_baseline(self, baseline: Baseline) -> LibraryCall:
        def steps(stencil: Stencil, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> Tensor:
            grid = inputs["temperature"]
            for _ in range(stencil.steps):
                grid = _step(grid, inputs["power"])
            return grid

        return LibraryCall(steps)


def _step(grid: Tensor, power: Tensor) -> Tensor:
    """One step; what lies outside is as warm as the border."""
    import torch

    tall = torch.cat([grid[:1], grid, grid[-1:]])
    wide = torch.cat([grid[:, :1], grid, grid[:, -1:]], dim=1)
    across = wide[:, :-2] + wide[:, 2:] - 2 * grid
    along = tall[:-2] + tall[2:] - 2 * grid
    return grid + SX * across + SY * along + SZ * (AMBIENT - grid) + SP * power
