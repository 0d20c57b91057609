"""What ranks do for ``comm-allreduce``. Loads PyTorch only where it runs."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from allreduce_plan import Plan

from autotune.measure.groups.rank import Rank
from autotune.measure.objective import WrongAnswer

if TYPE_CHECKING:
    import torch
    from allreduce import Pipeline

GEMM = 256
"""Rows and columns of one unit of computation: 34 million operations."""

_SPIN_SECONDS = 0.0005


@dataclass(frozen=True)
class Took:
    """One reduction, as one rank saw it."""

    end: float
    """When it was done (monotonic)."""
    given: float
    """The sum of what it gave, and of what it got."""
    got: float
    checksum: int


def make_ready(rank: Rank, plan: Plan, elements: int, seed: int, gemms: int) -> float:
    """Fresh gradients, a poisoned result, a connection; returns the seconds that the computation takes."""
    import torch
    from allreduce import Pipeline
    from transport import Transport, backend

    gloo = backend(rank, Transport(plan.threads, plan.connections, plan.congestion))
    rank.beat("make inputs")
    state = rank.state
    made = state.get("pipeline")
    if made is None or made[0] != (plan, elements, id(gloo)):
        state["pipeline"] = (plan, elements, id(gloo)), Pipeline(rank, gloo, plan)
    state["given"] = _gradient(rank.rank, seed, elements)
    state["out"] = torch.full((elements,), float("nan"))
    # Several rooms: a step's own computation does not stay in the caches either.
    state["gemm"] = [torch.rand(GEMM, GEMM) for _ in range(3)]
    begun = time.perf_counter()
    _compute(rank, gemms)
    return time.perf_counter() - begun if gemms else 0.0


def reduce_once(rank: Rank, begin: float, gemms: int) -> Took:
    """The reduction of what was made ready, from the moment ``begin`` (monotonic) on."""
    pipeline: Pipeline = rank.state["pipeline"][1]
    given, out = rank.state["given"], rank.state["out"]
    rank.beat("wait")
    time.sleep(max(0.0, begin - time.monotonic() - _SPIN_SECONDS))
    while time.monotonic() < begin:
        pass
    rank.beat("communicate")
    pipeline.reduce(given, out, _computing(rank, gemms))
    end = time.monotonic()
    rank.beat("verify")
    return Took(end, float(given.double().sum()), float(out.double().sum()), zlib.crc32(out.numpy().data))


def verify(rank: Rank, plan: Plan, elements: int, seed: int, rounds: int) -> float:
    """The largest error of the mean of some reductions, over the largest value that a rank gave.

    The reference is the sum in float64 of what all ranks give, made from their seeds.
    """
    import torch

    make_ready(rank, plan, elements, seed, 0)
    given = rank.state["given"]
    reference = sum(_gradient(peer, seed, elements).double() for peer in range(rank.world))
    scale = max(float(_gradient(peer, seed, elements).abs().max()) for peer in range(rank.world))
    pipeline: Pipeline = rank.state["pipeline"][1]
    mean = torch.zeros(elements, dtype=torch.float64)
    rank.beat("communicate")
    before = given.clone()
    for _ in range(rounds):
        out = torch.full((elements,), float("nan"))
        pipeline.reduce(given, out)
        mean += out.double() / rounds
    rank.state.pop("pipeline")  # with what compression still owes
    if not torch.equal(before, given):
        raise WrongAnswer("the reduction changes what it is given")
    if bool(torch.isnan(mean).any()):
        first = int(torch.isnan(mean).nonzero()[0])
        raise WrongAnswer(f"element {first} of {elements} was never written")
    return float((mean - reference).abs().max()) / scale


def _gradient(rank: int, seed: int, elements: int) -> torch.Tensor:
    import torch

    generator = torch.Generator().manual_seed(seed * 64 + rank)
    return torch.randn(elements, generator=generator)


def _computing(rank: Rank, gemms: int) -> Callable[[int, int], None] | None:
    """The step's computation, spread evenly before its pieces."""
    if not gemms:
        return None

    def before(number: int, count: int) -> None:
        _compute(rank, gemms * (number + 1) // count - gemms * number // count)

    return before


def _compute(rank: Rank, gemms: int) -> None:
    import torch

    a, b, out = rank.state["gemm"]
    for _ in range(gemms):
        torch.mm(a, b, out=out)
        rank.beat()
