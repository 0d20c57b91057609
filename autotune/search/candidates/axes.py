"""A space in the terms of other libraries: named axes of floats, integers and categories.

Optuna and scikit-optimize know no ordered lists, permutations, assignments or conditions. Here each
knob becomes one or several axes that they do know:

======================================= =====================================================
ordered values, integer and float grids one integer axis: the index of the value
an integer range on a log scale         one integer axis on a log scale
a continuous range                      one float axis, linear or log
a choice, a flag                        one category axis
a permutation of n                      n float axes in [0, 1]: its items, ordered by their keys
                                        (random keys; Bean, ORSA Journal on Computing 6(2), 1994)
an assignment of n items                n category axes
======================================= =====================================================
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from autotune.search.candidates.assemble import completed
from autotune.search.candidates.scales import between
from autotune.space.configuration import Value
from autotune.space.knobs import FloatRange, IntegerRange
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space

Coordinate: TypeAlias = int | float
Point: TypeAlias = Mapping[str, Coordinate]
"""A coordinate for each axis, by the name of the axis; those of inactive knobs are absent."""


@dataclass(frozen=True)
class Axis:
    """One coordinate. ``low`` and ``high`` are inclusive; a category counts from 0 to ``high``."""

    name: str
    kind: Literal["float", "integer", "category"]
    low: Coordinate
    high: Coordinate
    log: bool = False


def knob_axes(knob: Knob) -> tuple[Axis, ...]:
    """The axes of a knob; none for a knob with a single value, about which there is nothing to ask."""
    if knob.cardinality == 1 or (isinstance(knob, FloatRange) and knob.low == knob.high):
        return ()
    if isinstance(knob, FloatRange) and not knob.cells:
        return (Axis(knob.name, "float", knob.low, knob.high, log=knob.scale != "linear"),)
    if isinstance(knob, IntegerRange) and knob.scale == "log":
        return (Axis(knob.name, "integer", knob.low, knob.high, log=True),)
    if knob.distinct:
        return tuple(Axis(f"{knob.name}[{i}]", "float", 0.0, 1.0) for i in range(len(knob.cells)))
    kind: Literal["integer", "category"] = "integer" if knob.ordered else "category"
    return tuple(Axis(cell.name, kind, 0, len(cell.values) - 1) for cell in knob.cells)


def coordinates(knob: Knob, value: Value) -> tuple[Coordinate, ...]:
    """Where ``value`` lies on each axis of ``knob``."""
    axes = knob_axes(knob)
    if not axes:
        return ()
    if isinstance(value, (int, float)) and axes[0].kind != "category" and (axes[0].log or not knob.cells):
        return (value,)
    indices = knob.split(value)
    if knob.distinct:  # the item in place p has the p-th lowest key
        places = np.argsort(indices)
        return tuple((float(place) + 0.5) / len(indices) for place in places)
    return tuple(indices)


def value_at(knob: Knob, point: Sequence[Coordinate]) -> Value:
    """The value whose coordinates are ``point``; the inverse of :func:`coordinates`."""
    if not point:
        return knob.default
    if isinstance(knob, FloatRange) and not knob.cells:
        return knob.canonical(min(max(float(point[0]), knob.low), knob.high))
    if isinstance(knob, IntegerRange) and knob.scale == "log":
        steps = round((float(point[0]) - knob.low) / knob.step)
        return knob.canonical(knob.low + knob.step * min(max(steps, 0), (knob.high - knob.low) // knob.step))
    if knob.distinct:
        return knob.join([int(i) for i in np.argsort(point, kind="stable")])
    return knob.join([int(i) for i in point])


class Axes:
    """All axes of a space, and the way between configurations and points."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self._of = {knob.name: knob_axes(knob) for knob in space.knobs}
        self.all: tuple[Axis, ...] = tuple(axis for axes in self._of.values() for axis in axes)

    def of(self, knob: Knob) -> tuple[Axis, ...]:
        return self._of[knob.name]

    def point(self, configuration: Mapping[str, Value]) -> dict[str, Coordinate]:
        """The coordinates of the active knobs."""
        return {
            axis.name: coordinate
            for name, value in configuration.items()
            for axis, coordinate in zip(
                self._of[name], coordinates(self.space.knob(name), value), strict=True
            )
        }

    def row(self, configuration: Mapping[str, Value]) -> list[Coordinate]:
        """A coordinate for every axis: an inactive knob stands at its default."""
        return list(self.point(completed(self.space, configuration)).values())

    def wish(self, point: Point) -> dict[str, Value]:
        """The value that ``point`` gives each knob whose axes it has."""
        wishes = {}
        for knob in self.space.knobs:
            axes = self._of[knob.name]
            if all(axis.name in point for axis in axes):
                wishes[knob.name] = value_at(knob, [point[axis.name] for axis in axes])
        return wishes


def to_unit(axis: Axis, coordinate: Coordinate) -> float:
    """Where a coordinate lies between the ends of its axis, from 0 to 1, on the axis's scale."""
    if axis.log:
        return math.log(coordinate / axis.low) / math.log(axis.high / axis.low)
    return (coordinate - axis.low) / (axis.high - axis.low)


def from_unit(axis: Axis, fraction: float) -> Coordinate:
    """The coordinate at ``fraction`` of the axis; the nearest integer where the axis has only those."""
    value = between(axis.low, axis.high, fraction, log=axis.log)
    return value if axis.kind == "float" else round(value)
