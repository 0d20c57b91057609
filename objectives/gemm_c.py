"""``gemm-c``: a tiled float32 matrix product in C, compiled by gcc for every configuration.

The oracle is the product in float64; the vendor baselines are OpenBLAS through numpy, as it comes
and with each core type that this CPU can run, because OpenBLAS does not always detect the right one
(on some AMD CPUs the detected or a forced wrong type loses half of the speed).

Workload: ``m``, ``n``, ``k`` (any positive integers) and ``dtype`` (``float32``).
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from autotune.measure.array_objective import ArrayObjective
from autotune.measure.objective import Baseline, Context, Infeasible
from autotune.space.configuration import Configuration

SOURCE = Path(__file__).with_suffix(".c")

MACROS = {
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

CORE_TYPES = {
    "avx512f": ("SkylakeX", "Cooperlake", "SapphireRapids"),
    "avx2": ("Haswell", "Zen"),
}
"""OpenBLAS core types worth trying, by the instruction set that they need."""

Arrays = dict[str, np.ndarray]


class Gemm(ArrayObjective):
    """C = A B in float32 on one thread. Metrics: ``time`` in seconds, ``error`` over the largest entry."""

    sources: ClassVar[tuple[str, ...]] = ("gemm_c.c",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.m, self.n, self.k = (int(context.workload[size]) for size in "mnk")
        if context.workload.get("dtype", "float32") != "float32":
            raise Infeasible(f"gemm-c computes in float32, not in {context.workload['dtype']}")

    # -- the configuration -------------------------------------------------------------------

    def prepare(self, configuration: Configuration) -> str:
        """Compile with gcc; the path of the shared library, named by the hash of all that goes in."""
        command = [*self._compiler(), *_flags(configuration)]
        identity = "\0".join([SOURCE.read_text(), *command])
        library = self.context.cache / f"gemm-{hashlib.sha256(identity.encode()).hexdigest()[:16]}.so"
        if not library.exists():
            unfinished = library.with_suffix(f".{os.getpid()}")
            done = subprocess.run(
                [*command, str(SOURCE), "-o", str(unfinished)], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise Infeasible(f"gcc refused it: {done.stderr.strip()[-2000:]}")
            unfinished.replace(library)  # atomic: two preparers may compile the same
        return str(library)

    def _compiler(self) -> tuple[str, ...]:
        gcc = shutil.which(os.environ.get("CC", "gcc")) or shutil.which("cc")
        if gcc is None:
            raise Infeasible("no C compiler: install gcc")
        return gcc, "-march=native", "-std=gnu11", "-shared", "-fPIC"

    def load(self, prepared: str) -> Callable[..., Any]:
        function = ctypes.CDLL(prepared).gemm
        function.restype = None
        function.argtypes = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 3
        sizes = (self.m, self.n, self.k)

        def product(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
            function(a.ctypes.data, b.ctypes.data, out.ctypes.data, *sizes)

        return product

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

    def call(self, loaded: Callable[..., Any], inputs: Mapping[str, np.ndarray], outputs: Arrays) -> None:
        loaded(inputs["a"], inputs["b"], out=outputs["c"])

    # -- baselines ---------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        """OpenBLAS through numpy on one thread: as it comes, and with each core type that may fit."""
        single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        detected = Baseline("openblas", "numpy's matrix product on one thread, as it comes", single)
        forced = [
            Baseline(
                f"openblas-{core.lower()}",
                f"numpy's matrix product on one thread, OPENBLAS_CORETYPE={core}",
                {**single, "OPENBLAS_CORETYPE": core},
            )
            for needed, cores in CORE_TYPES.items()
            if needed in _instruction_sets()
            for core in cores
        ]
        return (detected, *forced)

    def load_baseline(self, baseline: Baseline) -> Callable[..., Any]:
        return np.matmul


def _flags(configuration: Mapping[str, Any]) -> list[str]:
    loops = zip(("OUTER", "MIDDLE", "INNER"), configuration["order"], strict=True)
    return [
        f"-O{configuration['optimize']}",
        *(f"-D{macro}={int(configuration[knob])}" for knob, macro in MACROS.items()),
        *(f"-D{macro}='{loop}'" for macro, loop in loops),
    ]


def _instruction_sets() -> frozenset[str]:
    """The flags in /proc/cpuinfo; empty where there are none (not x86), and then no type is forced."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.startswith("flags")), ":")
    return frozenset(flags.split(":", 1)[1].split())
