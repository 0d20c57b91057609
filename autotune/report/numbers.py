"""Numbers for people: a value with its unit and its interval, in a readable number of digits."""

from __future__ import annotations

import math
from decimal import Decimal

from autotune.measure.outcome import Estimate

READABLE = 10**18
"""Whole numbers from here on are written with an exponent."""
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_PREFIXED = frozenset(("b", "byte", "bytes", "bit", "bits", "flop", "flops", "op", "ops", "hz", "w", "j"))
"""Units that take a prefix, in lower case. Others do not (``kms``, ``k%``), or have one already (MB)."""


USUAL_DIGITS, MOST_DIGITS = 4, 9
"""The number of digits of a value, and the most that are used to distinguish two values side by side."""


def say_value(value: float, unit: str = "", digits: int = USUAL_DIGITS) -> str:
    """``4.123 ms`` for 0.004123 s; ``12.3 Gflop/s``; a plain number without a unit."""
    if not math.isfinite(value):
        return str(value)
    scale, name = _scale(value, unit)
    return f"{_to(value / scale, digits)} {name}".rstrip()


def digits_apart(one: float, other: float) -> int:
    """How many digits two values need side by side so that the first digit of their difference shows."""
    apart, size = abs(one - other), max(abs(one), abs(other))
    if not 0 < apart < math.inf:
        return USUAL_DIGITS
    needed = math.floor(math.log10(size) - math.log10(apart)) + 2
    return needed if USUAL_DIGITS < needed <= MOST_DIGITS else USUAL_DIGITS


def say_gain(estimate: float, low: float, high: float, unit: str = "", digits: int = USUAL_DIGITS) -> str:
    """``0.12 MB [0.1, 0.14]``: a value, or a difference, with its interval."""
    scale, name = _scale(estimate or max(abs(low), abs(high)), unit)
    value, *ends = (_to(one / scale, digits) for one in (estimate, low, high))
    return f"{f'{value} {name}'.rstrip()} [{', '.join(ends)}]"


def say_estimate(estimate: Estimate, unit: str = "", digits: int = USUAL_DIGITS) -> str:
    """``4.12 ms [4.1, 4.15]``; only the value if there is no interval, or it has no width."""
    ends = estimate.low, estimate.high
    if ends[0] == ends[1] or not all(map(math.isfinite, (estimate.value, *ends))):
        return say_value(estimate.value, unit, digits)
    return say_gain(*estimate.interval, unit, digits)


def _scale(value: float, unit: str) -> tuple[float, str]:
    """What to divide a value by to make it readable, and its unit after that."""
    if unit == "s" and value:
        return next((pair for pair in _SECONDS if abs(value) >= pair[0]), _SECONDS[-1])
    if unit.partition("/")[0].lower() in _PREFIXED:
        return next(((scale, p + unit) for scale, p in _PREFIXES if abs(value) >= scale), (1.0, unit))
    return 1.0, unit


def _to(value: float, digits: int) -> str:
    """``value`` in ``digits`` digits; if more than usual, with trailing zeros: 1.0000 beside 1.0007."""
    return _plain(value, digits) if digits <= USUAL_DIGITS else f"{value:#.{digits}g}".removesuffix(".")


def _plain(value: float, digits: int = USUAL_DIGITS) -> str:
    short = f"{value:.{digits}g}"
    return f"{value:,.0f}" if "e+" in short and abs(value) < 1e15 else short


def say_count(count: int, one: str, many: str = "") -> str:
    """``1 trial``, ``1,200 trials``; ``many`` is the plural if it is not ``one`` with an s."""
    return f"{say_whole(count)} {one if count == 1 else many or f'{one}s'}"


def say_whole(number: int) -> str:
    """``1,200``; for numbers from :data:`READABLE` on, ``7.89e374``."""
    return f"{number:,}" if abs(number) < READABLE else f"{Decimal(number):.2e}".replace("+", "")


def say_seconds(seconds: float) -> str:
    """``350 ms``, ``45 s``, ``2.5 min``, ``12 min``, ``3.5 h``: a duration, roughly."""
    if seconds < 0.95:
        return say_value(seconds, "s", 2)
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 570:
        return f"{seconds / 60:.2g} min"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


UNKNOWN_RATIO = 1e6
"""If an interval reaches this ratio (or its inverse), that end of it is taken for unknown."""


def as_duration(seconds: float) -> str:
    """A duration as commands and space files write it, without an exponent: ``90s``."""
    return f"{seconds:.15g}s"


def say_ratio(estimate: float, low: float, high: float) -> str:
    """``1.42x [1.4, 1.44]``; ``2.3x [at least 1.4]`` if one end is unknown, as with two wild rounds.

    ``1.0009x [1.0008, 1.001]``: an interval that does not contain 1 has enough digits to show that.
    """
    digits = _digits_beside_one(estimate, low, high)
    has_low, has_high = low > 1 / UNKNOWN_RATIO, high < UNKNOWN_RATIO
    if has_low and has_high:
        known = f"{_times(low, digits)}, {_times(high, digits)}"
    elif has_low or has_high:
        known = f"at least {_times(low, digits)}" if has_low else f"at most {_times(high, digits)}"
    else:
        known = "too few rounds to say"
    return f"{_times(estimate, digits)}x [{known}]"


def say_between(estimate: float, low: float, high: float) -> str:
    """``between 1.4x and 1.44x``: the ends of an interval in as many digits as tell them apart."""
    digits = _digits_beside_one(estimate, low, high)
    while _times(low, digits) == _times(high, digits) and low != high and digits < 12:
        digits += 1
    return f"between {_times(low, digits)}x and {_times(high, digits)}x"


def say_times(ratio: float) -> str:
    """``1.42x``, ``1,460x``; ``1.15e+10x``; ``1.0009x``."""
    return f"{_times(ratio, _digits_beside_one(ratio))}x"


def _digits_beside_one(*ratios: float) -> int:
    """How many digits distinguish ratios from 1 if all are on the same side of it; usually three."""
    nearest = min(abs(ratio - 1) for ratio in ratios)
    if not (all(ratio > 1 for ratio in ratios) or all(ratio < 1 for ratio in ratios)) or nearest >= 0.005:
        return 3
    return min(2 - math.floor(math.log10(nearest)), 12)


def _times(ratio: float, digits: int = 3) -> str:
    return _plain(ratio, digits) if ratio < UNKNOWN_RATIO else f"{ratio:.3g}"
