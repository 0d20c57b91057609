"""Numbers for people: a value with its unit, its interval, and as many digits as are certain."""

from __future__ import annotations

import math
from decimal import Decimal

from autotune.measure.outcome import Estimate

READABLE = 10**18
"""Whole numbers from here on are said by their first digits and how many there are."""
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_PREFIXED = frozenset(("b", "byte", "bytes", "bit", "bits", "flop", "flops", "op", "ops", "hz", "w", "j"))
"""Units that take a prefix, in small letters: ``kms`` and ``k%`` are none, and who writes MB has one."""


def say_value(value: float, unit: str = "", digits: int = 4) -> str:
    """``4.123 ms`` for 0.004123 s; ``12.3 Gflop/s``; a plain number where there is no unit."""
    if not math.isfinite(value):
        return str(value)
    if unit == "s":
        scale, name = next((pair for pair in _SECONDS if abs(value) >= pair[0]), _SECONDS[-1])
        return f"{value / scale:.{digits}g} {name}" if value else "0 s"
    if unit.partition("/")[0].lower() in _PREFIXED:
        for scale, prefix in _PREFIXES:
            if abs(value) >= scale:
                return f"{value / scale:.{digits}g} {prefix}{unit}"
    plain = f"{value:,.0f}" if 10**digits <= abs(value) < 1e15 else f"{value:.{digits}g}"
    return f"{plain} {unit}".rstrip()


def say_gain(estimate: float, low: float, high: float, unit: str = "") -> str:
    """``0.12 MB [0.1 MB, 0.14 MB]``: a difference with its interval."""
    return f"{say_value(estimate, unit)} [{say_value(low, unit)}, {say_value(high, unit)}]"


def say_estimate(estimate: Estimate, unit: str = "") -> str:
    """``4.12 ms [4.10, 4.15]``; the value alone where there is no interval."""
    value = say_value(estimate.value, unit)
    if estimate.n < 2 or not (math.isfinite(estimate.low) and math.isfinite(estimate.high)):
        return value
    if unit == "s" and estimate.value:
        scale, _ = next((p for p in _SECONDS if abs(estimate.value) >= p[0]), _SECONDS[-1])
        return f"{value} [{estimate.low / scale:.4g}, {estimate.high / scale:.4g}]"
    return f"{value} [{say_value(estimate.low, unit)}, {say_value(estimate.high, unit)}]"


def say_count(count: int, one: str, many: str = "") -> str:
    """``1 trial``, ``1,200 trials``; ``many`` where that is not ``one`` with an s."""
    return f"{say_whole(count)} {one if count == 1 else many or f'{one}s'}"


def say_whole(number: int) -> str:
    """``1,200``; of numbers that nobody would read to their end, ``7.89e374``."""
    return f"{number:,}" if abs(number) < READABLE else f"{Decimal(number):.2e}".replace("+", "")


def say_seconds(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3.5 h``: a duration, roughly."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


UNKNOWN_RATIO = 1e6
"""An interval that reaches this far, or as far below, says that this end of it is not known."""


def say_ratio(estimate: float, low: float, high: float) -> str:
    """``1.42x [1.4, 1.44]``; ``2.3x [at least 1.4]`` where one end is not known: two wild rounds, say."""
    has_low, has_high = low > 1 / UNKNOWN_RATIO, high < UNKNOWN_RATIO
    if has_low and has_high:
        known = f"{low:.3g}, {high:.3g}"
    elif has_low or has_high:
        known = f"at least {low:.3g}" if has_low else f"at most {high:.3g}"
    else:
        known = "too few rounds to say"
    return f"{estimate:.3g}x [{known}]"
