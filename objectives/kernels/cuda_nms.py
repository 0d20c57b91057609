"""``cuda-nms``: greedy non-maximum suppression of boxes by falling score, in CUDA C, with the exact kept set.

Workload: ``boxes`` (any positive integer; the shared memory of a block holds a bit for each) and
``threshold`` (a multiple of 1/8 below 1, so that float32 decides every pair exactly: coordinates are whole
numbers below 1024). Boxes come in order of score. The oracle compares whole numbers. Vendor baseline:
torchvision's nms, where it is installed, which sorts the boxes as well. The default is a first version.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from autotune.measure.kernels.cuda_objective import Block, CudaObjective, Loaded, Tensor
from autotune.measure.kernels.library_call import LibraryCall
from autotune.measure.kernels.roofline import Work
from autotune.measure.objective import Baseline, Context, Infeasible
from autotune.space.configuration import Configuration

KNOBS = ("word", "rows", "tile", "columns_shared", "skip", "unroll", "walkers")

SIDE = 1024
"""Coordinates are whole numbers below it: areas fit 20 bits, their sum times an eighth's numerator 24."""

OPERATIONS = 16
"""Arithmetic of one pair of boxes."""


class Nms(CudaObjective):
    """Which boxes stay. Metrics: ``time`` in seconds, ``error``: 0, as nothing else is right."""

    sources: ClassVar[tuple[str, ...]] = ("cuda_nms.cu",)
    workload_facts = (*CudaObjective.device_facts, "boxes", "threshold")
    source: ClassVar[Path] = Path(__file__).with_suffix(".cu")
    kernels: ClassVar[tuple[str, ...]] = ("nms_compare", "nms_walk")
    tolerance: ClassVar[float] = 0.0

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.count = context.size("boxes")
        self.threshold = context.amount("threshold")
        if not (self.threshold < 1 and (8 * self.threshold).is_integer()):
            raise Infeasible(f"the threshold must be a multiple of 1/8 between 0 and 1, not {self.threshold}")
        self._mask: Tensor | None = None

    # -- the problem -------------------------------------------------------------------------

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, Tensor]:
        """Clusters of boxes, as a detector gives them; the first and the last overlap by the threshold."""
        import torch

        clusters = rng.integers(0, SIDE - 256, (max(self.count // 8, 1), 2))
        corner = clusters[rng.integers(len(clusters), size=self.count)] + rng.integers(0, 32, (self.count, 2))
        size = rng.integers(16, 160, (self.count, 2))
        boxes = np.concatenate([corner, corner + size], axis=1)
        boxes[0] = 0, SIDE - 32, SIDE - 1 - 7, SIDE - 1  # below all clusters
        boxes[-1] = boxes[0]
        boxes[-1, 2] *= self.threshold
        return {"boxes": torch.from_numpy(boxes.astype(np.float32)).to(self.device)}

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        import torch

        return {"kept": ((self.count,), torch.int32)}

    def reference(self, inputs: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """One box after the other, in whole numbers."""
        import torch

        boxes = inputs["boxes"].cpu().numpy().astype(np.int64)
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        eighths = round(8 * self.threshold)
        stays = np.ones(len(boxes), dtype=np.int32)
        for i in range(len(boxes)):
            if stays[i]:
                low, high = np.maximum(boxes[i, :2], boxes[i:, :2]), np.minimum(boxes[i, 2:], boxes[i:, 2:])
                overlap = np.maximum(high - low, 0).prod(axis=1)
                suppressed = 8 * overlap > eighths * (areas[i] + areas[i:] - overlap)
                suppressed[0] = False
                stays[i:][suppressed] = 0
        return {"kept": torch.from_numpy(stays)}

    def vary(self, rng: np.random.Generator) -> Mapping[str, Any]:
        """No more boxes than the shared memory of what is loaded was counted for."""
        return {
            "boxes": int(rng.integers(min(500, self.count))) + 1,
            "threshold": int(rng.integers(1, 8)) / 8,
        }

    def work(self) -> Work:
        """Of pairs, as many as there are: how many need not be compared is chance."""
        pairs = self.count * (self.count - 1) // 2
        return Work(bytes=(16 + 4) * self.count, operations=OPERATIONS * pairs)

    # -- the kernel --------------------------------------------------------------------------

    def macros(self, configuration: Configuration) -> Mapping[str, int]:
        return {knob.upper(): int(configuration[knob]) for knob in KNOBS}

    def blocks(self, configuration: Configuration) -> Mapping[str, Block]:
        c = self.macros(configuration)
        columns = 16 * c["WORD"] * c["COLUMNS_SHARED"]
        words = -(-self.count // c["WORD"])
        walk = (words + c["WORD"] + 1) * c["WORD"] // 8
        return {
            "nms_compare": Block((c["ROWS"], 1, 1), columns),
            "nms_walk": Block((c["WALKERS"], 1, 1), walk),
        }

    def launch(self, loaded: Loaded, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> None:
        c = self.macros(loaded.configuration)
        words = -(-self.count // c["WORD"])
        rows = -(-self.count // (c["ROWS"] * c["TILE"]))
        count, mask = ctypes.c_int(self.count), self._words(words * c["WORD"] // 8)
        threshold = ctypes.c_float(self.threshold)
        loaded.launch("nms_compare", (words, rows), inputs["boxes"], mask, count, threshold)
        loaded.launch("nms_walk", (1,), mask, outputs["kept"], count)

    def _words(self, row_bytes: int) -> Tensor:
        """Room for the bits of every pair."""
        import torch

        if self._mask is None or self._mask.numel() != self.count * row_bytes:
            size = self.count * row_bytes
            self._mask = torch.full((size,), 0xCB, dtype=torch.uint8, device=self.device)
        return self._mask

    # -- baselines ---------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        if importlib.util.find_spec("torchvision") is None:
            return ()
        return (Baseline("torchvision", "torchvision's nms, which sorts the boxes by score first"),)

    def load_baseline(self, baseline: Baseline) -> LibraryCall:
        import torch
        import torchvision

        all_scores = torch.arange(self.count, 0, -1, dtype=torch.float32, device=self.device)

        def suppress(nms: Nms, inputs: Mapping[str, Tensor], outputs: Mapping[str, Tensor]) -> None:
            # How many stay is known to the host only after it waited: this is no part of a graph.
            kept = torchvision.ops.nms(inputs["boxes"], all_scores[: nms.count], nms.threshold)
            outputs["kept"].zero_()
            outputs["kept"][kept] = 1

        return LibraryCall(suppress)
