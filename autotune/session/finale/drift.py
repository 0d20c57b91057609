"""Whether the machine was slower, or faster, in the finale than while searching, for all alike.

The verdict is of the finale alone, in which everybody was read side by side. But who came into it was decided
by what was read before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

MUCH = 1.5
"""Luck of the best readings, caches and noise come to less, for each contender alike."""


def drift(searched: Mapping[str, float], again: Mapping[str, float]) -> float:
    """The factor by which all values are larger ``again`` than as ``searched``, by the hash of who was read.

    Below 1 where they are smaller; 1 where they moved in both directions, or fewer than two can be compared.
    """
    pairs = [(searched[one], value) for one, value in again.items() if one in searched]
    if len(pairs) < 2 or not all(0.0 < part < math.inf for pair in pairs for part in pair):
        return 1.0
    ratios = [value / before for before, value in pairs]
    return min(ratios) if min(ratios) > 1.0 else max(ratios) if max(ratios) < 1.0 else 1.0


def say_drift(factor: float) -> str:
    """A remark on a finale that drifted so far from its search; empty where it did not."""
    if 1 / MUCH < factor < MUCH:
        return ""
    much = f"{factor:.2g} times as large" if factor > 1 else f"{1 / factor:.2g} times as small"
    return (
        f"all values measured again are {much} as in the search, or more: something changed meanwhile"
        " (a load, a clock, a cache), and without that others might have been finalists"
    )
