"""What ranks do for ``comm-ddp``. Loads PyTorch only where it runs."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddp_plan import Plan

from autotune.measure.groups.rank import Rank
from autotune.measure.objective import Diverged

if TYPE_CHECKING:
    import torch
    from ddp_reducer import Reducer
    from torch import nn

RATE = 0.05


@dataclass(frozen=True)
class Work:
    """The training: a perceptron of ``depth`` hidden layers of ``width``, ``samples`` a step on each rank."""

    width: int
    depth: int
    samples: int


@dataclass(frozen=True)
class Alone:
    """What a step takes without the other half, in seconds."""

    compute: float
    communication: float
    """Of one reduction of all gradients by the backend's defaults."""
    gradient_bytes: int


@dataclass(frozen=True)
class Stepped:
    """Some steps as one rank saw them."""

    seconds: tuple[float, ...]
    """Of each step."""
    exposed: tuple[float, ...]
    """Of each step: after the end of its backward pass, until its gradients are there. Not known of PyTorch's
    own class, which waits within the backward pass."""
    loss: float
    checksum: int
    """Of the parameters."""


@dataclass(frozen=True)
class Verified:
    """What one rank found when it trained along with the others and alone."""

    checksum: int
    error: float
    """The largest difference between parameters, over the largest change that training alone has made."""
    losses: tuple[float, ...]
    """On its own samples, by step."""
    expected: tuple[float, ...]
    """On the samples of all, in one process."""


class Training:
    """A model, its data and its reducer, in one rank."""

    def __init__(self, rank: Rank, work: Work, plan: Plan, seed: int) -> None:
        import torch
        from ddp_reducer import make_reducer
        from digits_model import digits_of, make_model
        from transport import Transport, backend

        self.rank, self.work, self.seed, self.step_number = rank, work, seed, 0
        self.data = digits_of(rank)
        rank.beat("make model")
        self.model: nn.Module = make_model(work.width, work.depth, seed)
        self.reducer: Reducer | None = None
        if plan.reducer == "ddp":
            self.model = _ddp(rank, self.model)
        else:
            gloo = backend(rank, Transport(plan.threads, plan.connections, plan.congestion))
            self.reducer = make_reducer(rank, gloo, self.model, plan)
        self.loss = torch.nn.CrossEntropyLoss()

    def step(self, communicate: bool = True) -> tuple[float, float, float]:
        """One step of SGD; returns its seconds, the exposed ones, and the loss on this rank's samples."""
        from digits_model import batch_of

        world, samples = self.rank.world, self.work.samples
        images, labels = batch_of(self.data, self.seed, self.step_number, world * samples)
        own = slice(self.rank.rank * samples, (self.rank.rank + 1) * samples)
        images, labels = images[own], labels[own]
        self.step_number += 1
        self.rank.beat("compute", self.step_number)
        begun = time.perf_counter()
        if self.reducer is not None:
            self.reducer.enabled = communicate
            if communicate:
                self.reducer.begin()
        loss = self.loss(self.model(images), labels)
        self.model.zero_grad()
        loss.backward()
        computed = time.perf_counter()
        self.rank.beat("communicate")
        if self.reducer is not None and communicate:
            self.reducer.finish()
        done = time.perf_counter()
        self.rank.beat("update")
        _descend(self.model)
        value = float(loss.detach())
        if value != value:
            raise Diverged(f"the training loss is {value} at step {self.step_number}")
        return time.perf_counter() - begun, done - computed, value

    def close(self) -> None:
        if self.reducer is not None:
            self.reducer.close()


def train_steps(rank: Rank, work: Work, plan: Plan, seed: int, steps: int) -> Stepped:
    """Some steps of a training that goes on from call to call while work, plan and seed stay the same."""
    key = (work, plan, seed)
    made = rank.state.get("training")
    if made is None or made[0] != key:
        forget(rank)
        made = rank.state["training"] = (key, Training(rank, work, plan, seed))
    training: Training = made[1]
    taken = [training.step() for _ in range(steps)]
    seconds, exposed, losses = zip(*taken, strict=True)
    known = () if plan.reducer == "ddp" else exposed
    return Stepped(seconds, known, losses[-1], _checksum(training.model))


def forget(rank: Rank) -> None:
    """End the training of earlier calls."""
    made = rank.state.pop("training", None)
    if made is not None:
        made[1].close()


def measure_alone(rank: Rank, work: Work, repeats: int) -> Alone:
    """Computation without communication, and the other way round; medians."""
    import torch
    from transport import backend

    forget(rank)
    training = Training(rank, work, Plan(), 0)
    compute = sorted(training.step(communicate=False)[0] for _ in range(repeats))
    training.close()
    gloo = backend(rank)
    flat = torch.zeros(sum(p.numel() for p in training.model.parameters()))
    times = []
    for _ in range(repeats):
        gloo.barrier().wait()
        rank.beat("communicate")
        begun = time.perf_counter()
        gloo.allreduce([flat]).wait()
        times.append(time.perf_counter() - begun)
    return Alone(compute[repeats // 2], sorted(times)[repeats // 2], 4 * flat.numel())


def verify(rank: Rank, work: Work, plan: Plan, seed: int, steps: int) -> Verified:
    """Some steps on all ranks, and the same steps in one process with the samples of all."""
    from digits_model import batch_of, make_model

    forget(rank)
    training = Training(rank, work, plan, seed)
    losses = tuple(training.step()[2] for _ in range(steps))
    training.close()
    rank.beat("verify")
    alone = make_model(work.width, work.depth, seed)
    before = [p.detach().clone() for p in alone.parameters()]
    expected = []
    for number in range(steps):
        images, labels = batch_of(training.data, seed, number, rank.world * work.samples)
        alone.zero_grad()
        loss = training.loss(alone(images), labels)
        loss.backward()
        _descend(alone)
        expected.append(float(loss.detach()))
    apart = _apart(training.model.parameters(), alone.parameters())
    changed = _apart(alone.parameters(), before)
    return Verified(_checksum(training.model), apart / changed, losses, tuple(expected))


def _apart(some: Iterable[torch.Tensor], others: Iterable[torch.Tensor]) -> float:
    """The largest difference of two elements; NaN where one is."""
    import torch

    pairs = zip(some, others, strict=True)
    return float(torch.stack([(one - other).detach().abs().max() for one, other in pairs]).max())


def _descend(model: nn.Module) -> None:
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter -= RATE * parameter.grad


def _checksum(model: nn.Module) -> int:
    found = 0
    for parameter in model.parameters():
        found = zlib.crc32(parameter.detach().numpy().tobytes(), found)
    return found


def _ddp(rank: Rank, model: nn.Module) -> Any:
    """PyTorch's own wrapper, with its defaults, over its default process group."""
    rank.beat("connect", within=60)  # with what PyTorch imports for it
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    if not dist.is_initialized():
        os.environ["GLOO_SOCKET_IFNAME"] = rank.interface
        store = dist.FileStore(str(rank.meeting / "ddp"), rank.world)
        dist.init_process_group("gloo", store=store, rank=rank.rank, world_size=rank.world)
    return DistributedDataParallel(model)
