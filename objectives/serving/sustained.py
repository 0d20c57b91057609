"""The highest rate that is sustained, found in a few short tries. Pure."""

from __future__ import annotations

from collections.abc import Callable

Holds = Callable[[float, bool], bool]
"""Whether a rate holds; the flag: in a long try, not in a short one. A short one that is too fast by a few
per cent ends before a queue has grown."""

TWICE = 2.0


def highest(holds: Holds, start: float, least: float, step: float) -> float:
    """The highest rate that holds in a long try, to a factor of ``step``; 0 where ``least`` does not hold.

    First it is doubled or halved from ``start`` on, in short tries, until it lies between two rates; then
    that is halved (on the scale of logarithms) by long ones, and once more where a short one said too much of
    the lower of the two.
    """
    low = start
    while low > least and not holds(low, False):
        low = max(least, low / TWICE)
    high = low * TWICE
    while holds(high, False):
        low, high = high, high * TWICE
    found = 0.0
    while not found and high > least:
        found = _between(holds, low, high, step) or (low if holds(low, True) else 0.0)
        low, high = max(least, low / TWICE), low
    return found


def _between(holds: Holds, low: float, high: float, step: float) -> float:
    """The highest rate that holds, of those that are tried between two; 0 where none does."""
    found = 0.0
    while high > low * step:
        middle = (low * high) ** 0.5
        if holds(middle, True):
            found = low = middle
        else:
            high = middle
    return found
