"""How a program asks for its kernels to be tuned when they are called: a ``with`` block or a variable."""

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
    """What tuning one case may cost, and where its trials are kept; ``None`` means as the kernel says.

    Raises :class:`InputError` for numbers out of range.
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
    """Seconds, from a number or a text such as ``"90s"``; the parser is only imported for a text."""
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

    ``trials`` and ``time`` (seconds, or a text such as ``"90s"``) bound the search for each case; ``store``
    is where its trials are kept. Kernels with ``tune="never"`` are not tuned here either.

    Raises :class:`InputError` for a number out of range.
    """
    token = ASKED.set(Budget(trials, read_time(time), store, seed))
    try:
        yield
    finally:
        ASKED.reset(token)


def budget_asked() -> Budget | None:
    """The budget of the block around the caller, or an empty one if the variable asks; else ``None``."""
    budget = ASKED.get()
    if budget is None and os.environ.get(VARIABLE, "").lower() in ("1", "true", "yes", "on"):
        return Budget()
    return budget
