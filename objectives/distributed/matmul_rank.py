"""What a rank of a distributed product does: it multiplies panels, and serves those that others ask for."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass

import numpy as np
import torch
from matmul_count import Count, OnTheWay
from matmul_plan import Block, Need, Plan, block_of, needs
from peers import REQUEST, VALUE, Message, Peers, peers_of

from autotune.measure.groups.rank import Rank
from autotune.measure.libc import trim_heap
from autotune.measure.memory import forget_peak, peak_resident


@dataclass(frozen=True)
class Multiplied:
    """What one rank saw."""

    begun: float
    ended: float
    """On the clock of the machine, in seconds."""
    elements: int
    """The most that it held at once, of matrices and of what is on its way."""
    peak: int
    """Bytes that its process took at most, above what it had before."""
    sent: int
    """Bytes of panels."""
    product: np.ndarray | None
    """Its block, where it was asked for."""


@dataclass(frozen=True)
class Held:
    """A rank's block of A, of B and of the product."""

    block: Block
    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor

    def panel(self, which: int, need: Need) -> torch.Tensor:
        """What lies here of A (0) or of B (1) for a panel."""
        low, high = need.inner
        if which == 0:
            first = self.block.columns[0]
            return self.a[:, low - first : high - first]
        first = self.block.rows[0]
        return self.b[low - first : high - first]

    def foreign(self, rank: int, need: Need) -> int:
        """How many elements of a panel come from others."""
        (low, high), (rows, columns) = need.inner, self.c.shape
        owner_a, owner_b = need.owners
        return (high - low) * (rows * (owner_a != rank) + columns * (owner_b != rank))


def multiply(rank: Rank, n: int, plan: Plan, seed: int, wanted: bool) -> Multiplied:
    """One product of fresh random matrices. ``wanted``: whether the answer is to be returned."""
    torch.set_num_threads(1)
    peers = peers_of(rank)
    gc.collect()
    trim_heap()
    forget_peak()
    before = peak_resident()
    block = block_of(plan, rank.rank, n)
    a, b = (torch.from_numpy(part(seed, number, n, block.rows, block.columns)) for number in range(2))
    held = Held(block, a, b, torch.zeros_like(a))
    count = Count(3 * block.elements)
    copies = OnTheWay(count, plan.prefetch)
    tables = [needs(plan, other, n) for other in range(rank.world)]

    def serve(message: Message) -> None:
        """``item``: 0 for A, 1 for B; ``micro_batch``: which panel of the one who asks."""
        to, number = message.sender, message.micro_batch
        copy = held.panel(message.item, tables[to][number]).contiguous()
        if message.item == 0:  # rows of B lie together: nothing is copied
            copies.send(to, number, copy.numel())
        count.send(copy.numel())
        peers.send(to, VALUE, message.item, number, copy, lambda: copies.arrived(to, number))

    peers.serve = serve
    rank.beat("wait")
    peers.barrier()
    begun = time.monotonic()
    _accumulate(rank, peers, plan.prefetch, tables[rank.rank], held, count)
    ended = time.monotonic()
    rank.beat("wait")
    peers.barrier()  # the others may still ask
    peers.serve = None
    peak = max(peak_resident() - before, 0)
    return Multiplied(begun, ended, count.most, peak, 4 * count.sent, held.c.numpy() if wanted else None)


def _accumulate(rank: Rank, peers: Peers, prefetch: int, todo: list[Need], held: Held, count: Count) -> None:
    """Add up all panels' products, asking for those to come."""
    arrived: dict[tuple[int, int], torch.Tensor] = {}
    asked = 0
    for number, need in enumerate(todo):
        for ahead in range(asked, min(number + 1 + prefetch, len(todo))):
            count.add(held.foreign(rank.rank, todo[ahead]))
            for which, owner in enumerate(todo[ahead].owners):
                if owner != rank.rank:
                    peers.send(owner, REQUEST, which, ahead)
            asked = ahead + 1
        panels = []
        for which, owner in enumerate(need.owners):
            if owner == rank.rank:
                panels.append(held.panel(which, need))
                continue
            while (which, number) not in arrived:
                rank.beat("wait", number)
                message = peers.receive(block=True)
                assert message is not None
                arrived[message.item, message.micro_batch] = message.tensor
            panels.append(arrived.pop((which, number)))
        rank.beat("compute", number)
        held.c.addmm_(*panels)
        count.add(-held.foreign(rank.rank, need))


def part(seed: int, number: int, n: int, rows: tuple[int, int], columns: tuple[int, int]) -> np.ndarray:
    """Standard normal numbers in float32: the same wherever they are made."""
    found = np.empty((rows[1] - rows[0], columns[1] - columns[0]), dtype=np.float32)
    for row in range(*rows):
        whole = np.random.default_rng((seed, number, row)).standard_normal(n, dtype=np.float32)
        found[row - rows[0]] = whole[slice(*columns)]
    return found
