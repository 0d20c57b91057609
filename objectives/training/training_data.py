"""Real data that is on every machine: scikit-learn's digits, and a text that ships with Python. In three
parts.

The *training* part is trained on. The *validation* part is what a search judges by, and never trains on. The
*test* part is looked at only when the winner is defended: what a search chose by is no evidence any more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.measure.objective import Infeasible
from autotune.measure.prepared_data import PreparedData

Arrays = dict[str, NDArray[np.generic]]

PARTS = ("train", "valid", "test")
CHARACTERS = 128
"""The vocabulary of the language model: ASCII. Whatever else a text holds counts as character 0."""


@dataclass(frozen=True)
class Part:
    """Samples: ``inputs`` of shape (n, ...) and ``targets`` of shape (n,), or (n, context) for a text."""

    inputs: NDArray[np.generic]
    targets: NDArray[np.generic]

    def __len__(self) -> int:
        return len(self.inputs)


@dataclass(frozen=True)
class Data:
    """The three parts, and the hash by which two machines know that they have the same."""

    train: Part
    valid: Part
    test: Part
    sha256: str


def digits(cache: PreparedData) -> Data:
    """1,797 images of 8 x 8 pixels in 0 to 1, split 3:1:1, each digit alike, in an order that is always the
    same."""

    def make() -> Arrays:
        from sklearn.datasets import load_digits  # takes seconds, which who finds it prepared is spared

        images, labels = load_digits(return_X_y=True)
        part = _stratified(labels, (3, 1, 1))
        made: Arrays = {}
        for number, name in enumerate(PARTS):
            made[f"{name}_inputs"] = (images[part == number] / 16.0).astype(np.float32)
            made[f"{name}_targets"] = labels[part == number].astype(np.int64)
        return made

    return _data(cache, make, what="digits", split="3:1:1 stratified, 0")


def text(cache: PreparedData, context: int) -> Data:
    """The help texts of Python (``pydoc_data.topics``) in windows of ``context`` characters.

    The first eight tenths are trained on, a tenth each validates and tests. Each target is the input a
    character later.
    """
    source = python_help()

    def make() -> Arrays:
        codes = np.frombuffer(source.encode("ascii", errors="replace"), np.uint8).astype(np.int64)
        ends = [0, len(codes) * 8 // 10, len(codes) * 9 // 10, len(codes)]
        made: Arrays = {}
        for name, first, last in zip(PARTS, ends, ends[1:], strict=False):
            part = codes[first:last]
            count = (len(part) - 1) // context
            if not count:
                raise Infeasible(f"a context of {context:,} characters is longer than a tenth of the text")
            made[f"{name}_inputs"] = part[: count * context].reshape(count, context)
            made[f"{name}_targets"] = part[1 : count * context + 1].reshape(count, context)
        return made

    return _data(cache, make, what="text", text=hash_of(source), context=str(context), split="8:1:1")


def python_help() -> str:
    """The help texts that ship with this Python, one after another by name."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics))


def hash_of(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def _stratified(labels: NDArray[np.generic], shares: tuple[int, ...]) -> NDArray[np.int64]:
    """The part that each sample belongs to; every label is split in the same shares."""
    rng = np.random.default_rng(0)
    part = np.empty(len(labels), dtype=np.int64)
    pattern = np.repeat(np.arange(len(shares)), shares)
    for label in np.unique(labels):
        places = rng.permutation(np.flatnonzero(labels == label))
        part[places] = np.resize(pattern, len(places))
    return part


def _data(cache: PreparedData, make: Callable[[], Arrays], **parts: str) -> Data:
    arrays = cache.arrays(make, **parts)
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].shape}\0".encode() + arrays[name].tobytes())
    made = {name: Part(arrays[f"{name}_inputs"], arrays[f"{name}_targets"]) for name in PARTS}
    return Data(made["train"], made["valid"], made["test"], digest.hexdigest())
