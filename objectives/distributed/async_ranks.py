"""Server and workers of ``async-sgd``. In ranks.

A worker sends what it has (a gradient, or its own parameters) behind a header with the version of the model
that it worked on. The server answers with the model, its version, and whether that is the end. Without a
server, workers reduce among themselves, and the first of them sends the model to rank 0 to be validated.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import torch
from async_job import Job, Trained
from async_plan import Plan, lead_of
from digits_model import batch_of, digits_of, make_model
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from transport import Transport, backend, connect

from autotune.measure.groups.rank import Rank

UP, DOWN = 1, 2
"""Tags of messages to the server and from it."""

_HEADER = 2
_LATE_SECONDS = 10.0
"""After its time a training may take so long to end."""
_EXPLODED = 10.0
"""A validation loss so many times the first one does not come back."""


class Member:
    """What server and workers share: data, a model from a seed, connections."""

    def __init__(self, rank: Rank, plan: Plan, job: Job, seed: int) -> None:
        self.rank, self.plan, self.job, self.seed = rank, plan, job, seed
        self.data = digits_of(rank)
        self.workers = rank.world - 1
        self.model = make_model(job.width, job.depth, seed)
        self.loss = nn.CrossEntropyLoss()
        self.x = parameters_to_vector(self.model.parameters()).detach().clone()
        self.velocity = torch.zeros_like(self.x)
        self.gloo = backend(rank)
        self.others = _among_workers(rank) if plan.mode == "allreduce" else None

    def send(self, peer: int, first: float, second: float, payload: torch.Tensor) -> Any:
        tag = UP if peer == 0 else DOWN
        return self.gloo.send([torch.cat([torch.tensor([first, second]), payload])], peer, tag)

    def room(self) -> torch.Tensor:
        return torch.empty(_HEADER + self.x.numel())

    def descend(self, gradient: torch.Tensor) -> None:
        """A step of SGD with momentum."""
        self.velocity.mul_(self.plan.momentum).add_(gradient, alpha=-self.plan.rate)
        self.x += self.velocity


class Server(Member):
    """Rank 0."""

    def run(self, begin: float, keep: bool) -> Trained:
        self.begin, self.keep = begin, keep
        self.steps, self.version, self.lead = 0, 0, 0
        self.staleness: list[int] = []
        self.first = self.last = self.validation_loss()
        self.at = 0.0
        self.over = False
        _wait_until(self.rank, begin)
        match self.plan.mode:
            case "allreduce":
                self._watch()
            case "server":
                self._gather()
            case _:
                self._serve()
        return Trained(
            self.at,
            self.last,
            self.first,
            self.steps,
            tuple(self.staleness),
            self.lead,
            tuple(self.x.tolist()) if keep else (),
        )

    def _gather(self) -> None:
        """All gradients, their mean, and the new model to all."""
        rooms = [self.room() for _ in range(self.workers)]
        while True:
            self.rank.beat("wait", self.steps)
            works = [self.gloo.recv([room], peer + 1, UP) for peer, room in enumerate(rooms)]
            for work in works:
                work.wait()
            self.rank.beat("update")
            total = torch.stack([room[_HEADER:] for room in rooms]).mean(0)
            self.descend(total)
            self.version += 1
            self.staleness += [0] * self.workers
            self._count(self.workers)
            sent = [
                self.send(peer + 1, float(self.over), self.version, self.x) for peer in range(self.workers)
            ]
            _finish(sent)
            if self.over:
                return

    def _serve(self) -> None:
        """Each message as it comes; who is too far ahead waits for its answer."""
        clocks, told = [0] * self.workers, 0
        held: list[int] = []
        room = self.room()
        while told < self.workers:
            self.rank.beat("wait", self.steps)
            work = self.gloo.recv_anysource([room], UP)
            work.wait()
            worker = work._source_rank() - 1
            self.rank.beat("update")
            before = self.x.clone() if self.plan.mode == "easgd" else self.x
            if not self.over:
                self._take(room)
                clocks[worker] += self._steps_of_a_message
            held.append(worker)
            for waiting in list(held):
                lead = lead_of(waiting, clocks)
                if self.over or lead <= self.plan.most_lead:
                    held.remove(waiting)
                    if not self.over and lead:
                        self.lead = max(self.lead, lead)
                    told += self.over
                    answer = before if self.plan.mode == "easgd" else self.x
                    _finish([self.send(waiting + 1, float(self.over), self.version, answer)])

    def _take(self, message: torch.Tensor) -> None:
        """What a worker sent goes into the model."""
        payload = message[_HEADER:]
        self.staleness.append(self.version - int(message[1]))
        if self.plan.mode == "easgd":
            self.x += self.plan.elastic * (payload - self.x)
        else:
            self.descend(payload)
        self.version += 1
        self._count(self._steps_of_a_message)

    @property
    def _steps_of_a_message(self) -> int:
        """That a worker makes before it sends what it has."""
        return self.plan.period if self.plan.mode == "easgd" else 1

    def _watch(self) -> None:
        """The models that the first worker sends, each answered when it is validated."""
        room = self.room()
        while not self.over:
            # The workers give signs of their own; it may well be long before the first of them asks.
            self.rank.beat("wait", self.steps, within=self.job.seconds + _LATE_SECONDS)
            self.gloo.recv([room], 1, UP).wait()
            self.rank.beat("update")
            self.x = room[_HEADER:].clone()
            self._count(int(room[0]) * self.workers - self.steps)
            _finish([self.send(1, float(self.over), 0.0, self.x[:0])])

    def _count(self, steps: int) -> None:
        """So many more steps are in the model; validate it now and then, and at its end."""
        before, self.steps = self.steps, self.steps + steps
        now = time.monotonic() - self.begin
        job = self.job
        last = self.steps >= job.most_steps or now > job.seconds
        if last or self.steps // job.validate > before // job.validate:
            self.last, self.at = self.validation_loss(), now
            exploded = not math.isfinite(self.last) or self.last > _EXPLODED * self.first
            self.over = last or self.last <= job.target or exploded

    def validation_loss(self) -> float:
        vector_to_parameters(self.x, self.model.parameters())
        with torch.no_grad():
            return float(self.loss(self.model(self.data.validation_images), self.data.validation_labels))


class Worker(Member):
    """Ranks 1 and up."""

    def run(self, begin: float, keep: bool) -> None:
        self.number = 0
        _wait_until(self.rank, begin)
        match self.plan.mode:
            case "allreduce":
                self._reduce(begin + self.job.seconds)
            case "easgd":
                self._elastic()
            case _:
                self._ask()

    def gradient(self) -> torch.Tensor:
        """Of the next samples of this worker, at its own parameters."""
        self.rank.beat("compute", self.number + 1)
        images, labels = batch_of(self.data, self.seed, self.number, self.workers * self.plan.batch)
        own = slice((self.rank.rank - 1) * self.plan.batch, self.rank.rank * self.plan.batch)
        self.number += 1
        vector_to_parameters(self.x, self.model.parameters())
        self.model.zero_grad()
        self.loss(self.model(images[own]), labels[own]).backward()
        self.rank.beat("communicate")
        return _gradient_of(self.model)

    def _ask(self) -> None:
        room, version = self.room(), 0
        while True:
            sent = self.send(0, self.number, version, self.gradient())
            self.gloo.recv([room], 0, DOWN).wait()
            sent.wait()
            if room[0]:
                return
            version, self.x = int(room[1]), room[_HEADER:].clone()

    def _elastic(self) -> None:
        room, version = self.room(), 0
        while True:
            for _ in range(self.plan.period):
                self.descend(self.gradient())
            sent = self.send(0, self.number, version, self.x)
            self.gloo.recv([room], 0, DOWN).wait()
            sent.wait()
            if room[0]:
                return
            version = int(room[1])
            self.x -= self.plan.elastic * (self.x - room[_HEADER:])

    def _reduce(self, until: float) -> None:
        """The last element of what is reduced says whether it is over, so that all stop at the same step.

        The first worker asks whether it is: every so many steps, and when the time (monotonic) is up.
        """
        assert self.others is not None
        answer, asked, over = torch.empty(_HEADER), None, False
        every = max(1, self.job.validate // self.workers)
        while True:
            total = torch.cat([self.gradient(), torch.tensor([float(over)])])
            self.others.allreduce([total]).wait()
            if total[-1]:
                break
            self.descend(total[:-1] / self.workers)
            if self.rank.rank == 1 and (self.number % every == 0 or time.monotonic() > until):
                if asked is not None:
                    over = self._answered(asked, answer)
                asked = None if over else self.send(0, self.number, 0.0, self.x)
            if asked is not None and self.number * self.workers >= self.job.most_steps:
                over, asked = self._answered(asked, answer), None

    def _answered(self, asked: Any, answer: torch.Tensor) -> bool:
        asked.wait()
        self.gloo.recv([answer], 0, DOWN).wait()
        return bool(answer[0])


def _gradient_of(model: nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.grad is not None])


def _finish(works: Sequence[Any]) -> None:
    for work in works:
        work.wait()


def _wait_until(rank: Rank, begin: float) -> None:
    rank.beat("wait")
    time.sleep(max(0.0, begin - time.monotonic()))


def _among_workers(rank: Rank) -> Any:
    """A backend of the workers alone; ``None`` for the server."""
    if rank.rank == 0:
        return None
    if "workers" not in rank.state:
        rank.beat("connect")
        rank.state["workers"] = connect(rank, "store-workers", rank.rank - 1, rank.world - 1, Transport())
    return rank.state["workers"]


def train_alone(rank: Rank, plan: Plan, job: Job, seed: int, steps: int) -> tuple[tuple[float, ...], float]:
    """Steps of SGD on the mean gradient of what all workers would have had, by PyTorch's formula: what
    members do themselves would have their mistakes."""
    member = Member(rank, plan, job, seed)
    x, average = member.x.clone(), torch.zeros_like(member.x)
    for number in range(steps):
        images, labels = batch_of(member.data, seed, number, member.workers * plan.batch)
        vector_to_parameters(x, member.model.parameters())
        member.model.zero_grad()
        member.loss(member.model(images), labels).backward()
        average = plan.momentum * average + _gradient_of(member.model)
        x = x - plan.rate * average
    return tuple(x.tolist()), float((x - member.x).abs().max())
