"""``nms-c``: greedy non-maximum suppression in C, compiled by gcc for every configuration.

The oracle is the kept set itself, from whole numbers. Boxes have corners on whole pixels and the limit is
a multiple of 1/64: every comparison is then exact in float32, whichever way it is computed, and there is
one kept set. Baselines: the loops as a C programmer writes them, and NumPy a kept box at a time.

Workload: ``boxes``, ``objects`` (places where boxes gather), ``overlap`` (the limit of intersection over
union) and ``threads`` (the most that may be used; ``measure: {cores: ...}`` has to be as many).
"""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import c_float, c_int, c_void_p
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from autotune.measure.kernels.compiled_c import SINGLE_THREAD, CompiledC, Kernel, c_function, compile_c
from autotune.measure.kernels.roofline import Work
from autotune.measure.objective import Baseline, Context, Infeasible
from autotune.space.configuration import Configuration

Arrays = dict[str, np.ndarray]

PARTS = 64
"""The limit is a multiple of one over this."""
SIDES = (16, 128)
"""The smallest and the largest side of an object, in pixels: areas times PARTS stay below 2^24."""
PICTURE = (1920, 1080)
BACKGROUND = 0.2
"""The part of the boxes that belong to no object."""
OPERATIONS = 13
"""Of a test: four extremes, two sides each cut off at zero, a product, a union, a product, a comparison."""

EXITS = {"none": 0, "rows": 1, "words": 2}


class Suppression(CompiledC):
    """Which boxes, sorted by falling score, are kept. Metrics: ``time`` (s), ``error`` (0 or wrong)."""

    sources: ClassVar[tuple[str, ...]] = ("nms_c.c", "plain.c")
    workload_facts = ("boxes", "objects", "overlap", "threads")
    source = Path(__file__).with_suffix(".c")
    function = "nms"
    signature = (c_void_p, c_void_p, c_int, c_float)
    macros: ClassVar[Mapping[str, str]] = {
        "block": "BLOCK",
        "word": "WORD",
        "vector": "VECTOR",
        "columns": "COLUMNS",
        "areas": "AREAS",
        "divide": "DIVIDE",
        "threads": "THREADS",
    }

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.boxes, self.objects = context.size("boxes"), context.size("objects")
        context.size("threads", 1)  # only a rule of the space uses it
        self.overlap = context.amount("overlap")
        if (self.overlap * PARTS) % 1 or not self.overlap < 1:
            raise Infeasible(f"the overlap must be a multiple of 1/{PARTS} in (0, 1), not {self.overlap}")

    def flags(self, configuration: Configuration) -> tuple[str, ...]:
        early_exit = EXITS[str(configuration["early_exit"])]
        threaded = ("-fopenmp",) if configuration["threads"] != 1 else ()
        return (*super().flags(configuration), f"-DEARLY_EXIT={early_exit}", *threaded)

    def arguments(self) -> tuple[int | float, ...]:
        return self.boxes, self.overlap

    def make_inputs(self, rng: np.random.Generator) -> Arrays:
        """Boxes around objects, moved and resized by up to a fifth, and some anywhere; in no order.

        The first and the last lie beside the picture, and overlap by the very limit, which is not past it.
        """
        count = self.boxes
        sides = rng.integers(*SIDES, (self.objects, 2))
        corners = rng.integers(0, np.array(PICTURE) - SIDES[1], (self.objects, 2))
        which = rng.integers(0, self.objects, count)
        apart = rng.random(count) < BACKGROUND
        size = np.where(apart[:, None], rng.integers(*SIDES, (count, 2)), sides[which])
        corner = np.where(
            apart[:, None], rng.integers(0, np.array(PICTURE) - SIDES[1], (count, 2)), corners[which]
        )
        change = size // 5
        corner = corner + rng.integers(-change, change + 1)
        size = np.minimum(size + rng.integers(-change, change + 1), SIDES[1])
        corner[[0, -1]], size[0] = 2 * max(PICTURE), PARTS
        size[-1] = PARTS, self.overlap * PARTS
        return {"boxes": np.concatenate([corner, corner + size], axis=1).astype(np.float32)}

    def outputs(self) -> Mapping[str, tuple[tuple[int, ...], Any]]:
        return {"keep": ((self.boxes,), np.uint8)}

    def reference(self, inputs: Mapping[str, np.ndarray]) -> Arrays:
        left, top, right, bottom = inputs["boxes"].astype(np.int64).T
        areas, limit = (right - left) * (bottom - top), round(self.overlap * PARTS)
        keep = np.ones(self.boxes, np.uint8)
        for i in range(self.boxes):
            if not keep[i]:
                continue
            width = np.minimum(right[i], right[i + 1 :]) - np.maximum(left[i], left[i + 1 :])
            height = np.minimum(bottom[i], bottom[i + 1 :]) - np.maximum(top[i], top[i + 1 :])
            shared = np.maximum(width, 0) * np.maximum(height, 0)
            keep[i + 1 :][PARTS * shared > limit * (areas[i] + areas[i + 1 :] - shared)] = 0
        return {"keep": keep}

    def vary(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"boxes": int(rng.integers(1, 300)), "objects": int(rng.integers(1, 12))}

    def work(self) -> Work:
        """The boxes read and the flags written once; the least tests for one draw of the inputs.

        That is each kept box against each kept one before it, and one for each suppressed box.
        """
        kept = int(self.reference(self.make_inputs(np.random.default_rng(0)))["keep"].sum())
        tests = kept * (kept - 1) / 2 + self.boxes - kept
        return Work(bytes=self.boxes * 17, operations=OPERATIONS * tests)

    def baselines(self) -> tuple[Baseline, ...]:
        return (
            Baseline("plain", "the loops as a C programmer writes them, gcc -O3", SINGLE_THREAD),
            Baseline("numpy", "numpy, all later boxes against a kept one at a time", SINGLE_THREAD),
        )

    def load_baseline(self, baseline: Baseline) -> Kernel:
        if baseline.name == "plain":
            library = compile_c(self.source.with_name("plain.c"), ("-O3",), self.context.cache)
            return c_function(library, "plain_nms", self.signature)
        return _numpy


def _numpy(boxes: np.ndarray, keep: np.ndarray, count: int, limit: float) -> None:
    """As in the Python versions of Faster R-CNN: the boxes that are left shrink with each kept one."""
    left, top, right, bottom = boxes.T
    areas = (right - left) * (bottom - top)
    keep[...] = 0
    waiting = np.arange(count)
    while waiting.size:
        first, others = waiting[0], waiting[1:]
        keep[first] = 1
        width = np.minimum(right[first], right[others]) - np.maximum(left[first], left[others])
        height = np.minimum(bottom[first], bottom[others]) - np.maximum(top[first], top[others])
        shared = np.maximum(width, 0) * np.maximum(height, 0)
        waiting = others[shared <= limit * (areas[first] + areas[others] - shared)]
