"""``cuda-gemm``: C = A B in float32 in CUDA C, without tensor cores: tiles in shared memory and in registers.

Workload: ``m``, ``n``, ``k`` (any positive integers). The oracle is the product in float64. Vendor baseline:
torch's matrix product in full float32, which is cuBLAS. The default is a first version: a 16 x 16 tile of
shared memory, one element a thread.
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

KNOBS = (
    "block_m", "block_n", "block_k", "thread_m", "thread_n", "load", "read", "stages", "pad", "group",
    "unroll", "min_blocks",
)  # fmt: skip


class Gemm(CudaObjective):
    """C = A B. Metrics: ``time`` in seconds, ``error`` over the largest entry of C."""

    sources: ClassVar[tuple[str, ...]] = ("cuda_gemm.cu",)
    workload_facts = (*CudaObjective.device_facts, "m", "n", "k")
    source: ClassVar[Path] = Path(__file__).with_suffix(".cu")
    kernels: ClassVar[tuple[str, ...]] = ("gemm_aligned", "gemm_ragged")
    tolerance: ClassVar[float] = 1e-5

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.m, self.n, self.k = (context.size(size) for size in "mnk")

    # -- the problem -------------------------------------------------------------------------

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Standard normal; the last of k stands out, so that leaving it out shows however large k is."""
        import torch

        generator = self.generator(rng)
        a = torch.randn(self.m, self.k, generator=generator, device=self.device)
        b = torch.randn(self.k, self.n, generator=generator, device=self.device)
        a[:, -1] *= 4
        return {"a": a, "b": b}

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        import torch

        return {"c": ((self.m, self.n), torch.float32)}

    def reference(self, inputs: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {"c": inputs["a"].double() @ inputs["b"].double()}

    def vary(self, rng: np.random.Generator) -> Mapping[str, Any]:
        """Ragged sizes, half of them with rows that vector loads divide."""
        unit = int(rng.choice([1, 4]))
        return {size: unit * int(rng.integers(1, 120 // unit)) for size in "mnk"}

    def work(self) -> Work:
        m, n, k = self.m, self.n, self.k
        return Work(bytes=4 * (m * k + k * n + m * n), operations=2 * m * n * k)

    # -- the kernel --------------------------------------------------------------------------

    def macros(self, configuration: Configuration) -> Mapping[str, int]:
        return {knob.upper(): int(configuration[knob]) for knob in KNOBS}

    def blocks(self, configuration: Configuration) -> Mapping[str, Block]:
        c = self.macros(configuration)
        threads = (c["BLOCK_M"] // c["THREAD_M"]) * (c["BLOCK_N"] // c["THREAD_N"])
        shared = 4 * c["STAGES"] * c["BLOCK_K"] * (c["BLOCK_M"] + c["PAD"] + c["BLOCK_N"])
        return dict.fromkeys(self.kernels, Block((threads, 1, 1), shared))

    def launch(self, loaded: Loaded, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> None:
        c, sizes = loaded.configuration, (self.m, self.n, self.k)
        aligned = self.n % c["load"] == 0 and self.k % c["load"] == 0
        tiles = -(-self.m // c["block_m"]) * -(-self.n // c["block_n"])
        kernel = "gemm_aligned" if aligned else "gemm_ragged"
        loaded.launch(kernel, (tiles,), inputs["a"], inputs["b"], outputs["c"], *map(ctypes.c_int, sizes))

    # -- baselines ---------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        return (Baseline("torch", "torch.matmul in full float32: cuBLAS on an NVIDIA GPU"),)

    def load_baseline(self, baseline: Baseline) -> LibraryCall:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False

        def product(gemm: Gemm, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> None:
            torch.matmul(inputs["a"], inputs["b"], out=outputs["c"])

        return LibraryCall(product)
