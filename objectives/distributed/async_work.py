"""What ranks do for ``async-sgd``: rank 0 serves and validates, the others work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from async_plan import Plan

from autotune.measure.groups.rank import Rank

if TYPE_CHECKING:
    from async_ranks import Server, Worker


@dataclass(frozen=True)
class Job:
    """The training: a perceptron of ``depth`` hidden layers of ``width``, until the validation loss is at
    most ``target``, validated every ``validate`` steps of all workers together, for at most ``seconds``."""

    width: int
    depth: int
    target: float
    validate: int
    seconds: float
    most_steps: int = 1_000_000
    """Of all workers together."""


@dataclass(frozen=True)
class Trained:
    """What the server saw."""

    seconds: float
    """From the common beginning until the model was as it is."""
    loss: float
    first_loss: float
    steps: int
    """Gradients, of all workers together, that are in it."""
    staleness: tuple[int, ...]
    """Of each gradient: how many had gone into the model between its making and its use."""
    most_lead: int
    """The most steps that a worker was ahead of the slowest when it was sent on."""
    parameters: tuple[float, ...]
    """At the end, where they were asked for."""


def make_ready(rank: Rank, plan: Plan, job: Job, seed: int) -> None:
    """Everybody has data, a model and connections."""
    from async_ranks import Server, Worker

    made = Server(rank, plan, job, seed) if rank.rank == 0 else Worker(rank, plan, job, seed)
    rank.state["async"] = made


def train(rank: Rank, begin: float, keep: bool = False) -> Trained | None:
    """From the moment ``begin`` (monotonic) on; what the server saw, ``None`` from workers.

    ``keep``: with the parameters at the end.
    """
    made: Server | Worker = rank.state.pop("async")
    return made.run(begin, keep)


def reference(rank: Rank, plan: Plan, job: Job, seed: int, steps: int) -> tuple[tuple[float, ...], float]:
    """What one process with the samples of all workers comes to, and the largest change that it made."""
    from async_ranks import train_alone

    return train_alone(rank, plan, job, seed, steps)
