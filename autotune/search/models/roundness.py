"""How round the integers of a range are: how often two divides them (their 2-adic valuation).

Who writes a list of sizes leaves out what never does well. A range has all of its numbers, and of those
vectors, warps, cache lines and banks prefer the ones that they divide: 40 behaves like 32 and 48 rather than
like 39 and 41, which leave rests. How wide these are is not known beforehand. Were each power of two up to
:data:`WIDEST` as probable as any other, a loss would fall by the same amount with each factor of two that a
number has. That is what is learned: one number for each range, of either sign, and next to nothing where
roundness does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.search.models.gaussian_process import Floats, Integers
from autotune.space.knobs import IntegerRange
from autotune.space.knobs.knob import Knob

WIDEST = 8
"""Numbers that it divides are as round as any, beside the unit of the range."""


@dataclass(frozen=True)
class RoundRange:
    """A range of integers, some of which are rounder than others: its numbers over the largest power of two
    that divides them all, modulo :data:`WIDEST`."""

    column: int
    """Where its cell index stands in a row."""
    first: int
    step: int

    def roundness(self, cells: Integers) -> Floats:
        """From -1/2, for what is odd, to 1/2; 0 where the knob does not exist. Shape (n,)."""
        rests = (self.first + self.step * cells[:, self.column]) % WIDEST
        return np.where(cells[:, self.column] < 0, 0.0, _ROUNDNESS[rests])


def round_ranges(knobs: Sequence[Knob]) -> list[RoundRange]:
    """Of knobs with cells. On a ``log2`` scale there are powers of two alone."""
    found, column = [], 0
    for knob in knobs:
        if isinstance(knob, IntegerRange) and knob.scale != "log2" and len(knob.cells[0].values) > 1:
            unit = math.gcd(knob.low, knob.step)
            unit &= -unit  # the largest power of two that divides it
            found.append(RoundRange(column, knob.low // unit % WIDEST, knob.step // unit % WIDEST))
        column += len(knob.cells)
    return found


def _divisions(rest: int) -> int:
    """How often two divides a number that leaves this rest, as far as it counts."""
    return (rest & -rest).bit_length() - 1 if rest else WIDEST.bit_length() - 1


_ROUNDNESS: Floats = np.array([_divisions(rest) / _divisions(0) - 0.5 for rest in range(WIDEST)])
"""By rest."""
