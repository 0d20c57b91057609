"""Compiles kernel.c for every configuration, checks its answer, and measures it."""

import ctypes
import subprocess
from pathlib import Path

import numpy as np

import autotune

SOURCE = Path(__file__).with_name("kernel.c")


class Transpose(autotune.ArrayObjective):
    sources = ("kernel.c",)

    def prepare(self, configuration):
        """Runs ahead on another core; what it returns is handed to load()."""
        library = self.context.cache / f"{configuration.hash}.so"
        command = ["gcc", f"-O{configuration['optimize']}", "-march=native", "-shared", "-fPIC"]
        command += [f"-DTILE={configuration['tile']}", f"-DUNROLL={configuration['unroll']}"]
        done = subprocess.run([*command, str(SOURCE), "-o", str(library)], capture_output=True, text=True)
        if done.returncode:
            raise autotune.Infeasible(done.stderr)
        return str(library)

    def load(self, prepared):
        return ctypes.CDLL(prepared).transpose

    def make_inputs(self, rng):
        n = self.context.workload["n"]
        return {"in": rng.standard_normal((n, n), dtype=np.float32)}

    def outputs(self):
        n = self.context.workload["n"]
        return {"out": ((n, n), np.float32)}

    def reference(self, inputs):
        return {"out": inputs["in"].T}

    def call(self, loaded, inputs, outputs):
        source, target = inputs["in"], outputs["out"]
        loaded(ctypes.c_void_p(source.ctypes.data), ctypes.c_void_p(target.ctypes.data), source.shape[0])
