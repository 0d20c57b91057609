"""Independent factors of the feasible set: groups of cells that no rule ties to other groups."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from autotune.errors import InputError
from autotune.space.feasible_set.columns import SAFE_INT, Array, Column
from autotune.space.feasible_set.diagram import Diagram, Rows
from autotune.space.feasible_set.frontier import evaluate
from autotune.space.feasible_set.layering import Puzzle
from autotune.space.feasible_set.parts import CellPart, Part
from autotune.space.feasible_set.terms import Term

_BATCH = 1 << 14
"""Draws from a relaxed set at a time."""
_MOST_DRAWS = 4_000_000
"""After so many draws what was found is repeated; where nothing was found, sampling gives up."""
_MOST_VALUES = 40_000_000
"""The same limit in values of variables: a draw of sixty knobs takes six times as long as one of ten."""
_CONFIDENCE = 0.99
"""How sure it is that the number of configurations lies within the bounds of its estimate."""
_ESTIMATE_DRAWS, _ESTIMATE_LEAST = 20_000, 2_000
"""At most and at least so many draws make an estimate ..."""
_ESTIMATE_VALUES = 1_000_000
"""... between the two as many as set this many variables, since numbers past 64 bits are slow."""


@dataclass(frozen=True)
class Estimate:
    """About how many configurations there are, in whole numbers, which may be larger than any float.

    ``value`` is unbiased, save for rounding and that it is never less than what is proved to be there. The
    truth lies between ``low`` and ``high`` with probability ``confidence`` (1: it is exact, or proved).
    """

    value: int
    low: int
    high: int
    confidence: float


class Factor(ABC):
    """A set of assignments to some cells. ``cells`` are their numbers in the whole space."""

    cells: tuple[int, ...]

    @property
    @abstractmethod
    def bounds(self) -> tuple[int, int]:
        """How many assignments there are at least and at most; equal if they were counted."""

    @property
    def size(self) -> int | None:
        """How many assignments there are; ``None`` where they are only bounded."""
        low, high = self.bounds
        return low if low == high else None

    @property
    def estimate(self) -> Estimate:
        """About how many assignments there are."""
        low, high = self.bounds
        return Estimate(high, low, high, 1.0)

    @abstractmethod
    def write(self, indices: Array, matrix: Rows) -> None:
        """Write the assignments at these indices into their columns of ``matrix`` (all cells)."""

    @abstractmethod
    def locate(self, matrix: Rows) -> Array:
        """The index of each row's assignment, or -1 where it is not one."""

    def write_sample(self, rng: np.random.Generator, matrix: Rows) -> None:
        """Write an assignment into every row, each drawn uniformly.

        They are independent, unless drawing independent ones would take for ever.
        """
        self.write(draw(rng, self.bounds[1], len(matrix)), matrix)


class FreeFactor(Factor):
    """Cells that no rule ties at all: counted by multiplication, never listed."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.cells = part.cells
        self._size = len(part.values) if isinstance(part, CellPart) else sum(part.weights[0])

    @property
    def bounds(self) -> tuple[int, int]:
        return self._size, self._size

    def write(self, indices: Array, matrix: Rows) -> None:
        alone = isinstance(self.part, CellPart)
        numbers = indices[:, None]
        self.part.decode(numbers if alone else np.zeros(numbers.shape, np.int64), numbers, matrix)

    def locate(self, matrix: Rows) -> Array:
        wide = np.int64 if self._size < SAFE_INT else object
        rows, members = np.zeros((len(matrix), 1), np.int64), np.zeros((len(matrix), 1), wide)
        self.part.encode(matrix, rows, members)
        return (rows if isinstance(self.part, CellPart) else members)[:, 0]


class RowsFactor(Factor):
    """Exactly the listed assignments."""

    def __init__(self, cells: tuple[int, ...], rows: Rows) -> None:
        self.cells = cells
        self.rows = rows

    @property
    def bounds(self) -> tuple[int, int]:
        return len(self.rows), len(self.rows)

    def write(self, indices: Array, matrix: Rows) -> None:
        matrix[:, list(self.cells)] = self.rows[indices.astype(np.int64)]

    @cached_property
    def _places(self) -> dict[bytes, int]:
        return {row.tobytes(): place for place, row in enumerate(self.rows)}

    def locate(self, matrix: Rows) -> Array:
        rows = np.ascontiguousarray(matrix[:, list(self.cells)])
        return np.array([self._places.get(row.tobytes(), -1) for row in rows], dtype=np.int64)


class RuledFactor(Factor):
    """Cells tied by rules, as a counted decision diagram; a relaxed one if that would be too wide.

    A relaxed diagram holds a superset. To sample the factor uniformly, the diagram is sampled, and the
    assignments that violate a rule are rejected.
    """

    def __init__(self, parts: Sequence[Part], puzzle: Puzzle, diagram: Diagram) -> None:
        self.parts = tuple(parts)
        self.puzzle = puzzle
        self.diagram = diagram
        self.cells = tuple(cell for part in parts for cell in part.cells)

    @property
    def bounds(self) -> tuple[int, int]:
        return self.diagram.certain, self.diagram.size

    @cached_property
    def estimate(self) -> Estimate:
        low, high = self.bounds
        if low == high:
            return super().estimate
        draws = min(_ESTIMATE_DRAWS, _ESTIMATE_VALUES // len(self.puzzle.weights))
        indices = draw(np.random.default_rng(0), high, max(draws, _ESTIMATE_LEAST))
        good = int(self._satisfied(self.diagram.assignments(indices)[0]).sum())
        below, above = map(Fraction, wilson(good, len(indices)))
        least, most = max(low, math.floor(high * below)), max(low, min(high, math.ceil(high * above)))
        return Estimate(max(low, round(Fraction(high * good, len(indices)))), least, most, _CONFIDENCE)

    def write(self, indices: Array, matrix: Rows) -> None:
        if self.diagram.size <= len(indices) and self.diagram.listable:
            rows = self.diagram.all_assignments()[indices]
            members = np.zeros((len(indices), rows.shape[1]), np.int64)
        else:
            rows, members = self.diagram.assignments(indices)
        self._decode(rows, members, matrix)

    def candidates(self, indices: Array, matrix: Rows) -> NDArray[np.bool_]:
        """As :meth:`write`, for a relaxed diagram: only assignments that satisfy the rules are written.

        Returns which ones do.
        """
        rows, members = self.diagram.assignments(indices)
        good = self._satisfied(rows)
        written = matrix[good]
        self._decode(rows[good], members[good], written)
        matrix[good] = written
        return good

    def locate(self, matrix: Rows) -> Array:
        rows, members = self._encode(matrix)
        return self.diagram.indices(rows, members)

    def write_sample(self, rng: np.random.Generator, matrix: Rows) -> None:
        if self.size is not None:
            super().write_sample(rng, matrix)
            return
        done = tried = 0
        most = min(_MOST_DRAWS, _MOST_VALUES // len(self.puzzle.weights))
        while done < len(matrix):
            if tried >= most:
                self._repeat(rng, matrix, done, tried)
                return
            batch = min(max(1024, 4 * (len(matrix) - done)), _BATCH) if not tried else _BATCH
            rows, members = self.diagram.assignments(draw(rng, self.diagram.size, batch))
            good = np.flatnonzero(self._satisfied(rows))[: len(matrix) - done]
            self._decode(rows[good], members[good], matrix[done : done + len(good)])
            done, tried = done + len(good), tried + batch

    def _repeat(self, rng: np.random.Generator, matrix: Rows, done: int, tried: int) -> None:
        """Fill ``matrix`` by repeating its first ``done`` rows, since to draw the others might take hours.

        Each row by itself is still uniform.
        """
        if not done:
            raise InputError(
                f"the constraints are too tight to sample: of {tried:,} configurations drawn that satisfy "
                "some of them, none satisfies all. Narrow the knobs, or loosen a constraint."
            )
        again = rng.integers(done, size=len(matrix) - done)
        cells = list(self.cells)
        matrix[done:, cells] = matrix[again][:, cells]

    @cached_property
    def _alone(self) -> list[Mapping[Term, Column]]:
        puzzle = self.puzzle
        return [puzzle.alone(variable, puzzle.rules) for variable in range(len(puzzle.weights))]

    def _satisfied(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether each assignment satisfies every rule."""
        terms = self.puzzle.terms
        known = {
            term: column.take(rows[:, variable])
            for variable, alone in enumerate(self._alone)
            for term, column in alone.items()
        }
        good = np.ones(len(rows), dtype=bool)
        for rule in self.puzzle.rules:
            good &= evaluate(rule, known, terms).data.astype(bool)
        return good

    def _decode(self, rows: Rows, members: Array, matrix: Rows) -> None:
        for part in self.parts:
            part.decode(rows, members, matrix)

    def _encode(self, matrix: Rows) -> tuple[Rows, Array]:
        shape = (len(matrix), len(self.puzzle.weights))
        rows, members = np.zeros(shape, np.int64), np.zeros(shape, self.diagram.counts[0].dtype)
        for part in self.parts:
            part.encode(matrix, rows, members)
        return rows, members


def draw(rng: np.random.Generator, below: int, count: int) -> Array:
    """``count`` independent uniform integers in ``range(below)``, however large ``below`` is."""
    if below < SAFE_INT:
        return rng.integers(below, size=count)
    bits = below.bit_length()
    width = -(-bits // 8)
    drawn: list[int] = []
    while len(drawn) < count:  # rejects less than half of what it draws
        number = int.from_bytes(rng.bytes(width), "little") >> (8 * width - bits)
        if number < below:
            drawn.append(number)
    return np.fromiter(drawn, dtype=object, count=count)


def wilson(good: int, tried: int) -> tuple[float, float]:
    """Wilson's score interval of a probability (JASA 22, 1927), at :data:`_CONFIDENCE`.

    It is exactly 0 below where none was good, and 1 above where all were: a number of configurations beyond
    any float would make something of what rounding leaves.
    """
    share, z = good / tried, NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)
    centre = share + z * z / (2 * tried)
    spread = z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    scale = 1 + z * z / tried
    return (centre - spread) / scale if good else 0.0, (centre + spread) / scale if good < tried else 1.0
