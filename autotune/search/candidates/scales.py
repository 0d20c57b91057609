"""Numbers by how far they are along a range."""

from __future__ import annotations

import math

AT_THE_END = 1e-12
"""Of a range: what is nearer to its end than this is meant to be the end, and off it by rounding."""


def between(low: float, high: float, fraction: float, *, log: bool) -> float:
    """The number at ``fraction`` (0 to 1) of the way from ``low`` to ``high``, on a logarithmic scale or not.

    At either end it is that bound itself: by way of its logarithm 0.0001 would be 0.00010000000000000009.
    """
    if fraction <= AT_THE_END:
        return low
    if fraction >= 1.0 - AT_THE_END:
        return high
    if log:
        value = math.exp(math.log(low) * (1.0 - fraction) + math.log(high) * fraction)
    else:
        value = low + fraction * (high - low)
    return min(max(value, low), high)
