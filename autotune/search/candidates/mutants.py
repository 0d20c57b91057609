"""Configurations with several knobs changed at once, of any kind: for spaces with many knobs.

A neighbour differs in one knob. Of a hundred compiler flags a quarter may matter, and a search that changes
one knob per try needs as many tries as changes, though the model may long have known where they lead. A
random configuration differs in all knobs, and nothing is known of it.

Like what is moved along scales (:mod:`~autotune.search.candidates.neighbourhood`) these are rows of numbers,
of which one becomes a configuration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from autotune.search.candidates.assemble import at, of_active
from autotune.search.models.arrays import Flags, Floats, Integers
from autotune.search.models.features import LONG, Features
from autotune.search.models.gaussian_process import Inputs
from autotune.space.configuration import Configuration, Value
from autotune.space.knobs.items import Items

MUTANTS = 50
"""How many are made of each configuration."""
CHANGED = 1.5
"""In how many knobs each differs from it, on average."""


class Changes:
    """What may be changed in the configurations of a space, and how.

    Knobs that decide which others exist are left as they are.
    """

    def __init__(self, features: Features) -> None:
        self.features = features
        self.orders = [
            (knob, columns)
            for knob, columns in features.placed
            if knob.name not in features.deciding and isinstance(knob, Items)
            if knob.distinct and len(knob.cells) > 1
        ]
        """Knobs whose cells change together: orders of at least two items."""
        owners = [knob for knob in features.discrete for _ in knob.cells]
        free = [knob.name not in features.deciding and not knob.distinct for knob in owners]
        self.sizes = features.cell_sizes
        self.alone: Flags = np.array(free, dtype=bool) & (self.sizes > 1)
        """Which cells change by themselves; shape (cells,)."""
        self.ordered: Flags = np.array([knob.ordered for knob in owners], dtype=bool)
        self.floating: Flags = np.array(
            [knob.name not in features.deciding for knob in features.floating], dtype=bool
        )

    def of(self, cells: Integers, step: float, rng: np.random.Generator) -> Integers:
        """Another value for each cell that has one, for rows (n, cells).

        An ordered one goes one step up or down half of the time, and else is drawn anew; in a long list it is
        moved by about a ``step``, in parts of its length.
        """
        anew = (cells + 1 + rng.integers(np.maximum(self.sizes - 1, 1), size=cells.shape)) % self.sizes
        up = np.where(cells == 0, True, (cells < self.sizes - 1) & (rng.random(cells.shape) < 0.5))
        beside = cells + np.where(up, 1, -1)
        far = np.rint(cells + step * self.sizes * rng.standard_normal(cells.shape)).astype(np.int64)
        there = np.where(self.ordered & (rng.random(cells.shape) < 0.5), beside, anew)
        there = np.where(self.ordered & (self.sizes > LONG), far, there)
        return np.asarray(np.clip(there, 0, self.sizes - 1))


@dataclass(frozen=True)
class Mutants:
    """Candidates of one ask."""

    changes: Changes
    centres: Sequence[Configuration]
    """What each row was before it was changed."""
    cells: Integers
    floats: Floats
    changed_cells: Flags
    changed_floats: Flags
    inputs: Inputs

    @classmethod
    def of(
        cls, changes: Changes, centres: Sequence[Configuration], step: float, rng: np.random.Generator
    ) -> Self:
        """:data:`MUTANTS` of each of the ``centres``; ``step``: a part of a scale."""
        features = changes.features
        cells, floats = features.arrays(centres)
        cells, floats = np.repeat(cells, MUTANTS, axis=0), np.repeat(floats, MUTANTS, axis=0)
        present = np.array([[k.name in c for k in features.floating] for c in centres], dtype=bool)
        may_float = np.repeat(present.reshape(len(centres), -1), MUTANTS, axis=0) & changes.floating
        may = (cells >= 0) & changes.alone
        choices = may.sum(axis=1) + may_float.sum(axis=1) + len(changes.orders)
        share = rng.geometric(1.0 / CHANGED, size=len(cells)) / np.maximum(choices, 1)
        changed = may & (rng.random(may.shape) < share[:, None])
        changed_floats = may_float & (rng.random(may_float.shape) < share[:, None])
        there = np.where(changed, changes.of(cells, step, rng), cells)
        for knob, columns in changes.orders:
            for row in np.flatnonzero((cells[:, columns.start] >= 0) & (rng.random(len(cells)) < share)):
                there[row, columns] = knob.stepped(cells[row, columns], 1, rng)[0]
                changed[row, columns] = True
        steps = step * rng.standard_normal(floats.shape)
        moved = np.where(changed_floats, np.clip(floats + steps, 0.0, 1.0), floats)
        each = [centre for centre in centres for _ in range(MUTANTS)]
        return cls(changes, each, there, moved, changed, changed_floats, features.of_cells(there, moved))

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, row: int) -> Configuration | None:
        """``None`` for what turns out not to be feasible."""
        features = self.changes.features
        changed: dict[str, Value] = {
            knob.name: knob.join(self.cells[row, columns].tolist())
            for knob, columns in features.placed
            if self.changed_cells[row, columns].any()
        }
        for column in np.flatnonzero(self.changed_floats[row]):
            knob = features.floating[column]
            changed[knob.name] = at(knob, float(self.floats[row, column]))
        made = of_active(features.space, {**self.centres[row], **changed})
        return made if features.space.allows(made) else None
