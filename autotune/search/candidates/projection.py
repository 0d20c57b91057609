"""From what another library asked for to the nearest configuration that can be tried."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import numpy as np

from autotune.search.candidates.assemble import assemble, completed
from autotune.search.candidates.untried import untried
from autotune.space.configuration import Configuration, Value
from autotune.space.space import Space
from autotune.space.steps import some_neighbours

SAMPLE = 64
"""The walk begins at the nearest of so many random feasible configurations."""
STEPS = 64
"""The most steps of a walk."""


def project(
    space: Space,
    wish: Mapping[str, Value],
    rng: np.random.Generator,
    taken: Container[str],
    known: Iterable[Configuration] = (),
) -> Configuration | None:
    """A feasible configuration near ``wish`` whose hash is not in ``taken``; ``None`` where none is left.

    From the nearest of a random sample of the feasible set (or from the wish, where it is only taken) it
    walks to the neighbour nearest the wish until no step leads nearer. The answer is the nearest untried
    configuration seen on the way, or a random one where all were tried.
    """
    goal = completed(space, wish)
    here = assemble(space, wish)
    if here is None:
        if not space.feasible:
            return None
        here = min(space.sample(rng, SAMPLE), key=lambda c: gap(space, c, goal))
    seen = {here.hash: (gap(space, here, goal), here)}
    for _ in range(STEPS):
        around = {n.hash: (gap(space, n, goal), n) for n in some_neighbours(space, here, rng)}
        seen |= around
        nearest = min(around.values(), key=_first, default=seen[here.hash])
        if nearest[0] >= seen[here.hash][0]:
            break
        here = nearest[1]
    open_ones = [found for name, found in seen.items() if name not in taken]
    if open_ones:
        return min(open_ones, key=_first)[1]
    return next(untried(space, rng, taken, known), None)


def gap(space: Space, one: Mapping[str, Value], goal: Mapping[str, Value]) -> float:
    """How far a configuration is from ``goal``, a value for every knob: the sum of the knobs' distances.

    An inactive knob counts as its default.
    """
    return sum(
        knob.distance(one.get(knob.name, knob.default), goal[knob.name])
        for knob in space.knobs
        if one.get(knob.name, knob.default) != goal[knob.name]
    )


def _first(pair: tuple[float, Configuration]) -> float:
    return pair[0]
