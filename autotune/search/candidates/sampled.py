"""Candidates as configurations: a sample of what is left, and what is around the best.

For models of other libraries, which take any configurations. Our own take rows of numbers, by the thousand:
:mod:`~autotune.search.candidates.pool`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import numpy as np

from autotune.search.candidates.assemble import at, of_active
from autotune.search.candidates.scales import STEPS
from autotune.search.candidates.untried import untried
from autotune.search.models.arrays import Flags
from autotune.space.configuration import Configuration
from autotune.space.space import Space
from autotune.space.steps import some_neighbours


def candidates(
    space: Space,
    rng: np.random.Generator,
    taken: Container[str],
    known: Iterable[Configuration],
    incumbents: Sequence[Configuration],
    size: int,
) -> list[Configuration]:
    """Untried feasible configurations: about ``size`` at random, and all around the ``incumbents``.

    A uniform sample alone misses the optimum's neighbourhood in a large space; the neighbourhoods alone
    would make the search local. Empty where nothing is left.
    """
    if not space.feasible:
        return []
    pool = {c.hash: c for c in space.sample(rng, size) if c.hash not in taken}
    for incumbent in incumbents:
        near = some_neighbours(space, incumbent, rng) + shifted(space, incumbent, rng)
        pool |= {c.hash: c for c in near if c.hash not in taken}
    if not pool:
        pool = {c.hash: c for c, _ in zip(untried(space, rng, taken, known), range(1), strict=False)}
    return list(pool.values())


def shifted(space: Space, centre: Configuration, rng: np.random.Generator) -> list[Configuration]:
    """The centre with its continuous knobs moved a little: one at a time, and all together."""
    knobs = [space.knob(name) for name in space.continuous if name in centre]
    here = np.array([knob.position(centre[knob.name]) for knob in knobs])
    moving = groups(len(knobs))
    steps = np.repeat(STEPS, len(moving) // len(STEPS))[:, None] * rng.standard_normal(moving.shape)
    positions = np.clip(here + steps, 0.0, 1.0)
    found = []
    for moves, there in zip(moving, positions, strict=True):
        moved = {
            knob.name: at(knob, float(position))
            for knob, move, position in zip(knobs, moves, there, strict=True)
            if move
        }
        configuration = of_active(space, {**centre, **moved})
        if space.allows(configuration):
            found.append(configuration)
    return found


def groups(knobs: int) -> Flags:
    """Which knobs move in each row (rows, knobs): each alone, and all together; twice for each of
    :data:`~autotune.search.candidates.scales.STEPS`."""
    moved = np.eye(knobs, dtype=bool)
    if knobs > 1:
        moved = np.vstack([moved, np.ones((1, knobs), dtype=bool)])
    return np.tile(moved, (2 * len(STEPS), 1))
