"""``convolution-c``: a 2D convolution in C, compiled by gcc for every configuration.

The oracle is the sum over the filter's terms in float64. Baselines: the convolution as a C programmer
writes it, SciPy's direct and FFT convolutions, and oneDNN (through PyTorch) and OpenCV where installed.

Workload: ``height`` and ``width`` of the image, ``filter_height`` and ``filter_width`` (any positive
integers) and ``dtype`` (``float32``). The output has the image's size; outside it the image is zero.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from ctypes import c_int, c_void_p
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from autotune.measure.kernels.compiled_c import SINGLE_THREAD, CompiledC, Kernel, c_function, compile_c
from autotune.measure.kernels.roofline import Work
from autotune.measure.objective import Baseline, Context, Infeasible
from autotune.space.configuration import Configuration

Arrays = dict[str, np.ndarray]

PADS = {"none": 0, "image": 1, "block": 2}

BASELINES = (
    ("plain", "the loops as a C programmer writes them, gcc -O3", "numpy"),
    ("scipy-direct", "scipy.ndimage.correlate", "scipy"),
    ("scipy-fft", "scipy.signal.oaconvolve", "scipy"),
    ("onednn", "torch.nn.functional.conv2d on one thread", "torch"),
    ("opencv", "cv2.filter2D on one thread", "cv2"),
)
"""Name, what it is, and the package that it needs."""


class Convolution(CompiledC):
    """A filter over an image of one channel, in float32 on one thread. Metrics: ``time`` (s), ``error``."""

    sources: ClassVar[tuple[str, ...]] = ("convolution_c.c", "plain.c")
    workload_facts = ("height", "width", "filter_height", "filter_width", "dtype")
    source = Path(__file__).with_suffix(".c")
    function = "convolution"
    signature = (c_void_p,) * 3 + (c_int,) * 4
    macros: ClassVar[Mapping[str, str]] = {
        "tile_h": "TILE_H",
        "tile_v": "TILE_V",
        "vector": "VECTOR",
        "block_h": "BLOCK_H",
        "block_w": "BLOCK_W",
        "reuse": "REUSE",
        "unroll": "UNROLL",
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        names = ("height", "width", "filter_height", "filter_width")
        self.height, self.width, self.fh, self.fw = (context.size(name) for name in names)
        if context.workload.get("dtype", "float32") != "float32":
            raise Infeasible(f"convolution-c computes in float32, not in {context.workload['dtype']}")

    def flags(self, configuration: Configuration) -> tuple[str, ...]:
        fh, fw = (self.fh, self.fw) if configuration["fixed"] else (0, 0)
        pad = PADS[str(configuration["pad"])]
        return (*super().flags(configuration), f"-DPAD={pad}", f"-DFILTER_H={fh}", f"-DFILTER_W={fw}")

    def arguments(self) -> tuple[int, ...]:
        return self.height, self.width, self.fh, self.fw

    def make_inputs(self, rng: np.random.Generator) -> Arrays:
        return {
            "image": rng.standard_normal((self.height, self.width), dtype=np.float32),
            "filter": rng.standard_normal((self.fh, self.fw), dtype=np.float32),
        }

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        return {"out": ((self.height, self.width), np.float32)}

    def reference(self, inputs: Mapping[str, np.ndarray]) -> Arrays:
        before = (self.fh // 2, self.fw // 2)
        after = (self.fh - 1 - before[0], self.fw - 1 - before[1])
        image = np.pad(inputs["image"].astype(np.float64), tuple(zip(before, after, strict=True)))
        out = np.zeros((self.height, self.width))
        for (i, j), weight in np.ndenumerate(inputs["filter"].astype(np.float64)):
            out += weight * image[i : i + self.height, j : j + self.width]
        return {"out": out}

    def vary(self, rng: np.random.Generator) -> Mapping[str, Any]:
        """The filter stays, since it may be compiled in."""
        return {size: int(rng.integers(1, 150)) for size in ("height", "width")}

    def work(self) -> Work:
        """The image and the filter read once, the output written once; a product and a sum a term.

        Terms outside the image are counted, as is customary: for a filter of 9 of 1,024 they are 0.8 %.
        """
        pixels, terms = self.height * self.width, self.fh * self.fw
        return Work(bytes=4 * (2 * pixels + terms), operations=2 * pixels * terms)

    def baselines(self) -> tuple[Baseline, ...]:
        """Those whose package is installed, each on one thread."""
        present = [
            (name, what) for name, what, package in BASELINES if importlib.util.find_spec(package) is not None
        ]
        return tuple(Baseline(name, what, SINGLE_THREAD) for name, what in present)

    def load_baseline(self, baseline: Baseline) -> Kernel:
        if baseline.name == "plain":
            library = compile_c(self.source.with_name("plain.c"), ("-O3",), self.context.cache)
            return c_function(library, "plain_convolution", self.signature)
        makers: Mapping[str, Callable[[], Kernel]] = {
            "scipy-direct": _scipy_direct,
            "scipy-fft": _scipy_fft,
            "onednn": _onednn,
            "opencv": _opencv,
        }
        return makers[baseline.name]()


# -- what libraries offer --------------------------------------------------------------------------


def _scipy_direct() -> Kernel:
    from scipy import ndimage

    def kernel(image: np.ndarray, filter_: np.ndarray, out: np.ndarray, *sizes: int) -> None:
        ndimage.correlate(image, filter_, output=out, mode="constant")

    return kernel


def _scipy_fft() -> Kernel:
    from scipy import signal

    def kernel(
        image: np.ndarray, filter_: np.ndarray, out: np.ndarray, height: int, width: int, fh: int, fw: int
    ) -> None:
        full = signal.oaconvolve(image, filter_[::-1, ::-1])
        top, left = fh - 1 - fh // 2, fw - 1 - fw // 2
        out[...] = full[top : top + height, left : left + width]

    return kernel


def _onednn() -> Kernel:
    import torch

    torch.set_num_threads(1)

    def kernel(
        image: np.ndarray, filter_: np.ndarray, out: np.ndarray, height: int, width: int, fh: int, fw: int
    ) -> None:
        x, f = (torch.from_numpy(array)[None, None] for array in (image, filter_))
        if fh % 2 and fw % 2:
            y = torch.nn.functional.conv2d(x, f, padding=(fh // 2, fw // 2))
        else:  # more zeros on one side than on the other
            sides = (fw // 2, fw - 1 - fw // 2, fh // 2, fh - 1 - fh // 2)
            y = torch.nn.functional.conv2d(torch.nn.functional.pad(x, sides), f)
        torch.from_numpy(out).copy_(y[0, 0])

    return kernel


def _opencv() -> Kernel:
    import cv2

    cv2.setNumThreads(1)

    def kernel(image: np.ndarray, filter_: np.ndarray, out: np.ndarray, *sizes: int) -> None:
        cv2.filter2D(image, -1, filter_, dst=out, borderType=cv2.BORDER_CONSTANT)

    return kernel
