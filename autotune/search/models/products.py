"""Products and quotients of the integers of a space: what the rules of kernels and programs are made of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from autotune.search.models.arrays import Flags, Floats, Integers
from autotune.space.configuration import Value
from autotune.space.knobs.knob import Knob

if TYPE_CHECKING:
    from autotune.search.models.features import Features

NEAR = 1e-6
"""Smaller differences of logarithms, and smaller relative ones of numbers, are due to rounding."""
LONGEST = 4096
"""A knob of more values is left out: a few tries among so many hardly show a rule."""
MOST = 6000
"""Where there would be more products, the longer ones are left out. Ten knobs have fewer products of up to
four knobs, and thirty-nine have fewer of two."""
LENGTHS = (0.4, 0.3, 0.2, 0.1)
"""How probable it is that a rule is about two knobs, three, four or five. (Five: two sides of a tile, each
divided by what one thread has of it, and the number of threads.)"""

MOST_FACTS = 6
"""So many facts of the workload may be what a product has to divide; the first ones."""


class Numbers:
    """The knobs of a space whose values are positive whole numbers, and such facts of its workload."""

    def __init__(self, features: Features) -> None:
        found = [(columns.start, knob) for knob, columns in features.placed if _counts(knob)]
        self.names = tuple(knob.name for _, knob in found)
        self._tables = [
            # A knob that does not exist (the last entry) counts as 1, which divides everything.
            (start, np.append(np.log2(np.array(knob.cells[0].values, dtype=float)), 0.0))
            for start, knob in found
        ]
        self.facts = divisible(features.space.workload) if found else {}

    def __len__(self) -> int:
        return len(self.names)

    def logs(self, codes: Integers) -> Floats:
        """The binary logarithms of rows of cell indices, behind them those of the facts; shape
        (n, numbers + facts)."""
        facts = [np.full(len(codes), math.log2(fact)) for fact in self.facts.values()]
        return np.column_stack([*(table[codes[:, start]] for start, table in self._tables), *facts])


def divisible(workload: Mapping[str, Value]) -> dict[str, int]:
    """The facts of a workload that a tile, say, may have to divide: sizes. Of equal ones the first."""
    names: dict[int, str] = {}
    for name, fact in workload.items():
        if is_count(fact) and fact != 1:
            names.setdefault(fact, name)
    return {name: fact for fact, name in list(names.items())[:MOST_FACTS]}


def _counts(knob: Knob) -> bool:
    """Whether it has several values, and all are positive whole numbers."""
    if not knob.ordered or len(knob.cells) != 1 or not 2 <= len(knob.cells[0].values) <= LONGEST:
        return False
    return all(map(is_count, knob.cells[0].values))


def is_count(value: object) -> TypeGuard[int]:
    """Whether it is a positive whole number, of a size that a machine counts in."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**63


@dataclass(frozen=True)
class Products:
    """All products and quotients of a few numbers, the shortest first; and what facts leave of them."""

    exponents: Floats
    """1, -1 or 0; shape (numbers + facts, products)."""
    log_prior: Floats
    """The logarithm of how probable it is that a rule is about each; shape (products,)."""
    of_fact: Flags
    """Which are a fact over a product of numbers; shape (products,)."""

    @property
    def upright(self) -> Flags:
        """Marks one of each product and its inverse; shape (products,)."""
        first = np.argmax(self.exponents != 0.0, axis=0)
        return np.asarray(self.exponents[first, np.arange(self.exponents.shape[1])] > 0.0)

    @classmethod
    def of(cls, numbers: int, facts: int = 0) -> Products:
        """The products of two numbers, of three and so on, as long as they are no more than :data:`MOST`.

        Those of a fact have it above: that a fact is divided by a product is all that is asked of facts.
        """
        blocks, of_fact = [np.zeros((numbers + facts, 0))], [np.zeros(0, dtype=bool)]
        total = 0
        for size in range(2, min(len(LENGTHS), numbers) + 2):
            total += math.comb(numbers, size) * 2**size + facts * math.comb(numbers, size - 1)
            if total > MOST:
                break
            own = np.vstack([plain := _signed(numbers, size), np.zeros((facts, plain.shape[1]))])
            divided = _divided(numbers, facts, size - 1)
            blocks += [own, divided]
            of_fact += [np.zeros(own.shape[1], dtype=bool), np.ones(divided.shape[1], dtype=bool)]
        exponents = np.hstack(blocks)
        return cls(exponents, _log_prior(exponents), np.concatenate(of_fact))


def _log_prior(exponents: Floats) -> Floats:
    """The logarithm of how probable each is.

    Of one length, plain products together are as probable as all quotients by one number, and as all by two.
    While everything that worked has one replica, ``ranks * replicas`` and ``ranks / replicas`` are the same;
    there are far more quotients, but mostly the product is meant.
    """
    lengths = np.count_nonzero(exponents, axis=0)
    kinds = np.minimum((exponents > 0.0).sum(axis=0), (exponents < 0.0).sum(axis=0))
    prior = np.zeros(len(lengths))
    for length, probable in enumerate(LENGTHS, start=2):
        for kind in range(length // 2 + 1):
            alike = (lengths == length) & (kinds == kind)
            prior[alike] = probable / (length // 2 + 1) / max(int(alike.sum()), 1)
    return np.log(prior)


def _signed(numbers: int, size: int) -> Floats:
    """The products of ``size`` numbers; shape (numbers, products)."""
    signs = np.array(list(product([1.0, -1.0], repeat=size))).T
    chosen = _chosen(numbers, size)
    block = np.zeros((numbers, len(chosen), signs.shape[1]))
    for place in range(size):
        block[chosen[:, place], np.arange(len(chosen))] = signs[place]
    return block.reshape(numbers, -1)


def _divided(numbers: int, facts: int, size: int) -> Floats:
    """Each fact over each product of ``size`` numbers; shape (numbers + facts, products)."""
    chosen = _chosen(numbers, size)
    block = np.zeros((numbers + facts, facts, len(chosen)))
    for place in range(size):
        block[chosen[:, place], :, np.arange(len(chosen))] = -1.0
    block[numbers + np.arange(facts), np.arange(facts)] = 1.0
    return block.reshape(numbers + facts, -1)


def _chosen(numbers: int, size: int) -> Integers:
    """Each choice of ``size`` numbers; shape (choices, size)."""
    return np.array(list(combinations(range(numbers), size)), dtype=int).reshape(-1, size)


def is_whole(logs: Floats) -> Flags:
    """Whether the numbers of these binary logarithms are whole; what is too large to tell is taken to be."""
    numbers = np.exp2(np.minimum(logs, 40.0))
    return np.asarray(
        (logs > -NEAR) & (np.abs(numbers - np.round(numbers)) < NEAR * np.maximum(numbers, 1.0))
    )
