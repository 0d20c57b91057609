"""Where an acquisition function is evaluated: a sample of what is left, and around the best."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from autotune.search.candidates.assemble import at, of_active
from autotune.search.candidates.untried import untried
from autotune.space.configuration import Configuration
from autotune.space.space import Space
from autotune.space.steps import some_neighbours

Floats = NDArray[np.float64]

STEPS = (0.2, 0.05, 0.01)
"""Standard deviations of the steps tried along a scale, as fractions of it."""


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
        pool |= {c.hash: c for c in around(space, incumbent, rng) if c.hash not in taken}
    if not pool:
        pool = {c.hash: c for c, _ in zip(untried(space, rng, taken, known), range(1), strict=False)}
    return list(pool.values())


def around(space: Space, centre: Configuration, rng: np.random.Generator) -> list[Configuration]:
    """What differs from ``centre`` in one knob, and some with its continuous knobs moved a little."""
    return some_neighbours(space, centre, rng) + shifted(space, centre, rng)


def shifted(space: Space, centre: Configuration, rng: np.random.Generator) -> list[Configuration]:
    """The centre with its continuous knobs moved a little: one at a time, and all together."""
    moving = moving_in(space, centre)
    here = np.array([space.knob(name).position(centre[name]) for name in moving])
    found = (placed(space, centre, moving, here, there) for there in steps_from(here, rng))
    return [configuration for configuration in found if configuration is not None]


def moving_in(space: Space, centre: Configuration) -> list[str]:
    """The continuous knobs of the ``centre``."""
    return [name for name in space.continuous if name in centre]


def steps_from(here: Floats, rng: np.random.Generator) -> Floats:
    """Positions (rows, knobs) near ``here`` (knobs,), with one knob moved in a row, or all."""
    moved = groups(len(here))
    steps = np.repeat(STEPS, len(moved) // len(STEPS))[:, None] * rng.standard_normal(moved.shape)
    return np.clip(np.where(moved, here + steps, here), 0.0, 1.0)


def groups(knobs: int) -> NDArray[np.bool_]:
    """Which of the knobs move in each row: each alone, and all together, twice for each of :data:`STEPS`."""
    moved = np.eye(knobs, dtype=bool)
    if knobs > 1:
        moved = np.vstack([moved, np.ones((1, knobs), dtype=bool)])
    return np.tile(moved, (2 * len(STEPS), 1))


def placed(
    space: Space, centre: Configuration, moving: Sequence[str], here: Floats, there: Floats
) -> Configuration | None:
    """The ``centre``, whose knobs ``moving`` stand ``here``, with those that move over ``there``.

    ``None`` where a constraint forbids it. Both have shape (knobs,); where they are equal the value stays.
    """
    moved = {
        name: at(space.knob(name), float(position))
        for name, position, before in zip(moving, there, here, strict=True)
        if position != before
    }
    configuration = of_active(space, {**centre, **moved})
    return configuration if space.allows(configuration) else None
