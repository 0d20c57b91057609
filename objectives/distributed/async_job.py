"""The training of ``async-sgd``, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass


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
