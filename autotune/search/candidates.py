"""Where an acquisition function is evaluated: a sample of what is left, and around the best."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import numpy as np

from autotune.search.assemble import at, of_active
from autotune.search.untried import untried
from autotune.space.configuration import Configuration, Value
from autotune.space.knob import Knob
from autotune.space.space import Space

CONTINUOUS_STEPS = (0.2, 0.05, 0.01)
"""Standard deviations of the steps tried in continuous knobs, as fractions of their range."""


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
    """All that differ from ``centre`` in one knob, and some with its continuous knobs moved a little."""
    return space.neighbours(centre) + shifted(space, centre, rng)


def shifted(space: Space, centre: Configuration, rng: np.random.Generator) -> list[Configuration]:
    """The centre with its continuous knobs moved a little: one at a time, and all together."""
    moving = [name for name in space.continuous if name in centre]
    groups = [[name] for name in moving] + ([moving] if len(moving) > 1 else [])
    found = []
    for step in CONTINUOUS_STEPS:
        for group in groups * 2:
            moved = {name: _shift(space.knob(name), centre[name], step, rng) for name in group}
            found.append(of_active(space, {**centre, **moved}))
    return [configuration for configuration in found if space.allows(configuration)]


def _shift(knob: Knob, value: Value, step: float, rng: np.random.Generator) -> Value:
    position = knob.encode(value)[0] + step * float(rng.standard_normal())
    return at(knob, min(max(position, 0.0), 1.0))
