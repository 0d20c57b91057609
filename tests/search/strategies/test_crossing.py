"""Crossing: one knob after the other, also several at once, failures, conditions, constraints."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from autotune.search.strategies.crossing import Crossing, Place
from autotune.space.configuration import Configuration
from autotune.space.knobs import FloatRange
from autotune.space.space import Space

NAMES = ("v", "w", "x", "y", "z")
KNOBS = [FloatRange(name, 0.0, 1.0, default=0.5) for name in NAMES]
SPACE = Space(KNOBS)
RIGHT = {"v": 0.1, "w": 0.9, "x": 0.2, "y": 0.8, "z": 0.3}
Loss = Callable[[Configuration], float]


def apart(configuration: Configuration) -> float:
    """Each knob acts for itself."""
    return sum(abs(value - RIGHT[name]) for name, value in configuration.items())  # type: ignore[operator]


def place(**wrong: Any) -> Place:
    configuration = Configuration({**RIGHT, **wrong})
    return Place(configuration, apart(configuration))


ONE, OTHER = place(v=0.7, w=0.2), place(y=0.1, z=0.9, x=0.21)


def crossed(crossing: Crossing, loss: Loss = apart, at_once: int = 1) -> list[Configuration]:
    """All that it tries, where so many are in flight."""
    tried: list[Configuration] = []
    taken: set[str] = set()
    heard = 0
    while True:
        while len(tried) - heard < at_once and (found := crossing.next(taken)):
            tried.append(found[0])
            taken.add(found[0].hash)
        if heard == len(tried):
            return tried
        assert crossing.hear(tried[heard], loss(tried[heard]))
        heard += 1


def test_it_has_what_each_of_two_had_right() -> None:
    crossing = Crossing(SPACE, ONE, OTHER, NAMES)
    tried = crossed(crossing)
    assert crossing.best.configuration == {**RIGHT} and len(tried) == 5
    assert len({one.hash for one in tried}) == 5


@pytest.mark.parametrize("at_once", [2, 5, 9])
def test_so_it_has_where_several_are_in_flight(at_once: int) -> None:
    crossing = Crossing(SPACE, ONE, OTHER, NAMES)
    assert len(crossed(crossing, at_once=at_once)) <= 8
    assert crossing.best.configuration == {**RIGHT}


def test_only_the_knobs_that_differ_enough_are_tried() -> None:
    tried = crossed(Crossing(SPACE, ONE, OTHER, ["v", "y"]))
    assert len(tried) == 2 and {one["x"] for one in tried} == {ONE.configuration["x"]}


def test_its_parents_are_named_and_others_are_not_its_own() -> None:
    crossing = Crossing(SPACE, ONE, OTHER, NAMES)
    found = crossing.next(())
    assert found is not None
    worse, better = sorted((ONE, OTHER), key=lambda one: -one.loss)
    assert found[1] == {"parent": better.configuration.hash, "other": worse.configuration.hash}
    assert not crossing.hear(Configuration({**RIGHT, "v": 0.11}), 0.0)
    assert crossing.best == better


def test_a_failure_is_not_combined_with_others() -> None:
    def loss(configuration: Configuration) -> float:
        return math.nan if configuration["v"] == RIGHT["v"] else apart(configuration)

    crossing = Crossing(SPACE, ONE, OTHER, NAMES)
    tried = crossed(crossing, loss)
    assert sum(each["v"] == RIGHT["v"] for each in tried) == 1
    assert crossing.best.configuration == {**RIGHT, "v": 0.7}


def test_what_breaks_a_constraint_is_left_out() -> None:
    space = Space(KNOBS, constraints=["v + w >= 0.95"])
    tried = crossed(Crossing(space, ONE, OTHER, NAMES))
    assert tried and all(configuration in space for configuration in tried)
