"""Long lists of values, cut into parts that one statement can take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Value = TypeVar("Value")

MOST_VALUES = 500
"""SQLite's own limit may be as low as 999."""


def in_parts(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    for first in range(0, len(values), MOST_VALUES):
        yield values[first : first + MOST_VALUES]
