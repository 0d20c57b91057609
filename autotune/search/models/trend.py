"""How a demand grows with the knobs before anything is measured: as a product of powers.

Memory, registers and shared memory are made of sizes: the sides of a tile, a batch, a width, a number of
stages. So the logarithm of a demand is about a sum of exponents times logarithms of the knobs: a linear model
with a normal prior on its weights (Rasmussen and Williams 2006, sections 2.1 and 2.7), which a few
measurements settle. What it leaves unexplained is for the other parts of the covariance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.search.models.arrays import Floats, Integers
from autotune.search.models.features import GONE, SMALL_TABLE, Features
from autotune.search.models.gaussian_process import LARGEST_CODE, Inputs
from autotune.space.configuration import Value
from autotune.space.knobs.knob import Knob

CHOICE = 0.7
"""How much one choice instead of another changes the logarithm of a demand: to half as much, or twice."""


@dataclass(frozen=True)
class Exponents:
    """What is expected of the exponent of a numeric knob: a normal distribution."""

    mean: float
    spread: float


ANY = Exponents(0.0, 1.0)
"""For a product of which nothing is known."""
OF_SIZES = Exponents(0.5, 0.7)
"""For a demand. Most sizes are a factor of all of it (an exponent of 1), of a part (less) or of none (0). A
few, such as how many parts a training recomputes, lower it."""
EXACT = 2**53
"""Every whole number up to it is a float."""


class Trend:
    """The terms of the trend over the knobs of a space.

    A continuous knob counts as a factor of e over its range. Permutations, and choices among so many that
    they are not compared in one-hot form, have no part in the trend.
    """

    def __init__(self, features: Features, exponents: Exponents = ANY) -> None:
        self._exponents = exponents
        self._floating = len(features.floating)
        cells = [(knob, i) for knob in features.discrete for i in range(len(knob.cells))]
        self._terms = [_terms(knob, i, exponents.spread) for knob, i in cells]
        self._sizes = [column for column, (knob, i) in enumerate(cells) if _has_numbers(knob, i)]

    def expected(self, inputs: Inputs) -> Floats:
        """The expected logarithm of each demand (n,), relative to the demand where all sizes are in the
        middle."""
        ratio = self._exponents.mean / self._exponents.spread
        sizes = [self._terms[column](inputs.codes[:, column])[:, 0] for column in self._sizes]
        return np.asarray(ratio * sum(sizes, np.zeros(len(inputs))))

    def __call__(self, inputs: Inputs) -> Floats:
        """Shape (n, terms), each for a weight that is standard normal about what is expected."""
        parts = [terms(inputs.codes[:, i]) for i, terms in enumerate(self._terms)]
        parts.append(inputs.smooth[:, inputs.smooth.shape[1] - self._floating :] - 0.5)
        return np.hstack(parts)


def _has_numbers(knob: Knob, cell: int) -> bool:
    if knob.distinct or not knob.ordered:
        return False
    values = knob.cells[cell].values
    return isinstance(values, range) or all(isinstance(value, (int, float)) for value in values)


def _terms(knob: Knob, cell: int, spread: float) -> Callable[[Integers], Floats]:
    """From the codes (n,) of a knob's cell to its terms (n, ...); 0 where the knob does not exist."""
    values = knob.cells[cell].values
    if knob.distinct or (not knob.ordered and len(values) > LARGEST_CODE):
        return lambda codes: np.zeros((len(codes), 0))
    if not knob.ordered:
        coded = np.vstack([CHOICE / math.sqrt(2.0) * np.eye(len(values)), np.zeros(len(values))])
        return lambda codes: coded[codes]
    if len(values) > SMALL_TABLE:
        return lambda codes: np.where(codes == GONE, 0.0, spread * _powers(values, codes))[:, None]
    table = np.append(spread * _powers(values, np.arange(len(values))), 0.0)[:, None]
    return lambda codes: table[codes]


def _powers(values: Sequence[Value], codes: Integers) -> Floats:
    """The logarithms of some values, less the mean of those of the first and the last.

    Ranks (from 1 on) are used instead of the values if these or the ends are not all positive numbers.
    """
    ends = np.array([0, len(values) - 1])
    if isinstance(values, range) and min(values[0], values[-1]) > 0 and max(values[0], values[-1]) <= EXACT:
        numbers, outer = (values.start + values.step * (rows % len(values)) for rows in (codes, ends))
    elif all(_is_positive(values[int(i)]) for i in (*ends, *codes)):
        numbers, outer = (np.array([values[int(i)] for i in rows], float) for rows in (codes, ends))
    else:
        numbers, outer = codes + 1.0, ends + 1.0
    return np.asarray(np.log(numbers) - np.log(outer).mean())


def _is_positive(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
