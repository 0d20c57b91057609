"""``stencil-c``: several steps of heat in a plate (as Rodinia's hotspot), in C, compiled by gcc.

The oracle takes the same steps in float64. Baselines: a sweep a step as a C programmer writes it, and
NumPy in float32 with its temporary arrays kept.

Workload: ``height`` and ``width`` of the grid, ``steps`` (any positive integers), ``dtype`` (``float32``).
"""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_int, c_void_p
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from autotune.measure.kernels.compiled_c import SINGLE_THREAD, CompiledC, Kernel, c_function, compile_c
from autotune.measure.kernels.roofline import Work
from autotune.measure.objective import Baseline, Context, Infeasible
from autotune.space.configuration import Configuration

Arrays = dict[str, np.ndarray]

OPERATIONS = 10
"""Of a cell and step: four products with a sum, two sums of neighbours."""


class Stencil(CompiledC):
    """A five-point stencil in float32 on one thread. Metrics: ``time`` (s, of all steps), ``error``."""

    sources: ClassVar[tuple[str, ...]] = ("stencil_c.c", "plain.c")
    workload_facts = ("height", "width", "steps", "dtype")
    source = Path(__file__).with_suffix(".c")
    function = "stencil"
    signature = (c_void_p,) * 4 + (c_int,) * 3
    macros: ClassVar[Mapping[str, str]] = {
        "depth": "DEPTH",
        "tile_h": "TILE_H",
        "tile_w": "TILE_W",
        "rows": "ROWS",
        "vector": "VECTOR",
        "unroll": "UNROLL",
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.height, self.width, self.steps = (context.size(name) for name in ("height", "width", "steps"))
        if context.workload.get("dtype", "float32") != "float32":
            raise Infeasible(f"stencil-c computes in float32, not in {context.workload['dtype']}")

    def flags(self, configuration: Configuration) -> tuple[str, ...]:
        wavefront = int(configuration["scheme"] == "wavefront")
        return (*super().flags(configuration), f"-DWAVEFRONT={wavefront}")

    def arguments(self) -> tuple[int, ...]:
        return self.height, self.width, self.steps

    def make_inputs(self, rng: np.random.Generator) -> Arrays:
        """Heat and power around zero, so that a step that is left out shows; a stable plate."""
        grid = (self.height, self.width)
        vertical, horizontal = rng.uniform(0.05, 0.2, 2)
        loss, warming, ambient = rng.uniform(0.01, 0.05), rng.uniform(0.1, 0.5), rng.uniform(0.5, 1.0)
        centre = 1 - 2 * vertical - 2 * horizontal - loss
        coefficients = (centre, vertical, horizontal, warming, loss * ambient)
        return {
            "heat": rng.standard_normal(grid, dtype=np.float32),
            "power": rng.standard_normal(grid, dtype=np.float32),
            "coefficients": np.array(coefficients, dtype=np.float32),
        }

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        return {"out": ((self.height, self.width), np.float32)}

    def reference(self, inputs: Mapping[str, np.ndarray]) -> Arrays:
        heat, power, c = (array.astype(np.float64) for array in inputs.values())
        out = np.empty_like(heat)
        _sweeps(heat, power, c, out, self.steps)
        return {"out": out}

    def vary(self, rng: np.random.Generator) -> Mapping[str, Any]:
        sizes = {size: int(rng.integers(1, 150)) for size in ("height", "width")}
        return {**sizes, "steps": int(rng.integers(1, 12))}

    def work(self) -> Work:
        """Heat and power read once and the result written once, however many steps lie between."""
        cells = self.height * self.width
        return Work(bytes=3 * 4 * cells, operations=OPERATIONS * cells * self.steps)

    def baselines(self) -> tuple[Baseline, ...]:
        return (
            Baseline("plain", "a sweep a step as a C programmer writes it, gcc -O3", SINGLE_THREAD),
            Baseline("numpy", "whole arrays in numpy, without temporaries", SINGLE_THREAD),
        )

    def load_baseline(self, baseline: Baseline) -> Kernel:
        if baseline.name == "plain":
            library = compile_c(self.source.with_name("plain.c"), ("-O3",), self.context.cache)
            return c_function(library, "plain_stencil", self.signature)

        def kernel(heat: np.ndarray, power: np.ndarray, c: np.ndarray, out: np.ndarray, *sizes: int) -> None:
            _sweeps(heat, power, c, out, sizes[-1])

        return kernel


def _sweeps(heat: np.ndarray, power: np.ndarray, c: np.ndarray, out: np.ndarray, steps: int) -> None:
    """So many steps in the precision of the arrays; the result is in ``out``."""
    steady = c[3] * power + c[4]
    bordered = np.empty((heat.shape[0] + 2, heat.shape[1] + 2), heat.dtype)
    inside, sides = bordered[1:-1, 1:-1], np.empty_like(heat)
    inside[...] = heat
    for _ in range(steps):
        for outer, inner in ((0, 1), (-1, -2)):
            bordered[outer, 1:-1] = bordered[inner, 1:-1]
            bordered[1:-1, outer] = bordered[1:-1, inner]
        np.multiply(inside, c[0], out=out)
        for coefficient, first, second in (
            (c[1], bordered[:-2, 1:-1], bordered[2:, 1:-1]),
            (c[2], bordered[1:-1, :-2], bordered[1:-1, 2:]),
        ):
            np.add(first, second, out=sides)
            np.multiply(sides, coefficient, out=sides)
            np.add(out, sides, out=out)
        np.add(out, steady, out=out)
        inside[...] = out
