"""The models that are placed on devices: items, each with a module, that read what other items have made.

* :func:`chain`: a transformer of ``blocks`` layers between an embedding and a head, one after another.
* :func:`graph`: a stem, ``branches`` convolutions of unequal sizes that all read the stem, and a head that
  reads them all.

The last item returns the loss: the sum over its part of the batch, divided by the size of the whole batch,
so that the gradients of the parts add up to that of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch import nn

from autotune.measure.loading.facts import require_known
from autotune.measure.objective import Infeasible, size_in

MIXED = 7919
"""What an item's number is multiplied by in its seed, so that no two items of near seeds begin alike."""


@dataclass(frozen=True)
class Item:
    """A part of a model that runs on one device."""

    name: str
    reads: tuple[int, ...]
    """The items whose output it is given, by number; empty: the batch itself."""
    make: Callable[[], nn.Module]


@dataclass(frozen=True)
class Model:
    """Items in an order in which they can be computed; the last is given the targets too."""

    items: tuple[Item, ...]
    draw: Callable[[np.random.Generator], tuple[torch.Tensor, torch.Tensor]]
    """A batch and its targets; always the same for the same generator."""
    batch: int

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(item.name for item in self.items)

    @property
    def last(self) -> int:
        return len(self.items) - 1

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """By item: the items that read it."""
        return tuple(
            tuple(n for n, other in enumerate(self.items) if item in other.reads)
            for item in range(len(self.items))
        )

    def module(self, item: int, seed: int) -> nn.Module:
        """The module of an item: with the same weights for the same seed, wherever it is made."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed * MIXED + item)
            return self.items[item].make()


SIZES: Mapping[str, Mapping[str, int]] = {
    "chain": {"blocks": 5, "width": 64, "heads": 4, "context": 32, "vocabulary": 512, "batch": 16},
    "graph": {"branches": 5, "channels": 16, "side": 16, "classes": 10, "batch": 16},
}
"""The sizes of each kind of model, and what they are where the workload does not say."""

MAY_BE_NONE = ("blocks",)
"""A chain of an embedding and a head alone is one."""


def sizes_of(workload: Mapping[str, Any]) -> Mapping[str, Any]:
    """The ``model`` of a workload and all its sizes. Raises ``InputError`` for sizes of the other kind."""
    kind = str(workload.get("model", "chain"))
    if kind not in SIZES:
        raise Infeasible(f"workload.model is {kind!r}, and should be one of {', '.join(SIZES)}")
    own = SIZES[kind]
    others = {name for sizes in SIZES.values() for name in sizes}
    require_known([name for name in workload if name in others], own, f"the workload of a {kind}")
    sizes = {name: size_in(workload, name, n, least=name not in MAY_BE_NONE) for name, n in own.items()}
    if sizes.get("width", 0) % sizes.get("heads", 1):
        raise Infeasible(
            f"a width of {sizes['width']} has no {sizes['heads']} equal parts, one for each of the heads"
        )
    return {"model": kind, **sizes}


def make_model(sizes: Mapping[str, Any]) -> Model:
    """The model that :func:`sizes_of` describes."""
    return {"chain": chain, "graph": graph}[sizes["model"]](sizes)


# -- a chain


def chain(sizes: Mapping[str, Any]) -> Model:
    """An embedding, ``blocks`` of a transformer, and a head that says which word comes next."""
    width, heads, context = (sizes[name] for name in ("width", "heads", "context"))
    words, batch, blocks = (sizes[name] for name in ("vocabulary", "batch", "blocks"))
    items = [
        Item("embed", (), lambda: Embedding(words, context, width)),
        *(Item(f"block{n}", (n,), lambda: Block(width, heads)) for n in range(blocks)),
        Item("head", (blocks,), lambda: WordHead(width, words, batch * context)),
    ]

    def draw(rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        text = torch.from_numpy(rng.integers(words, size=(batch, context + 1)))
        return text[:, :-1].contiguous(), text[:, 1:].contiguous()

    return Model(tuple(items), draw, batch)


class Embedding(nn.Module):
    def __init__(self, words: int, context: int, width: int) -> None:
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.place = nn.Parameter(0.02 * torch.randn(context, width))

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        return self.word(text) + self.place  # type: ignore[no-any-return]


class Block(nn.Module):
    """Causal self-attention and two dense layers, each after a normalisation and beside a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.enter, self.leave = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        shape = (rows, length, 3, self.heads, width // self.heads)
        query, key, value = self.enter(self.first(x)).view(shape).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.leave(mixed.transpose(1, 2).reshape(rows, length, width))
        return x + self.down(F.gelu(self.up(self.second(x))))  # type: ignore[no-any-return]


class WordHead(nn.Module):
    def __init__(self, width: int, words: int, total: int) -> None:
        super().__init__()
        self.norm, self.out, self.total = nn.LayerNorm(width), nn.Linear(width, words), total

    def forward(self, x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        scores = self.out(self.norm(x))
        return F.cross_entropy(scores.flatten(0, 1), targets.flatten(), reduction="sum") / self.total


# -- a graph


def graph(sizes: Mapping[str, Any]) -> Model:
    """A stem, ``branches`` that all read it, and a head over them; images are ``side`` by ``side``."""
    channels, side, branches = (sizes[name] for name in ("channels", "side", "branches"))
    classes, batch = sizes["classes"], sizes["batch"]
    items = [
        Item("stem", (), lambda: Convolution(3, channels, 3)),
        *(
            Item(f"branch{n}", (0,), lambda n=n: Convolution(channels, channels, 1 + 2 * (n % 4)))
            for n in range(branches)
        ),  # type: ignore[misc]
        Item("head", tuple(range(1, branches + 1)), lambda: ImageHead(branches * channels, classes, batch)),
    ]

    def draw(rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        images = torch.from_numpy(rng.standard_normal((batch, 3, side, side), dtype=np.float32))
        return images, torch.from_numpy(rng.integers(classes, size=batch))

    return Model(tuple(items), draw, batch)


class Convolution(nn.Module):
    def __init__(self, channels: int, out: int, size: int) -> None:
        super().__init__()
        self.filter = nn.Conv2d(channels, out, size, padding=size // 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.filter(x))


class ImageHead(nn.Module):
    def __init__(self, channels: int, classes: int, total: int) -> None:
        super().__init__()
        self.mix, self.out, self.total = nn.Conv2d(channels, channels, 1), nn.Linear(channels, classes), total

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        *branches, targets = inputs
        mixed = F.gelu(self.mix(torch.cat(branches, dim=1)))
        return F.cross_entropy(self.out(mixed.mean(dim=(2, 3))), targets, reduction="sum") / self.total
