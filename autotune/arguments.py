"""Checks of what is passed to functions; all functions word a problem the same way."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterator, Mapping
from typing import Any

from autotune.errors import Problem


def is_whole(value: object, least: int) -> bool:
    """Whether ``value`` is a whole number, of Python or numpy but no ``bool``, and at least ``least``."""
    return _is(value, numbers.Integral) and value >= least  # type: ignore[operator]


def not_whole(name: str, value: object, least: int) -> Problem:
    """The problem with a value that fails :func:`is_whole`."""
    return Problem(f"{name} is {value!r:.60}", expected=f"a whole number, {least} or more")


def count_problems(name: str, value: object, least: int) -> Iterator[Problem]:
    """The problem with a count, if there is one; ``None`` (not given) is no problem."""
    if value is not None and not is_whole(value, least):
        yield not_whole(name, value, least)


def time_problems(value: object) -> Iterator[Problem]:
    """The problem with a time in seconds, if there is one; ``None`` (not given) is no problem."""
    if value is not None and not (_is(value, numbers.Real) and 0 < value < math.inf):  # type: ignore[operator]
        yield Problem(f"time is {value!r:.60}", expected="seconds, more than 0, or a text such as 1h30m")


def target_problems(value: object) -> Iterator[Problem]:
    """The problem with a value of the goal, if there is one; ``None`` (not given) is no problem."""
    if value is not None and not (_is(value, numbers.Real) and -math.inf < value < math.inf):  # type: ignore[operator]
        yield Problem(f"target is {value!r:.60}", expected="a finite number, in the unit of the goal")


def no_step(step: object) -> TypeError:
    """The exception for a report whose step is no whole number."""
    said = f"the step of a report must be a whole number, how many steps are done, not {step!r:.60}"
    return TypeError(f"{said}: report(step, loss=...)")


def by_name(metrics: Mapping[str, Any] | None, named: dict[str, Any]) -> dict[str, Any]:
    """Metrics that are passed as a mapping, by their names, or both; ``TypeError`` for a bare number."""
    if metrics is None:
        return named
    try:
        return {**metrics, **named}
    except TypeError:
        how = "metrics have names, as in loss=0.5 or {'loss': 0.5}"
        raise TypeError(f"{how}: got {metrics!r:.60}") from None


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)
