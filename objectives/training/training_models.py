"""The models: a perceptron and a small convolutional network for digits, a small transformer for text."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from training_data import CHARACTERS


class Blocks(nn.Module):
    """Blocks one after another; with ``recompute`` what happens inside a block is not kept but computed
    again."""

    def __init__(self, *blocks: nn.Module) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.recompute = False

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            if self.recompute and torch.is_grad_enabled():
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return x


def perceptron(width: int, depth: int) -> Blocks:
    """``depth`` hidden layers of ``width``; images of shape (n, 64) to logits of shape (n, 10)."""
    sizes = [64, *[width] * depth]
    hidden = [nn.Sequential(nn.Linear(i, o), nn.ReLU()) for i, o in itertools.pairwise(sizes)]
    return Blocks(*hidden, nn.Linear(sizes[-1], 10))


def convolutional(channels: int) -> Blocks:
    """Two convolutions of ``channels`` and twice as many channels, the second with stride 2, and a linear
    layer."""
    return Blocks(
        nn.Sequential(nn.Unflatten(1, (1, 8, 8)), nn.Conv2d(1, channels, 3, padding=1), nn.ReLU()),
        nn.Sequential(nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1), nn.ReLU()),
        nn.Sequential(nn.Flatten(), nn.Linear(32 * channels, 10)),
    )


def language_model(layers: int, width: int, heads: int, context: int) -> Blocks:
    """A transformer of ``layers`` x ``width`` with ``heads`` that reads ``context`` characters.

    From characters of shape (n, context) to logits of shape (n, context, 128). Normalisation comes before
    attention and before the feed-forward layer (R. Xiong et al., ICML 2020).
    """
    blocks = [_Block(width, heads) for _ in range(layers)]
    return Blocks(
        _Embedding(width, context), *blocks, nn.Sequential(nn.LayerNorm(width), nn.Linear(width, CHARACTERS))
    )


class _Embedding(nn.Module):
    def __init__(self, width: int, context: int) -> None:
        super().__init__()
        self.character = nn.Embedding(CHARACTERS, width)
        self.position = nn.Parameter(torch.zeros(context, width))
        nn.init.normal_(self.character.weight, std=0.1)
        nn.init.normal_(self.position, std=0.1)

    def forward(self, x: Tensor) -> Tensor:
        embedded: Tensor = self.character(x) + self.position[: x.shape[1]]
        return embedded


class _Block(nn.Module):
    """Causal self-attention and a feed-forward layer, each beside a residual path."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        n, length, width = x.shape
        parts = self.query_key_value(self.before_attention(x)).view(
            n, length, 3, self.heads, width // self.heads
        )
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(mixed.transpose(1, 2).reshape(n, length, width))
        return x + self.feed(self.before_feed(x))
