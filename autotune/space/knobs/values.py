"""What the kinds of knob share: which values are the same, what a list must be, how it is shown."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeGuard

from autotune.errors import listed
from autotune.space.configuration import Value, freeze, plain

SMALL = 2**63
"""Integers of a magnitude below this are finite as floats: no other test is needed."""


def key(value: Value) -> Hashable:
    """What makes two values the same, also in a tuple: ``4`` is ``4.0`` but neither ``True`` nor ``'4'``."""
    if isinstance(value, tuple):
        return tuple(map(key, value))
    return (isinstance(value, bool), value)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number of Python's, and no flag."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_number(value: object) -> float | int | None:
    """``value`` as a finite Python number; ``None`` where it is something else."""
    if type(value) is int and -SMALL < value < SMALL:  # nearly always
        return value
    try:
        frozen = freeze(value)
    except TypeError:
        return None
    return frozen if is_number(frozen) and _finite(frozen) else None


def _finite(number: float) -> bool:
    """Whether it is finite as a float; an integer beyond the largest float is not."""
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def distinct(what: str, given: object) -> tuple[Value, ...]:
    """``given`` as a tuple of different values; the ``ValueError`` for anything else calls it ``what``."""
    if isinstance(given, (str, Mapping)) or not hasattr(given, "__iter__"):
        raise ValueError(f"{what} must be a list, but it is {given!r}")
    try:
        values = tuple(freeze(value) for value in given)
    except TypeError as error:
        raise ValueError(f"{what}: {error}") from None
    if not values:
        raise ValueError(f"{what} must not be empty")
    seen: set[Hashable] = set()
    for value in values:
        if isinstance(value, (int, float)) and not _finite(value):
            raise ValueError(f"{what} must be finite, as floats too, but one is {value!s:.40}")
        if key(value) in seen:
            raise ValueError(f"{what} must differ, but {plain(value)!r} is there twice")
        seen.add(key(value))
    return values


def scalars(what: str, given: object) -> tuple[Value, ...]:
    """As :func:`distinct`, for numbers, flags and texts only."""
    values = distinct(what, given)
    for value in values:
        if not isinstance(value, (bool, int, float, str)):
            raise ValueError(f"{what} must be numbers or texts, but one is {plain(value)!r}")
    return values


def listing(values: Sequence[Value]) -> str:
    """``1, 2, 4`` for people, cut where it is long."""
    return listed(repr(plain(value)) for value in values)
