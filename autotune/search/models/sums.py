"""How a demand grows with the knobs where it is a sum: what is always there, and what each knob adds.

A training needs memory for its model and its optimiser, and so much more for each sample; how much that is
depends on what is kept of a sample. So the plain demand is linear in the plain values of the knobs and in
products of two or more of them, with normal weights (Rasmussen and Williams 2006, section 2.1). Its
logarithm, which :mod:`~autotune.search.models.trend` models, bends where the constant part no longer
dominates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, pairwise, product

import numpy as np

from autotune.search.models.arrays import Floats, Integers
from autotune.search.models.features import GONE, Features
from autotune.search.models.gaussian_process import LARGEST_CODE, Inputs
from autotune.space.knobs import FloatRange, IntegerRange
from autotune.space.knobs.knob import Knob

CHOICE = 0.7
"""The standard deviation of what a choice adds to a standardised demand."""
PAIR = 0.5
"""That of the weight of a product of two knobs, where it is 1 for the weight of each of them. For each
further knob of a product it is multiplied by this."""
MOST_PRODUCTS = 256
"""If products of so many knobs would make more than this, they are left out, and those of more knobs."""


class Sum:
    """The terms of the sum over the knobs of a space: a constant, some for each knob, and products.

    Numbers are standardised over the configurations whose demand is known, so that the weights that explain
    it are about 1 for standardised targets. A list of numbers has their logarithms as terms as well, for
    knobs that divide a demand. Permutations, and choices among very many values, have no part.
    """

    def __init__(self, features: Features, known: Inputs, unseen: float = 1.0, factors: int = 2) -> None:
        """``known``: where the demand is known; ``unseen``: the weight of what never varied there.

        ``factors``: of how many knobs there are products, at most.
        """
        cells = [(knob, i) for knob in features.discrete for i in range(len(knob.cells))]
        first = known.smooth.shape[1] - len(features.floating)
        found = [_of_cell(knob, i, column) for column, (knob, i) in enumerate(cells)]
        found += [_of_float(knob, first + i) for i, knob in enumerate(features.floating)]
        self._parts = [_standardised(part, known, unseen) for part in found if part is not None]
        sizes = [part.coordinates(known).shape[1] for part in self._parts]
        self._products = list(_products(sizes, factors))

    def __call__(self, inputs: Inputs) -> Floats:
        """Shape (n, terms), each for a weight that is standard normal."""
        parts = [part(inputs) for part in self._parts]
        terms = np.nan_to_num(np.hstack([np.ones((len(inputs), 1)), *parts]))
        return np.hstack([terms, *(_multiplied(terms, columns) for columns in self._products)])


@dataclass(frozen=True)
class _Part:
    """What one knob adds: its coordinates (n, several), NaN where it does not exist."""

    coordinates: Callable[[Inputs], Floats]
    ends: Floats | None
    """Coordinates of a number's first and last value; ``None`` of a choice, which is taken as it is."""
    middle: Floats | float = 0.0
    scale: Floats | float = 1.0

    def __call__(self, inputs: Inputs) -> Floats:
        return np.asarray((self.coordinates(inputs) - self.middle) / self.scale)


def _standardised(part: _Part, known: Inputs, unseen: float) -> _Part:
    """``part``, less its mean over what is ``known`` and divided by its standard deviation there.

    Where it had only one value there, it is scaled so that its whole range counts as ``unseen``.
    """
    if part.ends is None:
        return part
    seen = part.coordinates(known)
    there = seen[~np.isnan(seen).any(axis=1)]
    middle, scale = (there.mean(axis=0), there.std(axis=0)) if len(there) else (part.ends[0], 0.0)
    reach = np.maximum(np.abs(part.ends - middle).max(axis=0), 1e-300)
    return replace(part, middle=middle, scale=np.where(scale > 1e-9 * reach, scale, reach / unseen))


def _of_cell(knob: Knob, cell: int, column: int) -> _Part | None:
    """The part of one cell of a knob, whose codes stand in a column."""
    values = knob.cells[cell].values
    if knob.distinct or (not knob.ordered and len(values) > LARGEST_CODE):
        return None
    numbers = isinstance(values, range) or all(isinstance(v, (int, float)) for v in values)
    logarithms = (
        numbers
        and not isinstance(knob, IntegerRange)
        and all(isinstance(v, (int, float)) and v > 0 for v in values)
    )

    def coordinates(codes: list[int]) -> Floats:
        if not knob.ordered:
            return CHOICE * np.eye(len(values))[codes]
        plain = np.array([float(values[i]) if numbers else i for i in codes])[:, None]  # type: ignore[arg-type]
        return np.hstack([plain, np.log(plain)]) if logarithms else plain

    def of(inputs: Inputs) -> Floats:
        different, rows = np.unique(inputs.codes[:, column], return_inverse=True)
        found = coordinates(np.maximum(different, 0).tolist())
        return np.where(different[:, None] == GONE, np.nan, found)[rows]

    if not knob.ordered:
        return _Part(of, None)
    return _Part(of, coordinates([0, len(values) - 1]))


def _of_float(knob: Knob, column: int) -> _Part:
    """The part of a continuous knob, whose position from 0 to 1 stands in a column of the smooth features."""
    assert isinstance(knob, FloatRange)

    def of(inputs: Inputs) -> Floats:
        return knob.numbers(inputs.smooth[:, [column]])

    return _Part(of, np.array([[knob.low], [knob.high]]))


def _products(sizes: Sequence[int], factors: int) -> Iterator[Integers]:
    """The columns, after the constant's, of products of coordinates of different parts; (n, order) each.

    First those of two, then of more, up to so many ``factors`` and while all together are few.
    """
    ends = np.cumsum([1, *sizes]).tolist()
    columns = [range(first, last) for first, last in pairwise(ends)]
    many = 0
    for order in range(2, min(factors, len(sizes)) + 1):
        many += _how_many(sizes, order)
        if many > MOST_PRODUCTS:
            return
        found = [one for parts in combinations(columns, order) for one in product(*parts)]
        yield np.array(found, dtype=int)


def _how_many(sizes: Sequence[int], order: int) -> int:
    """How many products there are, without making them: an elementary symmetric polynomial."""
    counts = [1] + [0] * order
    for size in sizes:
        for k in range(order, 0, -1):
            counts[k] += size * counts[k - 1]
    return counts[order]


def _multiplied(terms: Floats, columns: Integers) -> Floats:
    """The products of the terms (n, terms) at these ``columns`` (products, order); shape (n, products)."""
    value = reduce(np.multiply, (terms[:, column] for column in columns.T))
    return np.asarray(PAIR ** (columns.shape[1] - 1) * value)
