"""What lies near some configurations of a space that cannot be listed: made by the hundred, as mere numbers.

A neighbour differs by one step in one knob. Along a continuous knob or a long range one step leads nowhere.
So knobs with a scale are also moved along it, a little or far: each alone, all together, and some together.
Of all these rows of numbers one becomes a configuration.

An order or an assignment of many items has more neighbours than can be made. Some are drawn, different ones
each time, and are rows of numbers too.

There are so few of each kind that the best is seldom a peak of the model. Where bounds are measured, or there
are many knobs, a search climbs on from there (:mod:`~autotune.search.candidates.climb`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from autotune.search.candidates.assemble import at, of_active
from autotune.search.candidates.sampled import groups
from autotune.search.candidates.scales import STEPS
from autotune.search.models.arrays import Flags, Floats, Integers
from autotune.search.models.features import SMALL_TABLE, Features
from autotune.search.models.gaussian_process import Inputs
from autotune.space.configuration import Configuration, Value
from autotune.space.knobs import IntegerRange
from autotune.space.knobs.items import Items
from autotune.space.knobs.knob import Knob
from autotune.space.steps import drawn_of, neighbours

SOME = 50
"""So often a random part of the knobs of a configuration is moved. Tries that differ in one knob say little
about the others; where readings are noisy, a try should teach about as many knobs as possible."""
ALONG = 100
"""So many steps are made from each configuration along the sliver that constraints leave of a space."""
MOVES = 8
"""So often a random part of the knobs is moved, of each configuration that a search climbs from."""
SHORT = 4
"""An ordered knob with up to this many values has a neighbour at nearly all of them."""


@dataclass(frozen=True)
class Rows:
    """Configurations as numbers: cell indices (n, cells), and places of the continuous knobs (n, knobs)."""

    cells: Integers
    floats: Floats

    def __len__(self) -> int:
        return len(self.cells)

    def taken(self, rows: Integers) -> Rows:
        return Rows(self.cells[rows], self.floats[rows])


class Scale:
    """A list of values in order, as places on a scale from 0 to 1."""

    def __init__(self, knob: Knob, column: int) -> None:
        self.knob = knob
        self.column = column
        """Where its cell index stands in a row."""
        values = knob.cells[0].values
        self._codes: Floats | None = None
        if len(values) <= SMALL_TABLE:
            self._codes = np.array([knob.position(value) for value in values])

    def positions(self, cells: Integers) -> Floats:
        """The positions of cell indices (n,), each of which is that of a value."""
        if self._codes is not None:
            return np.asarray(self._codes[cells])
        knob = self.knob
        assert isinstance(knob, IntegerRange)
        return knob.positions((knob.low + knob.step * cells).tolist())

    def cells(self, positions: Floats) -> Integers:
        """The cell indices of the values nearest to these positions (n,)."""
        if self._codes is not None:
            middles = (self._codes[1:] + self._codes[:-1]) / 2
            return np.asarray(np.searchsorted(middles, positions))
        knob = self.knob
        assert isinstance(knob, IntegerRange)
        places = np.rint((knob.numbers(positions) - knob.low) / knob.step).astype(np.int64)
        return np.clip(places, 0, len(knob.options) - 1)


@dataclass(frozen=True)
class Crowd:
    """A knob with so many neighbours that only some are drawn."""

    knob: Items
    columns: slice
    """Where its cell indices stand in a row."""
    count: int
    """How many are drawn around each configuration."""


class Scales:
    """The knobs of a space along which a configuration can be moved: continuous ones, then long lists.

    Those that decide which others exist are left out. Kept beside them are the knobs whose neighbours are
    drawn (:attr:`crowds`).
    """

    def __init__(self, features: Features) -> None:
        self.space = features.space
        self.floating: Integers = np.array(
            [i for i, knob in enumerate(features.floating) if knob.name not in features.deciding], dtype=int
        )
        self.listed = [
            Scale(knob, columns.start)
            for knob, columns in features.placed
            if _is_long(knob) and knob.name not in features.deciding
        ]
        drawn = drawn_of(self.space)
        self.crowds = [
            Crowd(knob, columns, drawn[knob.name])
            for knob, columns in features.placed
            if isinstance(knob, Items) and knob.name in drawn
        ]
        self.knobs: tuple[Knob, ...] = (
            *(features.floating[i] for i in self.floating),
            *(scale.knob for scale in self.listed),
        )

    def present_in(self, configuration: Configuration) -> Flags:
        """Which of :attr:`knobs` it has; shape (knobs,)."""
        return np.array([knob.name in configuration for knob in self.knobs], dtype=bool)

    def moved(self, rows: Rows, moving: Flags, steps: Floats) -> Rows:
        """The rows, moved by ``steps`` along the scales where ``moving`` is set; both of shape (n, knobs)."""
        cells, floats = rows.cells.copy(), rows.floats.copy()
        count = len(self.floating)
        here = moving[:, :count]
        there = np.clip(floats[:, self.floating] + steps[:, :count], 0.0, 1.0)
        floats[:, self.floating] = np.where(here, there, floats[:, self.floating])
        for i, scale in enumerate(self.listed, count):
            chosen = np.flatnonzero(moving[:, i])
            before = scale.positions(cells[chosen, scale.column])
            cells[chosen, scale.column] = scale.cells(np.clip(before + steps[chosen, i], 0.0, 1.0))
        return Rows(cells, floats)

    def values(self, rows: Rows, row: int, moving: Flags) -> dict[str, Value]:
        """The values of the knobs that were moved, of one row."""
        count = len(self.floating)
        found = {
            self.knobs[i].name: at(self.knobs[i], float(rows.floats[row, self.floating[i]]))
            for i in np.flatnonzero(moving[:count])
        }
        for scale, was_moved in zip(self.listed, moving[count:], strict=True):
            if was_moved:
                found[scale.knob.name] = scale.knob.join([int(rows.cells[row, scale.column])])
        return found


def _is_long(knob: Knob) -> bool:
    if not knob.ordered or len(knob.cells) != 1:
        return False
    count = len(knob.cells[0].values)
    return SHORT < count <= SMALL_TABLE or (count > SMALL_TABLE and isinstance(knob, IntegerRange))


@dataclass(frozen=True)
class Surroundings:
    """A configuration and its neighbours: what differs from it by one step in one knob.

    Those of the knobs in :attr:`Scales.crowds` are not among them.
    """

    centre: Configuration
    neighbours: tuple[Configuration, ...]
    rows: Rows
    """The centre, and then the neighbours."""
    movable: Flags
    """Which of the scales' knobs the centre has."""

    @classmethod
    def of(cls, features: Features, scales: Scales, centre: Configuration) -> Self:
        crowds = {crowd.knob.name for crowd in scales.crowds}
        rng = np.random.default_rng(int(centre.hash, 16))
        beside = (
            *neighbours(features.space, centre, crowds),
            *features.space.beside(centre, rng, ALONG),
        )
        rows = Rows(*features.arrays([centre, *beside]))
        return cls(centre, beside, rows, scales.present_in(centre))


@dataclass(frozen=True)
class Moved:
    """Rows that were moved along the scales, each from a configuration."""

    rows: Rows
    centres: Sequence[Configuration]
    moving: Flags
    """Which of the scales' knobs were moved; shape (rows, knobs)."""


@dataclass(frozen=True)
class Stepped:
    """Rows that differ from a configuration in one of the knobs that have many neighbours."""

    rows: Rows
    centre: Configuration
    crowd: Crowd

    @classmethod
    def of(cls, crowd: Crowd, part: Surroundings, rng: np.random.Generator) -> Self:
        here = part.rows.taken(np.zeros(crowd.count, dtype=int))
        steps = crowd.knob.stepped(here.cells[0, crowd.columns], crowd.count, rng)
        cells = here.cells[: len(steps)].copy()
        cells[:, crowd.columns] = steps
        return cls(Rows(cells, here.floats[: len(steps)]), part.centre, crowd)

    def values(self, row: int) -> dict[str, Value]:
        """The value of the knob that differs."""
        knob = self.crowd.knob
        return {knob.name: knob.join(self.rows.cells[row, self.crowd.columns].tolist())}


@dataclass(frozen=True)
class Nearby:
    """Candidates around some configurations: their neighbours, and those moved along the scales.

    The latter, and neighbours that were drawn, are made into configurations only when they are asked for:
    there are hundreds, of which one is chosen.
    """

    scales: Scales
    inputs: Inputs
    """Of the neighbours, then of those that were drawn, and then of what was moved."""
    neighbours: Sequence[Configuration] = ()
    stepped: Sequence[Stepped] = ()
    moved: Moved | None = None

    @classmethod
    def around(
        cls, features: Features, scales: Scales, parts: Sequence[Surroundings], rng: np.random.Generator
    ) -> Self:
        """``parts``: one or more."""
        alike = groups(len(scales.knobs))
        if len(scales.knobs) > 1:
            some = rng.random((SOME, len(scales.knobs))) < rng.random((SOME, 1))
            alike = np.vstack([alike, some])
        centres = [part.centre for part in parts for _ in alike]
        moving = np.vstack([alike & part.movable for part in parts])
        rows = _stacked([part.rows.taken(np.zeros(len(alike), dtype=int)) for part in parts])
        steps = rng.choice(STEPS, moving.shape) * rng.standard_normal(moving.shape)
        moved = Moved(scales.moved(rows, moving, steps), centres, moving)
        stepped = [
            Stepped.of(crowd, part, rng)
            for part in parts
            for crowd in scales.crowds
            if crowd.knob.name in part.centre
        ]
        beside = [part.rows.taken(np.arange(1, len(part.rows))) for part in parts]
        every = _stacked([*beside, *(some.rows for some in stepped), moved.rows])
        near = [neighbour for part in parts for neighbour in part.neighbours]
        return cls(scales, features.of_cells(every.cells, every.floats), near, stepped, moved)

    @classmethod
    def beside(
        cls,
        features: Features,
        scales: Scales,
        centres: Sequence[Configuration],
        step: float,
        rng: np.random.Generator,
    ) -> Self:
        """Only what is moved from the ``centres``: random parts of their knobs, about a ``step`` each."""
        each = [centre for centre in centres for _ in range(MOVES)]
        rows = Rows(*features.arrays(centres)).taken(np.repeat(np.arange(len(centres)), MOVES))
        movable = np.repeat([scales.present_in(centre) for centre in centres], MOVES, axis=0)
        moving = movable & (rng.random(movable.shape) < rng.random((len(each), 1)))
        steps = step * rng.standard_normal(movable.shape)
        moved = Moved(scales.moved(rows, moving, steps), each, moving)
        return cls(scales, features.of_cells(moved.rows.cells, moved.rows.floats), moved=moved)

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> Configuration | None:
        """``None`` for what turns out not to be feasible."""
        if index < len(self.neighbours) or self.moved is None:
            return self.neighbours[index]
        row = index - len(self.neighbours)
        for some in self.stepped:
            if row < len(some.rows):
                return self._made(some.centre, some.values(row))
            row -= len(some.rows)
        changed = self.scales.values(self.moved.rows, row, self.moved.moving[row])
        return self._made(self.moved.centres[row], changed)

    def _made(self, centre: Configuration, changed: Mapping[str, Value]) -> Configuration | None:
        made = of_active(self.scales.space, {**centre, **changed})
        return made if self.scales.space.allows(made) else None


def _stacked(rows: Sequence[Rows]) -> Rows:
    return Rows(np.vstack([part.cells for part in rows]), np.vstack([part.floats for part in rows]))
