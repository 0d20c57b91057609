"""Asking for kernels to be tuned where they are called: in a ``with`` block, or by the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from autotune.arguments import count_problems, time_problems
from autotune.errors import InputError

VARIABLE = "AUTOTUNE_TUNE"
"""Set to 1: each case of a kernel is tuned when it is first met, unless there is a recipe for it."""


@dataclass(frozen=True)
class Budget:
    """What tuning one case may cost, and where its trials go; ``None``: as the kernel says.

    Raises :class:`InputError` for numbers that bound nothing.
    """

    trials: int | None = None
    time: float | None = None
    """Seconds."""
    store: str | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        problems = [
            *count_problems("trials", self.trials, 1),
            *time_problems(self.time),
            *count_problems("seed", self.seed, 0),
        ]
        if problems:
            raise InputError(problems)


def read_time(time: float | str | None) -> float | None:
    """Seconds, also of a text. A program that writes no text need not load what reads them."""
    if not isinstance(time, str):
        return time
    from autotune.space.units import given_time

    return given_time(time)


ASKED: ContextVar[Budget | None] = ContextVar("autotune_tuning", default=None)


@contextmanager
def tuning(
    *,
    trials: int | None = None,
    time: float | str | None = None,
    store: str | None = None,
    seed: int | None = None,
) -> Iterator[None]:
    """Inside the block, a case without a recipe of its own is tuned when a kernel is called for it.

    ``trials`` and ``time`` (seconds, or a text such as ``"90s"``) bound the search for each case, ``store``
    is where its trials go. Kernels with ``tune="never"`` are not tuned here either.

    Raises :class:`InputError` for a bound that is none.
    """
    token = ASKED.set(Budget(trials, read_time(time), store, seed))
    try:
        yield
    finally:
        ASKED.reset(token)


def budget_asked() -> Budget | None:
    """The budget of the block around the caller, or of the environment; ``None``: nobody asked."""
    budget = ASKED.get()
    if budget is None and os.environ.get(VARIABLE, "").lower() in ("1", "true", "yes", "on"):
        return Budget()
    return budget
