"""Exhaustive search in an order that spreads: stopping it early leaves an even sample."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np

from autotune.search.candidates.assemble import assemble, at
from autotune.search.contract import Problem, Proposal, Strategy
from autotune.search.models.arrays import Floats, Integers
from autotune.space.configuration import Configuration, Value
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space

GOLDEN = 618_033_988_749_894_848_204_586_834_365, 10**30
"""The golden section as a fraction, for numbers too large for a float."""
MAX_LEVEL = 40
"""How often a continuous range is halved; beyond that neighbouring points are nearly the same float."""
STRIDES = 32
"""How many multiples of the golden section are considered for a stride."""
HEADS = (16, 64)
"""The stride is chosen by how well its first configurations are spread: so many of them."""
PATIENCE = 20_000
"""After so many infeasible or repeated points in a row the rest is drawn at random."""


class Grid(Strategy):
    """Walks through all feasible configurations with a stride near a multiple of the golden section.

    With that stride, modulo the number of configurations, a walk is the most evenly spread of all that have
    one stride, however long it is (three-distance theorem; Knuth, The Art of Computer Programming, vol. 3,
    section 6.4). The stride is made coprime to the number of configurations, so the walk visits each exactly
    once, however many there are, without listing them. The seed plays no part.

    What is spread evenly over the numbers of the configurations need not be so over each knob, or over the
    positions of an order: some strides are nearly multiples of the period with which a knob's values come
    back. So of several multiples of the golden section the one is taken whose first configurations have least
    in common (:func:`alikeness`).

    Continuous knobs are crossed with the discrete ones on a grid that refines: first the ends and the
    middle of each range on its scale, then the middles between those, and so on. A space that can only
    be bounded, not counted, has no index to walk; it is drawn from at random.
    """

    name: ClassVar[str] = "grid"

    def __init__(self, problem: Problem, seed: int = 0) -> None:
        super().__init__(problem, seed)
        self._walk = _walk(problem.space)
        self._passed: set[str] = set()
        """The hashes of what the walk has passed. In a resumed search it begins anew, and meets again what
        was tried before: that is no repetition."""

    def propose(self, n: int, rng: np.random.Generator) -> Iterator[Proposal]:
        skipped = 0
        for configuration, level in self._walk:
            if configuration is None or configuration.hash in self._passed:
                skipped += 1
                if skipped > PATIENCE:
                    self._walk = iter(())
                    break
                continue
            skipped = 0
            self._passed.add(configuration.hash)
            if configuration.hash not in self.taken:
                yield Proposal(configuration, {"strategy": self.name, "kind": "grid", "level": level})
        for configuration in self.newcomers(rng):
            yield Proposal(configuration, {"strategy": self.name, "kind": "uniform"})


def _walk(space: Space) -> Iterator[tuple[Configuration | None, int]]:
    """Every point of the grid once, with its level of refinement; ``None`` for an infeasible one."""
    if space.feasible.size is None:
        return
    riding = _riding(space)
    if not riding:
        for index in _Lattice(space, 0, 0).walk():
            yield space.configuration(space.feasible[index]), 0
        return
    for level in range(1, MAX_LEVEL):
        lattice = _Lattice(space, len(riding), level)
        for point in lattice.walk():
            index, ticks = lattice.split(point)
            if level == 1 or any(tick % 2 for tick in ticks):  # else a coarser grid has it
                wish = dict(space.feasible[index])
                for knob, tick in zip(riding, ticks, strict=True):
                    wish[knob.name] = _at(knob, tick / 2**level)
                yield assemble(space, wish), level


def _riding(space: Space) -> list[Knob]:
    """The knobs with at most one cell that are not in the feasible set: continuous ranges, and knobs whose
    existence depends on one."""
    counted = {knob.name for knob in space.feasible.knobs}
    return [knob for knob in space.knobs if knob.name not in counted and len(knob.cells) <= 1]


def _at(knob: Knob, fraction: float) -> Value:
    if not knob.cells:
        return at(knob, fraction)
    count = len(knob.cells[0].values)
    return knob.join([min(int(fraction * count), count - 1)])


@dataclass(frozen=True)
class _Lattice:
    """The feasible set crossed with ``riding`` ranges of 2^``level`` + 1 ticks each, numbered from 0."""

    space: Space
    riding: int
    level: int

    @property
    def size(self) -> int:
        return self.combinations * int((2**self.level + 1) ** self.riding)

    @property
    def combinations(self) -> int:
        """How many configurations the feasible set has. Not by ``len``, which ends at 2^63."""
        size = self.space.feasible.size
        assert size is not None, "a set that is only bounded has no index to walk"
        return size

    def split(self, point: int) -> tuple[int, list[int]]:
        """The index in the feasible set, and the ticks, of a point."""
        rest, index = divmod(point, self.combinations)
        ticks = []
        for _ in range(self.riding):
            rest, tick = divmod(rest, 2**self.level + 1)
            ticks.append(tick)
        return index, ticks

    def walk(self) -> Iterator[int]:
        """Every point once, in the order that spreads best from the beginning."""
        knobs = self.space.feasible.knobs
        cells = [(knob.ordered, len(cell.values)) for knob in knobs for cell in knob.cells]
        cells += [(True, 2**self.level + 1)] * self.riding

        def worth(multiple: int) -> float:
            first = [self.split(point) for point in islice(strided(self.size, multiple), HEADS[-1])]
            discrete = self.space.feasible.matrix([index for index, _ in first])
            ticks = np.array([ticks for _, ticks in first], dtype=np.int64).reshape(len(first), self.riding)
            return alikeness(np.hstack([discrete, ticks]), cells)

        return strided(self.size, min(range(1, STRIDES + 1), key=worth))


def strided(size: int, multiple: int = 1) -> Iterator[int]:
    """Each of ``range(size)`` once, beginning in the middle, and spread evenly wherever one stops."""
    stride = max(1, size * (multiple * GOLDEN[0] % GOLDEN[1]) // GOLDEN[1])
    while math.gcd(stride, size) != 1:
        stride += 1
    position = size // 2
    for _ in range(size):
        yield position
        position = (position + stride) % size


def alikeness(rows: Integers, cells: Sequence[tuple[bool, int]]) -> float:
    """How much the first of ``rows`` have in common, on average over pairs of them; low is well spread.

    Two rows are as alike as the number of cells that are equal; in an ordered cell, being near counts
    in part. The mean of the squares is least where all values, and all pairs of values, occur about
    equally often (minimum moment aberration; Xu, Statistica Sinica 13, 2003). ``cells`` says of each column
    whether it has an order, and how many values.
    """
    alike = np.zeros((len(rows), len(rows)))
    for column, (ordered, count) in zip(rows.T, cells, strict=True):
        apart = np.abs(column[:, None] - column[None, :])
        alike += np.maximum(1.0 - apart / (count - 1), 0.0) if ordered and count > 2 else apart == 0
    return float(sum(_mean_square(alike[:head, :head]) for head in HEADS))


def _mean_square(alike: Floats) -> float:
    pairs = alike[np.triu_indices(len(alike), 1)]
    return float((pairs**2).mean()) if len(pairs) else 0.0
