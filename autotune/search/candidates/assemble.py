"""Making a feasible configuration of values that came from somewhere else.

Crossover, a grid and the samplers of other libraries all produce a value for each knob without regard to
conditions and constraints: a *wish*. :func:`assemble` turns it into a configuration if it is a feasible one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

from autotune.search.candidates.scales import between
from autotune.space.configuration import Configuration, Value
from autotune.space.knobs import FloatRange
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space


def assemble(space: Space, wish: Mapping[str, Value]) -> Configuration | None:
    """The configuration of ``space`` that has the wished value for every active knob.

    Knobs that are inactive under the wish are left out; active ones without a wish take their default.
    ``None`` where that violates a constraint.
    """
    configuration = of_active(space, wish)
    return configuration if configuration in space else None


def of_active(space: Space, wish: Mapping[str, Value]) -> Configuration:
    """As :func:`assemble`, but whether the constraints hold or not."""
    complete = completed(space, wish)
    return Configuration({name: complete[name] for name in space.active(complete)})


def completed(space: Space, wish: Mapping[str, Value]) -> dict[str, Value]:
    """A value for every knob of the space, active or not: the wished one, or the default."""
    return {knob.name: wish.get(knob.name, knob.default) for knob in space.knobs}


def at(knob: Knob, fraction: float) -> Value:
    """The value of an ordered knob at ``fraction`` (0 to 1) of its way from low to high on its scale.

    Of values that are listed it is the one that stands nearest (:meth:`Knob.position`).
    """
    if len(knob.cells) == 1 and knob.ordered:
        return _nearest(knob, fraction)
    if not isinstance(knob, FloatRange):
        raise TypeError(f"{knob.name} has no order")
    return knob.canonical(between(knob.low, knob.high, fraction, log=knob.scale != "linear"))


def _nearest(knob: Knob, fraction: float) -> Value:
    """By bisection, since there may be millions of values."""
    places = range(len(knob.cells[0].values))

    def position(place: int) -> float:
        return knob.position(knob.join([place]))

    above = min(bisect_left(places, fraction, key=position), places[-1])
    below = max(above - 1, 0)
    return knob.join([below if fraction - position(below) < position(above) - fraction else above])
