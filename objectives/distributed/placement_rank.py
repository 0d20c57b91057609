"""What the ranks of a placed model run: steps against the clock, gradients for the oracle, profiles."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from peers import Peers, peers_of
from placement_device import Part
from placement_models import Model, make_model
from placement_plan import Plan

from autotune.measure.groups.rank import Rank
from autotune.measure.libc import trim_heap
from autotune.measure.memory import forget_peak, peak_resident

WARM = 2
_SMALL, _LARGE = 1 << 8, 1 << 16
"""Floats of the messages that a link is measured by."""
_TRIPS = 5
"""So many of each, there and back."""


@dataclass(frozen=True)
class Stepped:
    """What one rank saw of some training steps. Times in seconds."""

    begun: float
    """On the clock of the machine, which all ranks share."""
    ended: tuple[float, ...]
    """By step."""
    busy: float
    """Of the processor, in tasks."""
    peak: int
    """Bytes that this process held at most, above what it held before."""


@dataclass(frozen=True)
class Learned:
    """What one rank did in two steps, for the oracle."""

    gradients: Mapping[int, Mapping[str, np.ndarray]]
    """Of the second one, by item and parameter."""
    losses: tuple[float, float]
    """Of the batch of each step, before it, where the last item is here."""


def steps(rank: Rank, workload: Mapping[str, Any], plan: Plan, seed: int, count: int) -> Stepped:
    """``count`` training steps, each on a batch of its own."""
    model, peers = _prepared(rank, workload)
    gc.collect()
    trim_heap()
    forget_peak()
    before = peak_resident()
    rank.beat("build")
    part = Part(model, plan, rank.rank, peers, seed)
    rng = np.random.default_rng(seed)
    batches = [_parts_of(model.draw(rng), plan.micro_batches) for _ in range(count)]
    rank.beat("wait")
    peers.barrier()
    begun = time.monotonic()
    ended = []
    for number, parts in enumerate(batches):
        rank.beat("compute", number)
        part.step(parts, number * plan.micro_batches, rank.beat)
        ended.append(time.monotonic())
    return Stepped(begun, tuple(ended), part.busy, max(peak_resident() - before, 0))


def learn(rank: Rank, workload: Mapping[str, Any], plan: Plan, seed: int) -> Learned:
    """A training step, and the gradients of the next one: what is left of the first would be in them."""
    model, peers = _prepared(rank, workload)
    part = Part(model, plan, rank.rank, peers, seed)
    rng = np.random.default_rng(seed)
    first, second = (_parts_of(model.draw(rng), plan.micro_batches) for _ in range(2))
    rank.beat("compute", 1)
    part.step(first, 0, rank.beat)
    loss, part.loss = part.loss, 0.0
    part.gradients(second, plan.micro_batches, rank.beat)
    gradients = {
        item: {name: p.grad.numpy().copy() for name, p in module.named_parameters() if p.grad is not None}
        for item, module in part.modules.items()
    }
    return Learned(gradients, (loss, part.loss))


@dataclass(frozen=True)
class Profiled:
    """What one rank measured."""

    seconds: tuple[float, ...]
    """Of each item, forward and backward, for one micro-batch."""
    bytes: tuple[int, ...]
    latency: tuple[float, ...]
    """To each rank, in seconds; 0 to itself."""
    rate: tuple[float, ...]
    """To each rank, in bytes a second; infinite to itself."""


def profile(rank: Rank, workload: Mapping[str, Any], micro_batches: int, repeats: int, seed: int) -> Profiled:
    """Each item alone on this device, at the same time as on all others, then each link alone."""
    model, peers = _prepared(rank, workload)
    peers.barrier()
    seconds, sizes = _profile_items(rank, model, micro_batches, repeats, seed)
    latency, rate = _profile_links(rank, peers)
    return Profiled(tuple(seconds), tuple(sizes), tuple(latency), tuple(rate))


def _profile_items(
    rank: Rank, model: Model, micro_batches: int, repeats: int, seed: int
) -> tuple[list[float], list[int]]:
    modules = [model.module(item, seed) for item in range(len(model.items))]
    data, targets = _parts_of(model.draw(np.random.default_rng(seed)), micro_batches)[0]
    seconds, outputs = [], []
    for number, (item, module) in enumerate(zip(model.items, modules, strict=True)):
        leaves = [outputs[i].detach().requires_grad_() for i in item.reads]
        given = [*(leaves or [data]), *([targets] if number == model.last else [])]
        for _ in range(WARM):
            output = module(*given)
            torch.autograd.backward(output, torch.ones_like(output))
        begun = time.monotonic()
        for _ in range(repeats):
            rank.beat("profile", number)
            output = module(*given)
            torch.autograd.backward(output, torch.ones_like(output))
        seconds.append((time.monotonic() - begun) / repeats)
        outputs.append(output.detach())
    return seconds, [output.numel() * output.element_size() for output in outputs]


def _profile_links(rank: Rank, peers: Peers) -> tuple[list[float], list[float]]:
    latency, rate = [0.0] * rank.world, [float("inf")] * rank.world
    for one in range(rank.world):
        for other in range(rank.world):
            rank.beat("wait")
            peers.barrier()
            if one == other or rank.rank not in (one, other):
                continue
            rank.beat("communicate")
            small, large = (_trip(rank, peers, one, other, size) for size in (_SMALL, _LARGE))
            if rank.rank == one:
                # There with the data, back with an empty answer.
                slope = max(large - small, 1e-9) / (4 * (_LARGE - _SMALL))
                rate[other] = 1 / slope
                latency[other] = max(small / 2 - 4 * _SMALL * slope / 2, 0.0)
    return latency, rate


def _trip(rank: Rank, peers: Peers, one: int, other: int, size: int) -> float:
    times = []
    for _ in range(_TRIPS):
        if rank.rank == one:
            block = torch.zeros(size)
            begun = time.monotonic()
            peers.send(other, 0, tensor=block)
            peers.receive(block=True)
            times.append(time.monotonic() - begun)
        else:
            peers.receive(block=True)
            peers.send(one, 0)
    return sorted(times)[len(times) // 2] if times else 0.0


def _prepared(rank: Rank, workload: Mapping[str, Any]) -> tuple[Model, Peers]:
    """The model, and the connections to the others: made in the first call."""
    if "model" not in rank.state:
        torch.set_num_threads(1)
        torch.manual_seed(0)
        rank.state["model"] = make_model(workload)
    return rank.state["model"], peers_of(rank)


def _parts_of(batch: Sequence[torch.Tensor], parts: int) -> list[tuple[torch.Tensor, ...]]:
    """A batch in equal parts along its rows."""
    return list(zip(*(tensor.chunk(parts) for tensor in batch), strict=True))
