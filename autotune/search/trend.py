"""How a demand grows with the knobs before anything is measured: as a product of powers.

Memory, registers and shared memory are made of sizes: the sides of a tile, a batch, a width, a number of
stages. So the logarithm of a demand is about a sum of exponents times logarithms of the knobs: a linear model
with a normal prior on its weights (Rasmussen and Williams 2006, sections 2.1 and 2.7), which a few
measurements settle. What it leaves unexplained is for the other parts of the covariance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from autotune.search.features import GONE, SMALL_TABLE, Features
from autotune.search.gaussian_process import LARGEST_CODE, Floats, Inputs, Integers
from autotune.space.configuration import Value
from autotune.space.knob import Knob

EXPONENT = 1.0
"""Of a numeric knob, to either side of 0: most sizes count once, or not at all."""
CHOICE = 0.7
"""What one choice in the place of another makes of the logarithm of a demand: half as much, or twice."""


class Trend:
    """The terms of the trend over the knobs of a space.

    A continuous knob counts as a factor of e over its range. Permutations, and choices among so many that
    they are not compared in one-hot form, have no part in the trend.
    """

    def __init__(self, features: Features) -> None:
        self._floating = len(features.floating)
        cells = ((knob, i) for knob in features.discrete for i in range(len(knob.cells)))
        self._terms = [_terms(knob, i) for knob, i in cells]

    def __call__(self, inputs: Inputs) -> Floats:
        """Shape (n, terms), each for a weight that is standard normal."""
        parts = [terms(inputs.codes[:, i]) for i, terms in enumerate(self._terms)]
        parts.append(inputs.smooth[:, inputs.smooth.shape[1] - self._floating :] - 0.5)
        return np.hstack(parts)


def _terms(knob: Knob, cell: int) -> Callable[[Integers], Floats]:
    """From the codes (n,) of a knob's cell to its terms (n, ...); 0 where the knob does not exist."""
    values = knob.cells[cell].values
    if knob.distinct or (not knob.ordered and len(values) > LARGEST_CODE):
        return lambda codes: np.zeros((len(codes), 0))
    if not knob.ordered:
        coded = np.vstack([CHOICE / math.sqrt(2.0) * np.eye(len(values)), np.zeros(len(values))])
        return lambda codes: coded[codes]
    if len(values) > SMALL_TABLE:
        return lambda codes: np.where(codes == GONE, 0.0, _powers(values, codes))[:, None]
    table = np.append(_powers(values, np.arange(len(values))), 0.0)[:, None]
    return lambda codes: table[codes]


def _powers(values: Sequence[Value], codes: Integers) -> Floats:
    """The logarithms of some values, about the middle between the first and the last.

    Of their ranks from 1 on, where not all are positive numbers.
    """
    ends = np.array([0, len(values) - 1])
    if all(_is_positive(values[int(i)]) for i in (*ends, *codes)):
        numbers, outer = (np.array([values[int(i)] for i in rows], float) for rows in (codes, ends))
    else:
        numbers, outer = codes + 1.0, ends + 1.0
    return np.asarray(EXPONENT * (np.log(numbers) - np.log(outer).mean()))


def _is_positive(value: Value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
