"""The feasible set: every configuration that the knobs, their conditions and the constraints allow.

The set is a product of independent factors (:mod:`autotune.space.feasible_set.factoring`), each of which is
counted without being listed (:mod:`autotune.space.feasible_set.layering`). The cost of that grows with the
number of distinct states that the constraints tell apart, not with the Cartesian product. A factor with too
many states is bounded and estimated instead, and still sampled uniformly.

Configurations are numbered: ``s[i]`` and ``s.index(values)`` are inverse to each other, and iteration
follows the numbers. Numbers are the same in every process; they change when knobs or constraints do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from autotune.errors import AutotuneError, InputError
from autotune.space.configuration import Configuration, Value
from autotune.space.feasible_set.columns import SAFE_INT, Array
from autotune.space.feasible_set.factoring import factorise
from autotune.space.feasible_set.factors import Estimate, Factor, RowsFactor, RuledFactor
from autotune.space.feasible_set.layering import LIMIT
from autotune.space.feasible_set.parts import GONE
from autotune.space.knobs.knob import Knob
from autotune.space.language.rule import Rule

_CHUNK = 4096
"""Configurations that iteration decodes at a time."""


class FeasibleSet:
    """The configurations over discrete knobs that satisfy the constraints, as plain dictionaries.

    A knob that does not exist (its ``when`` is false) is absent from the dictionary. Constraints and
    conditions mention no other knobs than these: :class:`Space` keeps apart what depends on a continuous one.

    ``rows``: the only configurations that exist; those that violate a constraint are dropped.
    ``limit``: a factor is bounded instead of counted if a layer of its diagram would have more edges, or all
    of them three times as many (to save memory and time).
    """

    def __init__(
        self,
        knobs: Sequence[Knob],
        constraints: Sequence[Rule] = (),
        rows: Sequence[Mapping[str, Value]] | None = None,
        limit: int = LIMIT,
    ) -> None:
        self.knobs = tuple(knobs)
        self.constraints = tuple(constraints)
        self._by_name = {knob.name: knob for knob in self.knobs}
        self.cells: tuple[str, ...] = tuple(cell.name for knob in self.knobs for cell in knob.cells)
        """The names of the columns of :meth:`matrix`: one per cell (a permutation has one per position)."""
        self._columns = _columns(self.knobs)
        self._numbers: dict[str, int | None] = {}
        self.factors: tuple[Factor, ...] = (
            tuple(factorise(self.knobs, self.constraints, limit))
            if rows is None
            else (RowsFactor(tuple(range(len(self.cells))), self._listed(rows)),)
        )

    # --- how many --------------------------------------------------------------------------------

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """How many configurations there are at least and at most; equal if they were counted."""
        lows, highs = (
            zip(*(factor.bounds for factor in self.factors), strict=True) if self.factors else ((), ())
        )
        return math.prod(lows), math.prod(highs)

    @property
    def size(self) -> int | None:
        """How many configurations there are; ``None`` where they are only bounded."""
        low, high = self.bounds
        return low if low == high else None

    @cached_property
    def estimate(self) -> Estimate:
        """About how many configurations there are; exact if they were counted."""
        parts = [factor.estimate for factor in self.factors]
        inexact = sum(part.confidence < 1 for part in parts)
        return Estimate(
            math.prod(part.value for part in parts),
            math.prod(part.low for part in parts),
            math.prod(part.high for part in parts),
            1.0 - sum(1.0 - part.confidence for part in parts) if inexact else 1.0,
        )

    def __len__(self) -> int:
        return self._counted("counted")

    def __bool__(self) -> bool:
        return self.bounds[1] > 0

    def _counted(self, what: str) -> int:
        size = self.size
        if size is None:
            low, high = self.bounds
            about = Decimal(self.estimate.value)  # a float ends at 1.8e308
            raise AutotuneError(
                f"the feasible set is too large to be {what}: it holds between {low:,} and {high:,} "
                f"configurations, about {about:.3g}. It can be sampled."
            )
        return size

    # --- which -----------------------------------------------------------------------------------

    def __contains__(self, values: object) -> bool:
        if not isinstance(values, Mapping):
            return False
        try:
            row = self._row(values)
        except ValueError:
            return False
        if self.size is None:
            return self._allows(values)
        return all(int(factor.locate(row)[0]) >= 0 for factor in self.factors)

    def __getitem__(self, index: int) -> dict[str, Value]:
        size = self._counted("indexed")
        if not -size <= index < size:
            raise IndexError(f"the feasible set has {size:,} configurations: there is no number {index:,}")
        return self.configurations(self.matrix([index % size]))[0]

    def index(self, values: Mapping[str, Value]) -> int:
        """The number of a configuration. ``ValueError`` where it is not in the set."""
        self._counted("indexed")
        try:
            row = self._row(values)
        except ValueError as error:
            raise ValueError(f"{dict(values)!r} is not a configuration: {error}") from None
        index = 0
        for factor in self.factors:
            place = int(factor.locate(row)[0])
            if place < 0:
                raise ValueError(f"{dict(values)!r} is not in the feasible set")
            index = index * factor.bounds[1] + place
        return index

    def number(self, configuration: Configuration) -> int | None:
        """As :meth:`index`; ``None`` where it is not in the set.

        Kept, since a search that nears the end of a set asks for those of all its trials, each time.
        """
        if configuration.hash not in self._numbers:
            try:
                self._numbers[configuration.hash] = self.index(configuration)
            except ValueError:
                self._numbers[configuration.hash] = None
        return self._numbers[configuration.hash]

    def __iter__(self) -> Iterator[dict[str, Value]]:
        high = math.prod(self._candidates)
        for start in range(0, high, _CHUNK):
            indices = _span(start, min(start + _CHUNK, high), high)
            matrix, good = self._write(indices)
            yield from self.configurations(matrix[good])

    def sample(self, rng: np.random.Generator, n: int = 1) -> list[dict[str, Value]]:
        """``n`` configurations, each drawn uniformly and independently (so there may be repeats).

        If the constraints are too complex to be counted and hardly any draw satisfies them, those that
        several million draws have found are repeated.
        """
        return self.configurations(self.sample_matrix(rng, n))

    # --- many at once ------------------------------------------------------------------------------

    def matrix(self, indices: Sequence[int] | Array | None = None) -> NDArray[np.int64]:
        """The configurations at ``indices`` (``None``: all) as indices of cell values.

        Shape (configurations, :attr:`cells`). A cell whose knob does not exist is -1.
        """
        size = self._counted("listed")
        if indices is None:
            indices = _span(0, size, size)
        wide = np.int64 if size < SAFE_INT else object
        return self._write(np.asarray(indices, dtype=wide))[0]

    def sample_matrix(self, rng: np.random.Generator, n: int) -> NDArray[np.int64]:
        """As :meth:`sample`, in the form of :meth:`matrix`."""
        if not self:
            raise InputError("no configuration satisfies the constraints: there is nothing to draw from")
        matrix = np.empty((n, len(self.cells)), dtype=np.int64)
        for factor in self.factors:
            factor.write_sample(rng, matrix)
        return matrix

    def configurations(self, matrix: NDArray[np.int64]) -> list[dict[str, Value]]:
        """The configurations that the rows of such a matrix stand for."""
        found: list[dict[str, Value]] = [{} for _ in range(len(matrix))]
        for knob, columns in zip(self.knobs, self._columns, strict=True):
            for values, row in zip(found, matrix[:, columns].tolist(), strict=True):
                if row[0] != GONE:
                    values[knob.name] = knob.join(row)
        return found

    # --- inside ------------------------------------------------------------------------------------

    @cached_property
    def _candidates(self) -> list[int]:
        return [factor.bounds[1] for factor in self.factors]

    def _write(self, indices: Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The candidates at these numbers, and which of them are feasible (all, if the set was counted)."""
        matrix = np.zeros((len(indices), len(self.cells)), dtype=np.int64)
        good = np.ones(len(indices), dtype=bool)
        left = indices
        for factor, size in zip(self.factors[::-1], self._candidates[::-1], strict=True):
            place, left = left % size, left // size
            if size < SAFE_INT:
                place = place.astype(np.int64)
            if isinstance(factor, RuledFactor) and factor.size is None:
                good &= factor.candidates(place, matrix)
            else:
                factor.write(place, matrix)
        return matrix, good

    def _allows(self, values: Mapping[str, Value]) -> bool:
        """Whether exactly the right knobs have values, and all constraints hold."""
        for knob in self.knobs:
            if knob.when is not None and knob.when.holds(values) != (knob.name in values):
                return False
        return all(rule.holds(values) for rule in self.constraints)

    def _row(self, values: Mapping[str, Value]) -> NDArray[np.int64]:
        """A configuration as a matrix of one row. Raises ``ValueError`` if it is none."""
        unknown = values.keys() - self._by_name.keys()
        if unknown:
            raise ValueError(f"there is no knob {min(unknown)!r}")
        row: list[int] = []
        for knob in self.knobs:
            if knob.name in values:
                row += knob.split(knob.canonical(values[knob.name]))
            elif knob.when is None:
                raise ValueError(f"knob {knob.name!r} has no value")
            else:
                row += [GONE] * len(knob.cells)
        return np.array([row], dtype=np.int64).reshape(1, len(self.cells))

    def _listed(self, rows: Sequence[Mapping[str, Value]]) -> NDArray[np.int64]:
        kept = [self._row(row)[0] for row in rows if all(rule.holds(row) for rule in self.constraints)]
        different = list({row.tobytes(): row for row in kept}.values())
        return np.array(different, dtype=np.int64).reshape(-1, len(self.cells))


def _columns(knobs: Sequence[Knob]) -> list[slice]:
    ends = np.cumsum([len(knob.cells) for knob in knobs]).tolist()
    return [slice(end - len(knob.cells), end) for knob, end in zip(knobs, ends, strict=True)]


def _span(start: int, stop: int, size: int) -> Array:
    """The indices from ``start`` to ``stop`` of a set of ``size``."""
    if size < SAFE_INT:
        return np.arange(start, stop)
    return np.fromiter(range(start, stop), dtype=object, count=stop - start)
