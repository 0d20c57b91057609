"""A kernel over arrays that is right for all configurations but one."""

from __future__ import annotations

import ctypes

import numpy as np

import autotune


class Double(autotune.ArrayObjective):
    """out = 2 * x, done wrongly as ``fault`` says."""

    def load(self, prepared):
        return prepared["fault"]

    def make_inputs(self, rng):
        return {"x": rng.standard_normal(1000, dtype=np.float32)}

    def outputs(self):
        return {"out": ((1000,), np.float32)}

    def reference(self, inputs):
        return {"out": 2.0 * inputs["x"].astype(np.float64)}

    def call(self, loaded, inputs, outputs):
        x, out = inputs["x"], outputs["out"]
        np.multiply(x, 2, out=out)
        if loaded == "write behind":
            ctypes.memset(out.ctypes.data + out.nbytes, 0, 4)
        if loaded == "write before":
            ctypes.memset(out.ctypes.data - 8, 0, 8)
        if loaded == "write far behind":
            ctypes.memset(out.ctypes.data, 0, 1 << 36)
        if loaded == "change input":
            x[17] += 1
        if loaded == "leave one out":
            out[999] = np.nan
        if loaded == "wrong once":
            out[123] += 1
