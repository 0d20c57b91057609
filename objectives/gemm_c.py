"""``gemm-c``: a tiled float32 matrix product in C, compiled by gcc for every configuration.

The oracle is the product in float64; the vendor baselines are OpenBLAS through numpy, as it comes
and with each core type that this CPU can run, because OpenBLAS does not always detect the right one
(on some AMD CPUs the detected or a forced wrong type loses half of the speed).

Workload: ``m``, ``n``, ``k`` (any positive integers) and ``dtype`` (``float32``).
"""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_int, c_void_p
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from autotune.measure.kernels.compiled_c import SINGLE_THREAD, CompiledC, Kernel
from autotune.measure.kernels.roofline import Work
from autotune.measure.objective import Baseline, Context, Infeasible
from autotune.space.configuration import Configuration

CORE_TYPES = {
    "avx512f": ("SkylakeX", "Cooperlake", "SapphireRapids"),
    "avx2": ("Haswell", "Zen"),
}
"""OpenBLAS core types worth trying, by the instruction set that they need."""

Arrays = dict[str, np.ndarray]


class Gemm(CompiledC):
    """C = A B in float32 on one thread. Metrics: ``time`` in seconds, ``error`` over the largest entry."""

    sources: ClassVar[tuple[str, ...]] = ("gemm_c.c",)
    workload_facts = ("m", "n", "k", "dtype")
    source = Path(__file__).with_suffix(".c")
    function = "gemm"
    signature = (c_void_p,) * 3 + (c_int,) * 3
    macros: ClassVar[Mapping[str, str]] = {
        "tile_m": "TILE_M",
        "tile_v": "TILE_V",
        "vector": "VECTOR",
        "block_m": "BLOCK_M",
        "block_n": "BLOCK_N",
        "block_k": "BLOCK_K",
        "unroll": "UNROLL",
        "prefetch": "PREFETCH",
        "pack_a": "PACK_A",
        "pack_b": "PACK_B",
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.m, self.n, self.k = (context.size(size) for size in "mnk")
        if context.workload.get("dtype", "float32") != "float32":
            raise Infeasible(f"gemm-c computes in float32, not in {context.workload['dtype']}")

    # -- the configuration -------------------------------------------------------------------

    def flags(self, configuration: Configuration) -> tuple[str, ...]:
        loops = zip(("OUTER", "MIDDLE", "INNER"), configuration["order"], strict=True)
        return (*super().flags(configuration), *(f"-D{macro}='{loop}'" for macro, loop in loops))

    def arguments(self) -> tuple[int, ...]:
        return self.m, self.n, self.k

    # -- inputs, outputs and the oracle ------------------------------------------------------

    def make_inputs(self, rng: np.random.Generator) -> Arrays:
        return {
            "a": rng.standard_normal((self.m, self.k), dtype=np.float32),
            "b": rng.standard_normal((self.k, self.n), dtype=np.float32),
        }

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        return {"c": ((self.m, self.n), np.float32)}

    def reference(self, inputs: Mapping[str, np.ndarray]) -> Arrays:
        return {"c": inputs["a"].astype(np.float64) @ inputs["b"].astype(np.float64)}

    def vary(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {size: int(rng.integers(1, 150)) for size in "mnk"}

    def work(self) -> Work:
        sizes = self.m * self.k + self.k * self.n + self.m * self.n
        return Work(bytes=4 * sizes, operations=2 * self.m * self.n * self.k)

    # -- baselines ---------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        """OpenBLAS through numpy on one thread: as it comes, and with each core type that may fit."""
        detected = Baseline("openblas", "numpy's matrix product on one thread, as it comes", SINGLE_THREAD)
        forced = [
            Baseline(
                f"openblas-{core.lower()}",
                f"numpy's matrix product on one thread, OPENBLAS_CORETYPE={core}",
                {**SINGLE_THREAD, "OPENBLAS_CORETYPE": core},
            )
            for needed, cores in CORE_TYPES.items()
            if needed in _instruction_sets()
            for core in cores
        ]
        return (detected, *forced)

    def load_baseline(self, baseline: Baseline) -> Kernel:
        return lambda a, b, c, m, n, k: np.matmul(a, b, out=c)


def _instruction_sets() -> frozenset[str]:
    """The flags in /proc/cpuinfo; empty where there are none (not x86), and then no type is forced."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), ":")
    return frozenset(flags.split(":", 1)[1].split())
