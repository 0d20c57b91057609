"""Durations and amounts of memory as people write them: ``1h30m``, ``90s``, ``4GiB``, ``512MB``."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from fractions import Fraction

from autotune.arguments import time_problems
from autotune.errors import InputError, Problem, nearest

SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
BYTES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
DURATION_FORM = "a duration such as 90s, 10m or 1h30m, or a number of seconds"
MEMORY_FORM = "an amount of memory such as 512MiB or 4GiB, or a number of bytes"

_SPELT_OUT = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-zµμ]*)\s*")
_MAX_LENGTH = 100


def seconds(text: str) -> float:
    """``'1h30m'`` -> 5400.0. Units: d, h, m, s, ms, us, each at most once, from large to small.

    Raises ``ValueError`` that says what is wrong; a number without a unit is refused unless it stands alone
    (``'90'`` is 90 seconds). Letter case does not matter.
    """
    parts = _parts(text, DURATION_FORM)
    if len(parts) == 1 and parts[0][1] == "":
        return float(parts[0][0])
    total, last = 0.0, math.inf
    for number, written in parts:
        unit = _SPELT_OUT.get(written.lower(), written.lower())
        unit = "us" if unit in ("µs", "μs") else unit  # the micro sign, or the letter mu
        if unit not in SECONDS:
            raise ValueError(_unknown(number, written, [*SECONDS, *_SPELT_OUT], SECONDS))
        if SECONDS[unit] >= last:
            raise ValueError(
                f"{written!r} is not smaller than the unit before it; units go from large to small"
            )
        last = SECONDS[unit]
        total += float(number) * last
    return total


def given_time(value: float | str | None) -> float | None:
    """``value`` in seconds: a text as in a space file is converted, a number or ``None`` stays as it is.

    Raises :class:`InputError` for anything else, and for a number that is not above 0.
    """
    if isinstance(value, str):
        try:
            value = seconds(value)
        except ValueError as error:
            raise InputError(Problem(f"time is {value!r:.60}: {error}", expected=DURATION_FORM)) from error
    if problems := list(time_problems(value)):
        raise InputError(problems)
    return value


def memory(text: str) -> int:
    """``'4GiB'`` -> 4294967296. B, kB, MB, GB, TB count in thousands, KiB, MiB, GiB, TiB in 1024s.

    Letter case does not matter; the result is a whole number of bytes. Raises ``ValueError``.
    """
    parts = _parts(text, MEMORY_FORM)
    if len(parts) != 1:
        raise ValueError(f"{text!r} has more than one number; expected {MEMORY_FORM}")
    number, written = parts[0]
    units = {unit.lower(): factor for unit, factor in BYTES.items()}
    if written and written.lower() not in units:
        raise ValueError(_unknown(number, written, BYTES, BYTES))
    factor = units[written.lower()] if written else 1
    amount = Fraction(number) * factor  # exact: of floats 4.1 * 10**6 is less than 4,100,000
    if amount.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(amount)


def _parts(text: str, form: str) -> list[tuple[str, str]]:
    """The (number, unit) pairs that make up the whole of ``text``."""
    stripped = text.strip()
    if not stripped or len(stripped) > _MAX_LENGTH:
        raise ValueError(f"expected {form}")
    found: list[tuple[str, str]] = []
    position = 0
    while position < len(stripped):
        part = _PART.match(stripped, position)
        if part is None:
            raise ValueError(f"{stripped[position:]!r} cannot be read as a number and a unit")
        found.append((part[1], part[2]))
        position = part.end()
    return found


def _unknown(number: str, written: str, known: Iterable[str], shown: Iterable[str]) -> str:
    if not written:
        return f"a unit is missing after {number}: one of {', '.join(shown)}"
    near = nearest(written, known)
    return f"unknown unit {written!r}" + (f"; {near}" if near else f"; expected one of {', '.join(shown)}")
