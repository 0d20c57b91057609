"""The models whose answers are served: a small residual network for pictures, and a transformer's encoder."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

CLASSES = 10
SIDE = 32
"""Of a picture, in pixels of three colours."""
HEADS = 4
LENGTH = 32
"""Places of a sequence."""


class _Residual(nn.Module):
    """Two convolutions beside one of a single pixel; the first of each side steps by ``stride``."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.long = nn.Sequential(
            *_normed(before, after, 3, stride), nn.ReLU(), *_normed(after, after, 3, stride=1)
        )
        self.short = nn.Sequential(*_normed(before, after, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.long(x) + self.short(x))


def _normed(before: int, after: int, side: int, stride: int) -> tuple[nn.Module, nn.Module]:
    """A convolution and the normalisation that a compiler may fold into it."""
    convolution = nn.Conv2d(before, after, side, stride=stride, padding=side // 2, bias=False)
    return convolution, nn.BatchNorm2d(after)


def convolutional(width: int, layers: int) -> nn.Module:
    """Pictures of shape (n, 3, 32, 32) to logits (n, 10). Each layer but the first halves the picture's side
    and has twice the channels of the one before; the first has ``width``."""
    widths = [width, *(width * 2**layer for layer in range(layers))]
    steps = [1, *[2] * (layers - 1)]
    blocks = [_Residual(*pair, step) for *pair, step in zip(widths, widths[1:], steps, strict=False)]
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], CLASSES))
    return nn.Sequential(*_normed(3, width, 3, stride=1), nn.ReLU(), *blocks, *head)


class _Block(nn.Module):
    """Self-attention and a feed-forward layer, each beside a residual path."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        parts = self.query_key_value(self.before_attention(x)).unflatten(2, (3, HEADS, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        x = x + self.project(mixed.transpose(1, 2).flatten(2))
        return x + self.feed(self.before_feed(x))


class _Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(dim=1)


def transformer(width: int, layers: int) -> nn.Module:
    """Sequences of shape (n, 32, width) to logits (n, 10)."""
    return nn.Sequential(*(_Block(width) for _ in range(layers)), _Mean(), nn.Linear(width, CLASSES))


MODELS: dict[str, Callable[[int, int], nn.Module]] = {
    "convolutional": convolutional,
    "transformer": transformer,
}


def input_shape(model: str, width: int) -> tuple[int, ...]:
    """Of one sample."""
    return (3, SIDE, SIDE) if model == "convolutional" else (LENGTH, width)


def made(model: str, width: int, layers: int, seed: int) -> nn.Module:
    """A model with weights that follow from the seed, as it answers. What its normalisations have learned is
    drawn as well: one that does nothing would hide how it is folded."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = MODELS[model](width, layers)
        for part in network.modules():
            if isinstance(part, nn.BatchNorm2d):
                nn.init.uniform_(part.weight, 0.5, 1.5)
                nn.init.normal_(part.bias, std=0.1)
                nn.init.normal_(part.running_mean, std=0.1)
                nn.init.uniform_(part.running_var, 0.5, 1.5)
    return network.eval()
