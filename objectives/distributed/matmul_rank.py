"""What a rank of a distributed product does: it multiplies panels, and serves those that others ask for."""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass

import numpy as np
import torch
from matmul_count import Count, OnTheWay
from matmul_plan import Need, Plan, blocks, needs
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


def multiply(rank: Rank, n: int, plan: Plan, seed: int, wanted: bool) -> Multiplied:
    """One product of fresh random matrices. ``wanted``: whether the answer is to be returned."""
    torch.set_num_threads(1)
    peers = peers_of(rank)
    gc.collect()
    trim_heap()
    forget_peak()
    before = peak_resident()
    own = blocks(plan, rank.rank, n)
    a, b = (_part(seed, number, n, own[name].rows, own[name].columns) for number, name in enumerate("ab"))
    c = torch.zeros(own["c"].rows[1] - own["c"].rows[0], own["c"].columns[1] - own["c"].columns[0])
    count = Count(sum(block.elements for block in own.values()))
    copies = OnTheWay(count, plan.prefetch)
    shifts = own["a"].columns[0], own["b"].rows[0]
    todo = needs(plan, rank.rank, n)
    tables = [needs(plan, other, n) for other in range(rank.world)]

    def serve(message: Message) -> None:
        """``item``: 0 for A, 1 for B; ``micro_batch``: which panel of the one who asks."""
        low, high = tables[message.sender][message.micro_batch].inner
        shift = shifts[message.item]
        panel = a[:, low - shift : high - shift] if message.item == 0 else b[low - shift : high - shift]
        copy, to, number = panel.contiguous(), message.sender, message.micro_batch
        if message.item == 0:  # rows of B lie together: nothing is copied
            copies.send(to, number, copy.numel())
        count.send(copy.numel())
        peers.send(to, VALUE, message.item, number, copy, lambda: copies.arrived(to, number))

    peers.serve = serve
    rank.beat("wait")
    peers.barrier()
    begun = time.monotonic()
    _accumulate(rank, peers, plan, todo, (a, b, c), shifts, count)
    ended = time.monotonic()
    rank.beat("wait")
    peers.barrier()  # the others may still ask
    peers.serve = None
    peak = max(peak_resident() - before, 0)
    return Multiplied(begun, ended, count.most, peak, 4 * count.sent, c.numpy() if wanted else None)


def _accumulate(
    rank: Rank,
    peers: Peers,
    plan: Plan,
    todo: list[Need],
    held: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    shifts: tuple[int, int],
    count: Count,
) -> None:
    """Add up all panels' products, asking for those to come."""
    a, b, c = held
    arrived: dict[tuple[int, int], torch.Tensor] = {}
    asked = 0
    for number, need in enumerate(todo):
        while asked < min(number + 1 + plan.prefetch, len(todo)):
            _ask(rank, peers, asked, todo[asked], (a, b, c), count)
            asked += 1
        low, high = need.inner
        panels = []
        for which, owner in enumerate((need.owner_a, need.owner_b)):
            if owner == rank.rank:
                shift = shifts[which]
                panels.append(
                    a[:, low - shift : high - shift] if which == 0 else b[low - shift : high - shift]
                )
                continue
            while (which, number) not in arrived:
                rank.beat("wait", number)
                message = peers.receive(block=True)
                assert message is not None
                arrived[message.item, message.micro_batch] = message.tensor
            panels.append(arrived.pop((which, number)))
        rank.beat("compute", number)
        c.addmm_(panels[0], panels[1])
        count.add(-_foreign(rank.rank, need, (a, b, c)))


def _ask(
    rank: Rank,
    peers: Peers,
    number: int,
    need: Need,
    held: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
    count: Count,
) -> None:
    count.add(_foreign(rank.rank, need, held))
    for which, owner in enumerate((need.owner_a, need.owner_b)):
        if owner != rank.rank:
            peers.send(owner, REQUEST, which, number)


def _foreign(rank: int, need: Need, held: tuple[torch.Tensor, torch.Tensor, torch.Tensor]) -> int:
    """How many elements of a panel come from others."""
    rows, columns = held[2].shape
    width = need.inner[1] - need.inner[0]
    return width * (rows * (need.owner_a != rank) + columns * (need.owner_b != rank))


def _part(seed: int, number: int, n: int, rows: tuple[int, int], columns: tuple[int, int]) -> torch.Tensor:
    """A part of matrix ``number``: row ``r`` of it comes from a generator of its own."""
    return torch.from_numpy(part(seed, number, n, rows, columns))


def part(seed: int, number: int, n: int, rows: tuple[int, int], columns: tuple[int, int]) -> np.ndarray:
    """Standard normal numbers in float32: the same wherever they are made."""
    found = np.empty((rows[1] - rows[0], columns[1] - columns[0]), dtype=np.float32)
    for row in range(*rows):
        whole = np.random.default_rng((seed, number, row)).standard_normal(n, dtype=np.float32)
        found[row - rows[0]] = whole[slice(*columns)]
    return found
