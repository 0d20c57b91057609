"""Small random changes and crossings of values, for each kind of knob: what evolution breeds with."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from autotune.search.candidates.assemble import assemble, at, of_active
from autotune.search.candidates.scales import STEPS
from autotune.space.configuration import Configuration, Value
from autotune.space.knobs import Assignment, Permutation
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space

LONG = 32
"""In an ordered knob with more values a step may skip some."""

ROUNDS = 12
"""A repair changes one knob per round, in so many rounds at most ..."""
TRIES = 4
"""... and tries so many changes of it in each."""


def moved(knob: Knob, value: Value, rng: np.random.Generator) -> Value:
    """Another value near ``value``; the same where there is no other.

    A permutation has two items swapped, one moved elsewhere, or a stretch reversed; an assignment has
    one item moved, or two swapped that are in different places (so that each place holds as many as
    before). An ordered knob goes one step, or several in a long range; a choice becomes another one.
    """
    if knob.ordered and (not knob.cells or len(knob.cells[0].values) > LONG):
        position = knob.position(value) + rng.choice(STEPS) * rng.standard_normal()
        there = at(knob, float(np.clip(position, 0.0, 1.0)))
        if there != value or not knob.cells:
            return there
    places = list(knob.split(value))
    if isinstance(knob, Permutation):
        return knob.join(_reordered(places, rng))
    if isinstance(knob, Assignment):
        return knob.join(_reassigned(places, len(knob.options), rng))
    count = len(knob.cells[0].values)
    if knob.ordered:
        place = places[0] + _direction(places[0], count, rng)
        return knob.join([min(max(place, 0), count - 1)])
    return knob.join([_another(places[0], count, rng)])


def _direction(place: int, count: int, rng: np.random.Generator) -> int:
    """1 or -1: up or down, as there is room."""
    if place == 0 or place == count - 1:
        return 1 if place == 0 else -1
    return 1 if rng.random() < 0.5 else -1


def _another(place: int, count: int, rng: np.random.Generator) -> int:
    """One of ``range(count)`` that is not ``place``, where there is one."""
    if count == 1:
        return place
    drawn = int(rng.integers(count - 1))
    return drawn + (drawn >= place)


def _reordered(places: list[int], rng: np.random.Generator) -> list[int]:
    if len(places) < 2:
        return places
    i, j = sorted(rng.choice(len(places), 2, replace=False).tolist())
    match int(rng.integers(3)):
        case 0:
            places[i], places[j] = places[j], places[i]
        case 1:
            places.insert(*((j, places.pop(i)) if rng.random() < 0.5 else (i, places.pop(j))))
        case _:
            places[i : j + 1] = reversed(places[i : j + 1])
    return places


def _reassigned(places: list[int], count: int, rng: np.random.Generator) -> list[int]:
    item = int(rng.integers(len(places)))
    elsewhere = [other for other, place in enumerate(places) if place != places[item]]
    if elsewhere and rng.random() < 0.5:
        other = elsewhere[rng.integers(len(elsewhere))]
        places[item], places[other] = places[other], places[item]
    else:
        places[item] = _another(places[item], count, rng)
    return places


# --- crossing ------------------------------------------------------------------------------------------


def crossed(knob: Knob, one: Value, other: Value, rng: np.random.Generator) -> Value:
    """A value that has something of both.

    Permutations keep some positions of one and fill the rest in the order of the other: a stretch of
    them (order crossover; Davis, Applying adaptive algorithms to epistatic domains, IJCAI 1985) or any
    (position-based; Syswerda, Schedule optimization using genetic algorithms, 1991). Assignments take
    a stretch of items or any of them from the other. A continuous value lies between the two; anything
    else is the other's.
    """
    if not knob.cells:
        share = rng.random()
        return at(knob, float((1.0 - share) * knob.position(one) + share * knob.position(other)))
    if len(knob.cells) == 1:
        return other
    kept = _some(len(knob.cells), rng)
    mine, theirs = knob.split(one), knob.split(other)
    if knob.distinct:
        held = {place for place, keep in zip(mine, kept, strict=True) if keep}
        rest = iter([place for place in theirs if place not in held])
        return knob.join([place if keep else next(rest) for place, keep in zip(mine, kept, strict=True)])
    return knob.join([a if keep else b for a, b, keep in zip(mine, theirs, kept, strict=True)])


def _some(count: int, rng: np.random.Generator) -> list[bool]:
    """Which of ``range(count)`` are kept: a stretch of it, or any, each with a probability of a half."""
    if rng.random() < 0.5:
        return [bool(keep) for keep in rng.random(count) < 0.5]
    start, stop = sorted(rng.integers(count + 1, size=2).tolist())
    return [start <= place < stop for place in range(count)]


# --- into the feasible set -----------------------------------------------------------------------------


def stepped(space: Space, here: Configuration, knob: Knob, rng: np.random.Generator) -> Configuration | None:
    """``here`` with ``knob`` moved a little, and whatever has to change with it; ``None`` where that failed.

    An ordered knob goes in one direction to the next feasible value, as neighbours do.
    """
    if knob.ordered and len(knob.cells) == 1 and len(knob.cells[0].values) <= LONG:
        count, (place,) = len(knob.cells[0].values), knob.split(here[knob.name])
        direction = _direction(place, count, rng)
        for further in range(place + direction, count if direction > 0 else -1, direction):
            child = assemble(space, {**here, knob.name: knob.join([further])})
            if child is not None:
                return child
    wish = {**here, knob.name: moved(knob, here[knob.name], rng)}
    return repaired(space, with_newcomers(space, wish, rng), rng)


def with_newcomers(space: Space, wish: Mapping[str, Value], rng: np.random.Generator) -> dict[str, Value]:
    """``wish`` with a value for each other knob that exists under it: all defaults, or (half the time) random
    ones."""
    random = rng.random() < 0.5
    chosen: dict[str, Value] = {}
    for knob in space.knobs:
        if knob.when is None or knob.when.holds(chosen):
            missing = knob.sample(rng) if random and knob.name not in wish else knob.default
            chosen[knob.name] = wish.get(knob.name, missing)
    return chosen


def repaired(space: Space, wish: Mapping[str, Value], rng: np.random.Generator) -> Configuration | None:
    """A feasible configuration near ``wish``; ``None`` where none was found.

    Min-conflicts (Minton et al., Artificial Intelligence 58, 1992): in each round one of the knobs of a
    violated constraint is moved, unless that would violate more constraints than before.
    """
    here = of_active(space, wish)
    broken = space.violated(here)
    for _ in range(ROUNDS):
        if not broken:
            break
        rule = broken[rng.integers(len(broken))]
        names = sorted(rule.knobs & here.keys())
        if not names:
            return None
        knob = space.knob(names[rng.integers(len(names))])
        for _ in range(TRIES):
            there = of_active(space, {**here, knob.name: moved(knob, here[knob.name], rng)})
            left = space.violated(there)
            if len(left) <= len(broken):
                here, broken = there, left
            if not broken:
                break
    return here if here in space else None
