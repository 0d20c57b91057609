"""The model that is served, the requests that it may be sent, and how both lie in a message.

A request is its number and the inputs, an answer the number and the outputs, all in the machine's own bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

NUMBER = struct.Struct("=Q")
"""Of a request, before its inputs or outputs."""
RELOAD = 2**64 - 1
"""In the place of a number: the server is to load the model whose seed stands in the inputs."""
BANK = 1024
"""Requests that differ. Those that are not popular come round in their order, so that one that is seen again
was not seen for long."""


@dataclass(frozen=True)
class Shape:
    """Of a perceptron: the sizes of its layers, outputs included."""

    inputs: int
    hidden: int
    outputs: int

    @property
    def request_bytes(self) -> int:
        return NUMBER.size + 4 * self.inputs

    @property
    def answer_bytes(self) -> int:
        return NUMBER.size + 4 * self.outputs


class Model:
    """Two hidden layers, of random weights."""

    def __init__(self, shape: Shape, seed: int) -> None:
        rng = np.random.default_rng(seed)
        sizes = (shape.inputs, shape.hidden, shape.hidden, shape.outputs)
        self.weights = [
            rng.standard_normal((a, b), dtype=np.float32) * np.float32((2 / a) ** 0.5)
            for a, b in pairwise(sizes)
        ]

    def __call__(self, inputs: Floats) -> Floats:
        """(n, inputs) -> (n, outputs)."""
        for weights in self.weights[:-1]:
            inputs = np.maximum(inputs @ weights, 0)
        return np.asarray(inputs @ self.weights[-1])

    def exactly(self, inputs: Floats) -> NDArray[np.float64]:
        """The same in float64."""
        found = inputs.astype(np.float64)
        for weights in self.weights[:-1]:
            found = np.maximum(found @ weights, 0)
        return np.asarray(found @ self.weights[-1])


def bank(shape: Shape) -> Floats:
    """All inputs that a request may have."""
    return np.random.default_rng(1).standard_normal((BANK, shape.inputs), dtype=np.float32)


def drawn(count: int, repeated: float, popular: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Which inputs so many requests have: a share of them from a few popular ones, by Zipf's law."""
    shares = 1 / np.arange(1, popular + 1)
    often = rng.choice(popular, size=count, p=shares / shares.sum())
    others = popular + (int(rng.integers(BANK)) + np.arange(count)) % (BANK - popular)
    return np.where(rng.random(count) < repeated, often, others)
