"""What ranks do for ``async-sgd``: rank 0 serves and validates, the others work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from async_job import Job, Trained
from async_plan import Plan

from autotune.measure.groups.rank import Rank

if TYPE_CHECKING:
    from async_ranks import Server, Worker


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
