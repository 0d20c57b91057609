"""How unlike two workloads are: a factor of two in one number counts as 1."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

STRANGE = 10.0
"""The distance between two values that cannot be compared: that of two numbers with a ratio of a thousand."""


def distance(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """The Euclidean distance between two workloads; :func:`apart` gives the distance of each value.

    A value that only one of them has cannot be compared.
    """
    found = (apart(one.get(name), other.get(name)) for name in {**one, **other})
    return math.hypot(*(STRANGE if each is None else each for each in found))


def apart(one: Any, other: Any) -> float | None:
    """How far apart two values are; ``None`` where they differ and cannot be compared.

    For numbers it is the logarithm (to base 2) of their ratio. Each number of a list, or of a group of named
    ones, counts. Types, flags and texts that differ cannot be compared.
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
        # An int is always finite, and isfinite() raises OverflowError for one beyond 1.8e308.
        if min(sizes) > 0 and all(isinstance(x, int) or math.isfinite(x) for x in sizes):
            # For two different seeds of 18 digits the difference rounds to 0, but they are not the same.
            return abs(math.log2(sizes[0]) - math.log2(sizes[1])) or sys.float_info.min
        return None
    return 0.0 if type(one) is type(other) and one == other else None
