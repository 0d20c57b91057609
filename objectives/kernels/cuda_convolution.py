"""``cuda-convolution``: a float32 image with one filter, in CUDA C: block and tile sizes, shared memory.

Workload: ``height``, ``width`` (of the output), ``filter_height``, ``filter_width`` (any positive integers).
The oracle is the same sum in float64. Vendor baseline: torch's conv2d in full float32, which is cuDNN. The
default is a first version: one output a thread, straight from global memory.
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
    "block_x", "block_y", "tile_x", "tile_y", "image_shared", "pad", "filter_shared", "read_only", "unroll",
)  # fmt: skip


class Convolution(CudaObjective):
    """One image, one filter. Metrics: ``time`` in seconds, ``error`` over the largest output."""

    sources: ClassVar[tuple[str, ...]] = ("cuda_convolution.cu",)
    workload_facts = (*CudaObjective.device_facts, "height", "width", "filter_height", "filter_width")
    source: ClassVar[Path] = Path(__file__).with_suffix(".cu")
    kernels: ClassVar[tuple[str, ...]] = ("convolution",)
    tolerance: ClassVar[float] = 1e-5

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.height, self.width = context.size("height"), context.size("width")
        self.filter = context.size("filter_height"), context.size("filter_width")

    # -- the problem -------------------------------------------------------------------------

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, Tensor]:
        import torch

        generator, (rows, columns) = self.generator(rng), self.filter
        image = (self.height + rows - 1, self.width + columns - 1)
        return {
            "image": torch.randn(image, generator=generator, device=self.device),
            "filter": torch.randn(self.filter, generator=generator, device=self.device),
        }

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        import torch

        return {"out": ((self.height, self.width), torch.float32)}

    def reference(self, inputs: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """In float64, one element of the filter after the other."""
        image, weights = inputs["image"].double(), inputs["filter"].double()
        out = image.new_zeros(self.height, self.width)
        for i in range(self.filter[0]):
            for j in range(self.filter[1]):
                out += weights[i, j] * image[i : i + self.height, j : j + self.width]
        return {"out": out}

    def vary(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"height": int(rng.integers(1, 100)), "width": int(rng.integers(1, 200))}

    def work(self) -> Work:
        rows, columns = self.filter
        read = (self.height + rows - 1) * (self.width + columns - 1) + rows * columns
        outputs = self.height * self.width
        return Work(bytes=4 * (read + outputs), operations=2 * outputs * rows * columns)

    # -- the kernel --------------------------------------------------------------------------

    def macros(self, configuration: Configuration) -> Mapping[str, int]:
        knobs = {knob.upper(): int(configuration.get(knob, 0)) for knob in KNOBS}
        return {**knobs, "FILTER_H": self.filter[0], "FILTER_W": self.filter[1]}

    def blocks(self, configuration: Configuration) -> Mapping[str, Block]:
        c, (rows, columns) = self.macros(configuration), self.filter
        stride = c["BLOCK_X"] * c["TILE_X"] + columns - 1 + c["PAD"]
        held = c["IMAGE_SHARED"] * (c["BLOCK_Y"] * c["TILE_Y"] + rows - 1) * stride
        shared = 4 * (held + c["FILTER_SHARED"] * rows * columns)
        return {"convolution": Block((c["BLOCK_X"], c["BLOCK_Y"], 1), shared)}

    def launch(self, loaded: Loaded, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> None:
        c = self.macros(loaded.configuration)
        out_x, out_y = c["BLOCK_X"] * c["TILE_X"], c["BLOCK_Y"] * c["TILE_Y"]
        grid = (-(-self.width // out_x), -(-self.height // out_y))
        sizes = ctypes.c_int(self.height), ctypes.c_int(self.width)
        loaded.launch("convolution", grid, inputs["image"], inputs["filter"], outputs["out"], *sizes)

    # -- baselines ---------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        return (Baseline("torch", "torch's conv2d in full float32: cuDNN on an NVIDIA GPU"),)

    def load_baseline(self, baseline: Baseline) -> LibraryCall:
        import torch

        torch.backends.cudnn.allow_tf32 = False
        torch.backends.cudnn.benchmark = True  # it tries its algorithms before the first reading

        def correlate(
            convolution: Convolution, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]
        ) -> Tensor:
            image, weights = inputs["image"][None, None], inputs["filter"][None, None]
            return torch.nn.functional.conv2d(image, weights)

        return LibraryCall(correlate)
