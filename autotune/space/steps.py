"""From a configuration to its neighbours: those that differ in one knob by one step.

An ordered knob steps over values that are not feasible, to the next that is: where tiles must divide
one another, the next larger feasible tile is often not the next in the list. Knobs that vanish with
a step are dropped; those that appear take their default or, where that is not feasible, the value
nearest to it that is. In a space without conditions neighbours are mutual.

A permutation of 200 items has 60,000 neighbours, each of which takes time in proportion to the items. Callers
that do not need all neighbours take a random part of those (:func:`some_neighbours`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

import numpy as np

from autotune.space.configuration import Configuration, Value
from autotune.space.feasible_set.configurations import Configurations
from autotune.space.knobs.items import Items
from autotune.space.knobs.knob import Knob

REACH = 64
"""How many values of an ordered knob are looked at in each direction to find one that is feasible."""
MOST_CELLS = 50_000
"""The most cells, over all neighbours of a configuration, that permutations and assignments may have before
their neighbours are drawn at random instead. A permutation of 32 items is below."""
LEAST_DRAWN = 64
"""The fewest neighbours that are drawn of such a knob."""


def neighbours(
    space: Configurations, here: Configuration, without: Container[str] = ()
) -> list[Configuration]:
    """The neighbours of ``here``, knob by knob in its order; knobs named in ``without`` are not moved."""
    found: dict[Configuration, None] = {}
    for name, value in here.items():
        if name in without:
            continue
        for path in _paths(space.knob(name), value):
            steps = (_moved(space, here, name, step) for step in path)
            nearest = next((step for step in steps if step is not None), None)
            if nearest is not None:
                found[nearest] = None
    found.pop(here, None)
    return list(found)


def drawn_of(space: Configurations) -> dict[str, int]:
    """The knobs that have too many neighbours to make them all, and how many to draw of each instead."""
    several = [knob for knob in space.knobs if isinstance(knob, Items)]
    cells = sum(max(len(knob.cells), 1) for knob in space.knobs)
    most = MOST_CELLS // (cells * max(len(several), 1))
    return {knob.name: max(most, LEAST_DRAWN) for knob in several if knob.steps > max(most, LEAST_DRAWN)}


def some_neighbours(
    space: Configurations, here: Configuration, rng: np.random.Generator
) -> list[Configuration]:
    """The neighbours of ``here``, but only a random part of those of the knobs in :func:`drawn_of`."""
    drawn = drawn_of(space)
    found = neighbours(space, here, drawn)
    for name, count in drawn.items():
        knob = space.knob(name)
        assert isinstance(knob, Items)
        if name in here:
            rows = knob.stepped(np.array(knob.split(here[name])), count, rng)
            made = (_moved(space, here, name, knob.join(row)) for row in rows.tolist())
            found += [step for step in made if step is not None]
    return list(dict.fromkeys(found))


def _paths(knob: Knob, value: Value) -> Iterator[Iterable[Value]]:
    """Ways to leave ``value``: along each, the first feasible value is the neighbour."""
    if not knob.ordered or len(knob.cells) != 1:
        yield from ((step,) for step in knob.neighbours(value))
        return
    (place,) = knob.split(value)
    values = knob.cells[0].values
    yield (values[index] for index in range(place - 1, max(place - 1 - REACH, -1), -1))
    yield (values[index] for index in range(place + 1, min(place + 1 + REACH, len(values))))


def _moved(space: Configurations, here: Configuration, name: str, value: Value) -> Configuration | None:
    """``here`` with another value for one knob, and the knobs that then exist; ``None``: not feasible."""
    moved = {**here, name: value}
    chosen: dict[str, Value] = {}
    appeared = []
    for knob in space.knobs:
        if knob.when is not None and not knob.when.holds(chosen):
            continue
        if knob.name not in moved:
            appeared.append(knob)
        chosen[knob.name] = moved.get(knob.name, knob.default)
    if space.allows(chosen):
        return Configuration(chosen)
    others = (_with(space, chosen, knob, other) for knob in appeared for other in _around_default(knob))
    return next((other for other in others if other is not None), None)


def _with(
    space: Configurations, chosen: Mapping[str, Value], knob: Knob, value: Value
) -> Configuration | None:
    """``chosen`` with another value for one knob, if that is feasible and changes nothing else."""
    changed = {**chosen, knob.name: value}
    feasible = space.active(changed) == tuple(chosen) and space.allows(changed)
    return Configuration(changed) if feasible else None


def _around_default(knob: Knob) -> list[Value]:
    """Values near a knob's default, the nearest first."""
    if len(knob.cells) != 1:
        return list(knob.neighbours(knob.default))
    (place,) = knob.split(knob.default)
    near = range(max(place - REACH, 0), min(place + REACH + 1, len(knob.cells[0].values)))
    return [knob.join([index]) for index in sorted(near, key=lambda index: abs(index - place))[1:]]
