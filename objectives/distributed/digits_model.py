"""A perceptron on scikit-learn's digits, for the objectives that train on several ranks. In ranks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from autotune.measure.groups.rank import Rank

FEATURES, CLASSES = 64, 10

_VALIDATION = 360
"""Of 1,797 images, the last of a fixed permutation."""


@dataclass(frozen=True)
class Digits:
    """Images scaled to mean 0 and deviation 1, and their labels."""

    images: torch.Tensor
    labels: torch.Tensor
    validation_images: torch.Tensor
    validation_labels: torch.Tensor


def digits_of(rank: Rank) -> Digits:
    """Those of this rank, loaded in its first call."""
    if "digits" not in rank.state:
        rank.beat("load data", within=60)
        rank.state["digits"] = _load()
    found: Digits = rank.state["digits"]
    return found


def _load() -> Digits:
    """The data set that ships with scikit-learn (Alpaydin and Kaynak, 1998)."""
    from sklearn.datasets import load_digits

    found = load_digits()
    images = torch.tensor(found.data, dtype=torch.float32)
    images = (images - images.mean()) / images.std()
    labels = torch.tensor(found.target, dtype=torch.long)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    training, validation = order[:-_VALIDATION], order[-_VALIDATION:]
    return Digits(images[training], labels[training], images[validation], labels[validation])


def make_model(width: int, depth: int, seed: int) -> nn.Sequential:
    """``depth`` hidden layers of ``width``, the same for everybody who says the same seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        size = FEATURES
        for _ in range(depth):
            layers += [nn.Linear(size, width), nn.ReLU()]
            size = width
        return nn.Sequential(*layers, nn.Linear(size, CLASSES))


def batch_of(data: Digits, seed: int, step: int, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The samples of a step, the same for everybody; ranks take equal parts of them."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + step)
    chosen = torch.randint(len(data.labels), (samples,), generator=generator)
    return data.images[chosen], data.labels[chosen]
