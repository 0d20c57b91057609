"""The conditions of rules: bounds on a workload's numbers, their products and ratios, and equality. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations

import numpy as np
from numpy.typing import NDArray

from autotune.hook.rule import Condition, Equals, Threshold
from autotune.space.configuration import Value

Mask = NDArray[np.bool_]

MOST_BOUNDS = 24
"""The most bounds of one quantity; with more values, they are spread evenly over these."""


@dataclass(frozen=True)
class Question:
    """A condition, and for each workload whether it holds."""

    condition: Condition
    holds: Mask


def questions(workloads: Sequence[Mapping[str, Value]], names: Sequence[str]) -> list[Question]:
    """All conditions that split the workloads, the simplest first; no two of them split in the same way.

    A bound lies between two neighbouring values: their geometric mean, rounded to as few digits as possible.
    """
    found: dict[bytes, Question] = {}
    for condition in _conditions(workloads, names):
        holds = np.array([condition.holds(workload) for workload in workloads], dtype=bool)
        if holds.all() or not holds.any():
            continue
        # A condition and its opposite split in the same way.
        key = (holds if holds[0] else ~holds).tobytes()
        found.setdefault(key, Question(condition, holds))
    return list(found.values())


def _conditions(workloads: Sequence[Mapping[str, Value]], names: Sequence[str]) -> Iterator[Condition]:
    numbers = [name for name in names if all(_is_number(workload[name]) for workload in workloads)]
    for name in names:
        if name not in numbers:
            values = dict.fromkeys(workload[name] for workload in workloads)
            yield from (Equals(name, value) for value in values)
    positive = [name for name in numbers if all(workload[name] > 0 for workload in workloads)]  # type: ignore[operator]
    for product, over in _quantities(numbers, positive):
        yield from _thresholds(workloads, product, over)


def _quantities(
    numbers: Sequence[str], positive: Sequence[str]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The numbers, products of two, ratios, and the product of all."""
    yield from (((name,), ()) for name in numbers)
    yield from ((pair, ()) for pair in combinations(positive, 2))
    yield from (((one,), (other,)) for one, other in permutations(positive, 2) if one < other)
    if len(positive) > 2:
        yield tuple(positive), ()


def _thresholds(
    workloads: Sequence[Mapping[str, Value]], product: tuple[str, ...], over: tuple[str, ...]
) -> Iterator[Threshold]:
    values = sorted({_product(w, product) / _product(w, over) for w in workloads})
    places = list(pairwise(values))
    spread = np.linspace(0, len(places) - 1, min(len(places), MOST_BOUNDS))
    for low, high in (places[round(place)] for place in spread.tolist()):
        bound = _between(low, high)
        if low <= bound < high:  # false if no float lies between the two values
            yield Threshold(product, bound, over)


def _product(workload: Mapping[str, Value], names: Sequence[str]) -> float:
    return math.prod(workload[name] for name in names)  # type: ignore[misc]


def _between(low: float, high: float) -> float:
    """A number from ``low`` to below ``high`` with few digits."""
    middle = math.sqrt(low) * math.sqrt(high) if low > 0 else (low + high) / 2
    for digits in range(1, 17):
        bound = float(f"{middle:.{digits}g}")
        if low <= bound < high:
            return int(bound) if bound == int(bound) and abs(bound) < 1e15 else bound
    return low


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
