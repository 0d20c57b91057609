"""What is wrong with the numbers that somebody passed to a function, said in one way everywhere."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator

from autotune.errors import Problem


def is_whole(value: object, least: int) -> bool:
    """Whether it is a whole number of at least so much, be it Python's or numpy's; a flag is none."""
    return _is(value, numbers.Integral) and value >= least  # type: ignore[operator]


def not_whole(name: str, value: object, least: int) -> Problem:
    """What to say of a value that is no such number."""
    return Problem(f"{name} is {value!r:.60}", expected=f"a whole number, {least} or more")


def count_problems(name: str, value: object, least: int) -> Iterator[Problem]:
    """The problem with so many of something, if there is one; ``None`` is what was not said."""
    if value is not None and not is_whole(value, least):
        yield not_whole(name, value, least)


def time_problems(value: object) -> Iterator[Problem]:
    """The problem with the seconds of something, if there is one; ``None`` is what was not said."""
    if value is not None and not (_is(value, numbers.Real) and 0 < value < math.inf):  # type: ignore[operator]
        yield Problem(f"time is {value!r:.60}", expected="seconds, more than 0, or a text such as 1h30m")


def no_step(step: object) -> TypeError:
    """What to raise for the step of a report that is no whole number."""
    said = f"the step of a report must be a whole number, how many steps are done, not {step!r:.60}"
    return TypeError(f"{said}: report(step, loss=...)")


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
