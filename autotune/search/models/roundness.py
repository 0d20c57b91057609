"""How round the integers of a range are: how often they can be divided by two (their 2-adic valuation).

Whoever writes a list of sizes leaves out what never does well. A range has all of its numbers, and of those
vectors, warps, cache lines and banks prefer multiples of their own width: 40 behaves like 32 and 48 rather
than like 39 and 41, which leave remainders. What the width is, is not known beforehand. If each power of two
up to :data:`WIDEST` is equally probable, a loss falls by the same amount with each factor of two in a number.
That amount is what is learned: one number for each range, of either sign, near 0 where roundness does not
matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.search.models.arrays import Floats, Integers
from autotune.space.knobs import IntegerRange
from autotune.space.knobs.knob import Knob

WIDEST = 8
"""Multiples of this, in units of the range, are as round as any number."""


@dataclass(frozen=True)
class RoundRange:
    """A range of integers, some of which are rounder than others.

    Its numbers are divided by the largest power of two that divides them all, and kept modulo
    :data:`WIDEST`.
    """

    column: int
    """Where its cell index stands in a row."""
    first: int
    step: int

    def roundness(self, cells: Integers) -> Floats:
        """From -1/2, for odd numbers, to 1/2; 0 where the knob does not exist. Shape (n,)."""
        remainders = (self.first + self.step * cells[:, self.column]) % WIDEST
        return np.where(cells[:, self.column] < 0, 0.0, _ROUNDNESS[remainders])


def round_ranges(placed: Sequence[tuple[Knob, slice]]) -> list[RoundRange]:
    """Those among knobs and their columns. A ``log2`` scale has nothing but powers of two."""
    found = []
    for knob, columns in placed:
        if isinstance(knob, IntegerRange) and knob.scale != "log2" and len(knob.cells[0].values) > 1:
            unit = math.gcd(knob.low, knob.step)
            unit &= -unit  # the largest power of two that divides it
            found.append(RoundRange(columns.start, knob.low // unit % WIDEST, knob.step // unit % WIDEST))
    return found


def _divisions(remainder: int) -> int:
    """How often a number with this remainder can be divided by two, as far as that counts."""
    return (remainder & -remainder).bit_length() - 1 if remainder else WIDEST.bit_length() - 1


_ROUNDNESS: Floats = np.array([_divisions(n) / _divisions(0) - 0.5 for n in range(WIDEST)])
"""By the remainder modulo :data:`WIDEST`."""
