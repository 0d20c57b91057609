"""Moving along a range: how far, and which number is there."""

from __future__ import annotations

import math

STEPS = (0.2, 0.05, 0.01)
"""Standard deviations of a random step along a scale, as fractions of it: far, near and next to it."""
AT_THE_END = 1e-12
"""A fraction of a range that is nearer to its end than this is off it by rounding only, and means the end."""


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
