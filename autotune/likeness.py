"""How unlike two workloads are: a factor of two in one number counts as 1."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

STRANGE = 10.0
"""How far apart two values are that cannot be compared: as two numbers with a ratio of a thousand."""


def distance(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """The root of the summed squares of how far apart the values of two workloads are."""
    found = (apart(value, other.get(name)) for name, value in one.items())
    return math.hypot(*(STRANGE if each is None else each for each in found))


def apart(one: Any, other: Any) -> float | None:
    """How far apart two values are; ``None`` where they differ and cannot be compared.

    Numbers by the logarithm of their ratio; a list of numbers, or a group of named ones, counts as so many. A
    type, a flag or a text that differs cannot be compared.
    """
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        if len(one) != len(other):
            return None
        each = [apart(a, b) for a, b in zip(one, other, strict=True)]
        return None if None in each else math.hypot(*(d for d in each if d is not None))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        if one.keys() != other.keys():
            return None
        return apart([one[name] for name in one], [other[name] for name in one])
    sizes = [x for x in (one, other) if isinstance(x, (int, float)) and not isinstance(x, bool)]
    if len(sizes) == 2:
        if sizes[0] == sizes[1]:
            return 0.0
        # A whole number is finite, though it may be too large to be asked.
        if min(sizes) > 0 and all(isinstance(x, int) or math.isfinite(x) for x in sizes):
            # Of two seeds of 18 digits that is 0, and they are not the same.
            return abs(math.log2(sizes[0]) - math.log2(sizes[1])) or sys.float_info.min
        return None
    return 0.0 if type(one) is type(other) and one == other else None
