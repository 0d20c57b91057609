"""Finding and merging equal rows of several columns, all at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.space.feasible_set.bounds import Span
from autotune.space.feasible_set.columns import DEFINED, Array, Column, factorise
from autotune.space.feasible_set.remembered import Remembered, bounded

Codes = tuple[NDArray[np.int64], int]
"""A number in ``range(n)`` for each row, equal where the rows are equal; and ``n``."""

_MOST = 2**62
"""So many codes fit into an integer of 64 bits with room to spare."""


def codes(remembered: Remembered) -> Codes:
    """Codes of one column (or of one column of bounds) with one entry a row."""
    if isinstance(remembered, Span):
        parts = [remembered.low, remembered.high, remembered.sure]
        return pack((_codes(part) for part in parts), len(remembered.low))
    found = _codes(remembered.data)
    if remembered.undefined is None:
        return found
    # An undefined entry holds an arbitrary value, which must not tell it from another.
    number, count = found
    defined = (np.where(remembered.undefined == DEFINED, number, 0), count)
    return pack([defined, (remembered.undefined.astype(np.int64), 3)], len(number))


def _codes(data: Array) -> Codes:
    if data.dtype == bool:
        return data.astype(np.int64), 2
    if data.dtype == np.int64 and data.size:
        low, high = int(data.min()), int(data.max())
        if high - low < 16 * data.size + 1024:
            return data - low, high - low + 1
    if data.dtype == object:
        number, values = factorise(data)
        return number, max(len(values), 1)
    distinct, number = np.unique(data, return_inverse=True)
    return number, max(len(distinct), 1)


@dataclass(frozen=True, eq=False)
class Ranked:
    """Each row's rank among the distinct values of a column.

    ``ordered``: whether near ranks are near values.
    """

    rank: NDArray[np.int64]
    count: int
    ordered: bool

    def coarse(self, bins: int) -> Codes:
        """At most ``bins`` different codes. If there are more values, near ones share a code; all do if they
        have no order."""
        if self.count <= bins:
            return self.rank, self.count
        return (self.rank * bins // self.count, bins) if self.ordered else (np.zeros_like(self.rank), 1)


def ranked(remembered: Remembered) -> Ranked:
    """The ranks of one column (bounds are ranked by their middle)."""
    if isinstance(remembered, Span):
        middle = np.clip(remembered.low, -1e300, 1e300) + np.clip(remembered.high, -1e300, 1e300)
        distinct, rank = np.unique(middle, return_inverse=True)
        return Ranked(rank, len(distinct), True)
    if remembered.undefined is not None or remembered.data.dtype == object:
        return Ranked(*codes(remembered), False)
    distinct, rank = np.unique(remembered.data, return_inverse=True)
    return Ranked(rank, len(distinct), True)


def pack(parts: Iterable[Codes], rows: int) -> Codes:
    """One code for each of ``rows`` rows of several codes."""
    key, count = np.zeros(rows, dtype=np.int64), 1
    for number, values in parts:
        if count * values >= _MOST:
            key, first = group((key, count))
            count = len(first)
        key, count = key * values + number, count * values
    return key, count


def group(packed: Codes) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each row the number of its group, and for each group one of its rows."""
    key, count = packed
    if count <= max(4 * key.size, 1 << 16):
        there = np.zeros(count, dtype=bool)
        there[key] = True
        number = (np.cumsum(there) - 1)[key]
        member = np.empty(int(there.sum()), dtype=np.int64)
        member[number] = np.arange(key.size)
        return number, member
    by_key = np.argsort(key)
    ordered = key[by_key]
    first = np.ones(key.size, dtype=bool)
    first[1:] = ordered[1:] != ordered[:-1]
    number = np.empty(key.size, dtype=np.int64)
    number[by_key] = np.cumsum(first) - 1
    return number, by_key[first]


def hull(one: Remembered, by_group: Array, starts: Array) -> Remembered:
    """What the members of each group remember, as a column where they all agree, else as bounds."""
    if isinstance(one, Column):
        number = codes(one)[0][by_group]
        if (np.minimum.reduceat(number, starts) == np.maximum.reduceat(number, starts)).all():
            return one.take(by_group[starts])
    span = bounded(one)
    low, high = span.low[by_group], span.high[by_group]
    sure = np.broadcast_to(span.sure, len(by_group))[by_group]
    return Span(
        np.minimum.reduceat(np.where(sure, low, -np.inf), starts),
        np.maximum.reduceat(np.where(sure, high, np.inf), starts),
        np.logical_and.reduceat(sure, starts),
    )
