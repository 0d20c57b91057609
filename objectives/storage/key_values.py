"""What a key-value store is asked to hold and to do: keys, values, operations and the answers they must get.

Keys come in pairs of neighbours, of which exactly one is there at any time. So a key that is missed lies
between keys that are there, a row that moves leaves its pair to the other key, the number of rows stays, and
what is there follows from a bit and a version of each pair. Of the pairs every other one has a value that
compresses; the rest are random bytes. Some keys are asked for far more often than others (Zipf's law).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

MOVED = 0.25
"""Of the rows that are written: their old key is deleted and the other one of the pair inserted."""
POOL = 1 << 18
"""Bytes that values are cut from."""
HEAD = 8
"""Bytes of a value that say whose and which it is, so that no two are the same."""


@dataclass(frozen=True)
class Change:
    """A row gets a new value; where ``removed`` is a key, it had that one before."""

    pair: int
    removed: bytes | None
    key: bytes
    value: bytes


Transaction = tuple[Change, ...]


@dataclass(frozen=True)
class Read:
    """The value of a key, or ``None`` where it is not there."""

    key: bytes
    expected: bytes | None


@dataclass(frozen=True)
class Scan:
    """So many keys from ``key`` on, in order, and their values."""

    key: bytes
    expected: list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Write:
    """Rows that are written together or not at all."""

    changes: Transaction
    expected: None = None


Operation = Read | Scan | Write


def key_of(pair: int, side: int) -> bytes:
    return b"user%012d" % (2 * pair + side)


@dataclass(frozen=True)
class Mix:
    """How many operations of each kind a reading has."""

    reads: int
    misses: int
    scans: int
    scan_rows: int
    transactions: int
    rows: int
    """Of a transaction."""


class Contents:
    """Which keys are there, with which values: the truth that a store is compared with."""

    def __init__(self, rows: int, mean_bytes: int, skew: float) -> None:
        rng = np.random.default_rng(0)
        self.rows, self._mean = rows, mean_bytes
        self._side = rng.integers(0, 2, rows)
        self._version = np.zeros(rows, np.int64)
        shares = np.cumsum(1.0 / np.arange(1, rows + 1) ** skew)
        self._shares, self._ranked = shares / shares[-1], rng.permutation(rows)
        self._pools = _pools(POOL + 2 * mean_bytes)

    def draw(self, rng: np.random.Generator, count: int) -> list[int]:
        """Pairs that are asked for."""
        ranks: NDArray[np.int64] = np.searchsorted(self._shares, rng.random(count), side="right")
        return [int(pair) for pair in self._ranked[np.minimum(ranks, self.rows - 1)]]

    def value(self, pair: int, version: int) -> bytes:
        """Half to three halves of the mean long."""
        mixed = (pair * 2654435761 + version * 2246822519) & 0xFFFFFFFF
        size = self._mean // 2 + mixed % (self._mean + 1)
        begin = mixed % POOL
        head = pair.to_bytes(HEAD // 2, "little") + (version & 0xFFFFFFFF).to_bytes(HEAD // 2, "little")
        return head + self._pools[pair % 2][begin : begin + max(size - HEAD, 0)]

    def row(self, pair: int) -> tuple[bytes, bytes]:
        return key_of(pair, int(self._side[pair])), self.value(pair, int(self._version[pair]))

    def all(self) -> Iterator[tuple[bytes, bytes]]:
        """Every row, by key."""
        return map(self.row, range(self.rows))

    @cached_property
    def bytes(self) -> int:
        """Of keys and values, as they are at first; they hardly change after."""
        return sum(len(key) + len(value) for key, value in self.all())

    def transaction(self, pairs: list[int], rng: np.random.Generator) -> Transaction:
        """What writes these pairs anew, some of them with the other key; done to these contents."""
        changes = []
        for pair, moves in zip(pairs, rng.random(len(pairs)) < MOVED, strict=True):
            old, _ = self.row(pair)
            self._side[pair] ^= int(moves)
            self._version[pair] += 1
            key, value = self.row(pair)
            changes.append(Change(pair, old if moves else None, key, value))
        return tuple(changes)

    def saved(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What :meth:`restore` comes back to."""
        return self._side.copy(), self._version.copy()

    def restore(self, saved: tuple[NDArray[np.int64], NDArray[np.int64]]) -> None:
        self._side, self._version = (array.copy() for array in saved)

    def operations(self, mix: Mix, rng: np.random.Generator) -> list[Operation]:
        """In random order, each with the answer that it must get there; done to these contents."""
        made: list[Operation] = []
        kinds = np.repeat(np.arange(4), (mix.reads, mix.misses, mix.scans, mix.transactions))
        for kind in rng.permutation(kinds):
            pairs = self.draw(rng, mix.rows if kind == 3 else 1)
            made.append(self._operation(int(kind), pairs, mix, rng))
        return made

    def _operation(self, kind: int, pairs: list[int], mix: Mix, rng: np.random.Generator) -> Operation:
        pair = pairs[0]
        if kind == 0:
            return Read(*self.row(pair))
        if kind == 1:
            return Read(key_of(pair, 1 - int(self._side[pair])), None)
        if kind == 2:
            last = min(pair + mix.scan_rows, self.rows)
            return Scan(key_of(pair, 0), [self.row(each) for each in range(pair, last)])
        return Write(self.transaction(pairs, rng))


@cache
def _pools(count: int) -> tuple[bytes, bytes]:
    """So many bytes by chance, and as many of text as people store it, which compresses to a third or so."""
    rng = np.random.default_rng(0)
    words = ("open", "paid", "sent", "north", "south", "blue", "green", "large", "small", "none")
    draws = rng.integers(0, len(words), (count // 40 + 1, 3)).tolist()
    numbers = rng.integers(0, 1 << 30, len(draws)).tolist()
    text = "".join(
        f'{{"id": {number}, "state": "{words[a]}", "colour": "{words[b]}", "size": {c}}}'
        for number, (a, b, c) in zip(numbers, draws, strict=True)
    )
    return rng.bytes(count), text.encode()[:count]
