"""Spaces of 1,200 configurations whose optimum lies at a memory limit that no constraint states.

Three shapes: a tiled matrix product in shared memory, a time-blocked stencil with its halo, and a training
step whose activations grow with the batch. In each a larger configuration is the faster one, until it
no longer fits. Times and sizes are formulas, so that the answer is known; the limit is set so that a given
share of the space does not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from autotune.space.configuration import Configuration
from autotune.space.knobs import Choice, Flag, IntegerRange, OrderedValues
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space

Values = Mapping[str, Any]
Formula = Callable[[Values], float]


@dataclass(frozen=True)
class Shape:
    """A kind of program: its knobs, what memory it needs (bytes) and how long it takes (seconds)."""

    name: str
    knobs: tuple[Knob, ...]
    memory: Formula
    seconds: Formula


@dataclass(frozen=True)
class Limited:
    """A shape under a limit that ``share`` of its configurations exceed."""

    shape: Shape
    share: float

    @property
    def name(self) -> str:
        return f"{self.shape.name}-{round(100 * self.share)}"

    @cached_property
    def space(self) -> Space:
        return Space(self.shape.knobs)

    @cached_property
    def limit(self) -> float:
        needs = sorted(self.shape.memory(c) for c in self._all)
        return needs[round(len(needs) * (1.0 - self.share)) - 1]

    @cached_property
    def best(self) -> float:
        return min(self.shape.seconds(c) for c in self._all if self.fits(c))

    def fits(self, values: Values) -> bool:
        return self.shape.memory(values) <= self.limit

    @cached_property
    def _all(self) -> list[Configuration]:
        return [self.space.configuration(values) for values in self.space.feasible]


def ripple(*places: float) -> float:
    """What a formula leaves out of a real machine, within 3 %: bank conflicts, rests, alignment."""
    wave = sum(math.sin(3.7 * (i + 1) * place) for i, place in enumerate(places))
    return 1.0 + 0.03 * wave / len(places)


def product() -> Shape:
    """A tiled matrix product: two operand tiles in each of its stages."""

    def memory(v: Values) -> float:
        operands = (v["tile_m"] + v["tile_n"]) * v["tile_k"] * v["stages"]
        return float(4.0 * (operands + v["tile_m"] * v["vector"]))

    def seconds(v: Values) -> float:
        traffic = 16.0 * (1.0 / v["tile_m"] + 1.0 / v["tile_n"])
        latency = 6.0 / (v["tile_k"] * v["stages"]) + 0.15 / v["stages"]
        vectors = {1: 0.25, 2: 0.08, 4: 0.0}[v["vector"]]
        places = [math.log2(v[k]) for k in ("tile_m", "tile_n", "tile_k")]
        return float(1e-3 * (1.0 + traffic + latency + vectors) * ripple(*places, v["stages"]))

    tiles = (16, 32, 64, 128, 256)
    knobs = (
        OrderedValues("tile_m", tiles, default=16),
        OrderedValues("tile_n", tiles, default=16),
        OrderedValues("tile_k", (8, 16, 32, 64), default=8),
        OrderedValues("stages", (1, 2, 3, 4), default=1),
        OrderedValues("vector", (1, 2, 4), default=1),
    )
    return Shape("product", knobs, memory, seconds)


def stencil() -> Shape:
    """A stencil that does several time steps on a block: the block's halo grows with them."""

    def memory(v: Values) -> float:
        block = (v["block_x"] + 2 * v["steps"]) * (v["block_y"] + 2 * v["steps"])
        return float(4.0 * block * (2 if v["double"] else 1))

    def seconds(v: Values) -> float:
        x, y, steps = v["block_x"], v["block_y"], v["steps"]
        redundant = (x + steps) * (y + steps) / (x * y)
        traffic = 2.0 * (x + 2 * steps) * (y + 2 * steps) / (x * y * steps)
        loops = {1: 0.3, 2: 0.1, 4: 0.0}[v["unroll"]]
        overlap = 0.7 if v["double"] else 1.0
        work = redundant * (1.0 + loops) + traffic * overlap
        return float(1e-3 * work * ripple(math.log2(x), math.log2(y), steps))

    knobs = (
        OrderedValues("block_x", (16, 32, 64, 128, 256), default=16),
        OrderedValues("block_y", (4, 8, 16, 32, 64), default=4),
        IntegerRange("steps", 1, 8, default=1),
        OrderedValues("unroll", (1, 2, 4), default=1),
        Flag("double", default=False),
    )
    return Shape("stencil", knobs, memory, seconds)


def training() -> Shape:
    """A training step: activations grow with the batch and shrink with recomputing; seconds a sample."""

    def memory(v: Values) -> float:
        state = {"sgd": 1.0, "adam": 3.0, "adam-8bit": 1.6}[v["optimizer"]]
        width = 2 if v["precision"] == "bf16" else 4
        kept = {1: 1.0, 2: 0.62, 4: 0.4, 8: 0.3}[v["segments"]]
        return float(2e7 * (4.0 * state + width * (1.0 + 1.5 * v["batch"] * kept)))

    def seconds(v: Values) -> float:
        step = {"sgd": 2.0, "adam": 1.2, "adam-8bit": 1.3}[v["optimizer"]]  # steps to the target
        unit = 0.6 if v["precision"] == "bf16" else 1.0
        again = {1: 0.0, 2: 0.08, 4: 0.18, 8: 0.35}[v["segments"]]
        launch = 6.0 / v["batch"]
        rest = 0.02 * (-v["batch"] % 8 > 0) + 0.02 * (-v["batch"] % 4 > 0)
        return float(1e-3 * step * (unit * (1.0 + again + rest) + launch))

    knobs = (
        IntegerRange("batch", 1, 50, default=1),
        OrderedValues("segments", (1, 2, 4, 8), default=8),
        Choice("precision", ("fp32", "bf16")),
        Choice("optimizer", ("sgd", "adam", "adam-8bit")),
    )
    return Shape("training", knobs, memory, seconds)


SHAPES: Mapping[str, Callable[[], Shape]] = {"product": product, "stencil": stencil, "training": training}
SHARES = (0.2, 0.6)


def limited(name: str) -> Limited:
    """The space of that name: a shape and the share in per cent that does not fit, as ``product-20``."""
    shape, _, share = name.rpartition("-")
    return Limited(SHAPES[shape](), int(share) / 100)


NAMES = tuple(f"{shape}-{round(100 * share)}" for shape in SHAPES for share in SHARES)
