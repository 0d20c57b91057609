"""What kinds of values stand in the rows of an archive, each with its check. Pure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

LONGEST = 1 << 53
"""Whole numbers up to here are the same in every JSON reader, and far within 64 bits."""

LATEST = 253_402_300_799.0
"""The end of the year 9999, in POSIX seconds: a calendar has no later moment."""

Check = Callable[[object, str], object]
"""Takes a value and what it is called; raises :class:`WrongRowError`."""


class WrongRowError(Exception):
    """A row is not what it should be; its text says how."""


def require_names(row: Mapping[str, object], wanted: Collection[str]) -> None:
    """Whether an object has these names and no others."""
    if missing := set(wanted) - set(row):
        raise WrongRowError(f"it has no {sorted(missing)[0]!r}")
    if extra := set(row) - set(wanted):
        raise WrongRowError(f"it has {sorted(extra)[0]!r}, which no such row has")


def whole(value: object, name: str, least: int = -LONGEST) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= LONGEST:
        raise WrongRowError(f"{name} is no whole number that it can be")
    return value


def real(value: object, name: str) -> float:
    """A number that a float can hold, infinities and NaN included."""
    if isinstance(value, float) or (type(value) is int and abs(value) <= sys.float_info.max):
        return float(value)
    raise WrongRowError(f"{name} is no number")


def moment(value: object, name: str) -> None:
    """POSIX seconds."""
    if not 0.0 <= real(value, name) <= LATEST:
        raise WrongRowError(f"{name} is no time that a calendar has")


def text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise WrongRowError(f"{name} is no text")
    return value


def key(value: object, name: str) -> None:
    """A hash or another name of ours, which any database takes as it is."""
    if not (text(value, name).isascii() and str(value).isprintable()):
        raise WrongRowError(f"{name} is no key")


def flag(value: object, name: str) -> None:
    if not isinstance(value, bool):
        raise WrongRowError(f"{name} is neither true nor false")


def any_object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise WrongRowError(f"{name} is no object")
    return value


def any_list(value: object, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise WrongRowError(f"{name} is no list")
    return value


def at_least(least: int) -> Check:
    """A whole number that is no smaller."""
    return lambda value, name: whole(value, name, least)


def object_of(check: Check) -> Check:
    """An object all of whose parts are so."""

    def each(value: object, name: str) -> None:
        for key, item in any_object(value, name).items():
            check(item, f"{name}.{key[:40]}")

    return each


def list_of(check: Check, length: int | None = None) -> Check:
    """A list all of whose items are so, and that has ``length`` of them if that is given."""

    def each(value: object, name: str) -> None:
        items = any_list(value, name)
        if length is not None and len(items) != length:
            raise WrongRowError(f"{name} has not {length} items")
        for item in items:
            check(item, f"an item of {name}")

    return each


def parts(**known: Check) -> Check:
    """An object with these parts. One that is missing is not known; what it has else is free."""

    def each(value: object, name: str) -> None:
        there = any_object(value, name)
        for part, check in known.items():
            if part in there:
                check(there[part], f"{name}.{part}")

    return each


def or_null(check: Check) -> Check:
    """Such a value, or null: there is none, or nobody could find it out."""
    return lambda value, name: None if value is None else check(value, name)


def one_or_each(check: Check) -> Check:
    """One such value, or one by each name: of several goals a reason says what it says of each."""

    def either(value: object, name: str) -> None:
        (object_of(check) if isinstance(value, dict) else check)(value, name)

    return either
