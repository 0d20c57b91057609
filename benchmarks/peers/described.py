"""A space in the words of :mod:`benchmarks.peers.contract`."""

from __future__ import annotations

from typing import Any

from autotune.space.configuration import plain
from autotune.space.knobs import Choice, Flag, FloatRange, IntegerRange, OrderedValues
from autotune.space.knobs.knob import Knob as SpaceKnob
from autotune.space.space import Space
from benchmarks.peers.contract import Condition, Knob


def described(space: Space) -> list[Knob]:
    """The knobs of ``space``, parents before the knobs that depend on them.

    Constraints cannot be told to a peer. A condition must hang on one listed knob: ``ValueError`` otherwise,
    and for knobs that a peer has no word for.
    """
    return [_knob(space, knob) for knob in space.knobs]


def _knob(space: Space, knob: SpaceKnob) -> Knob:
    when = _condition(space, knob)
    if isinstance(knob, FloatRange) and knob.step is None:
        return Knob(knob.name, "float", knob.low, knob.high, knob.scale != "linear", when=when)
    if isinstance(knob, IntegerRange) and knob.step == 1 and knob.scale != "log2":
        return Knob(knob.name, "integer", knob.low, knob.high, knob.scale == "log", when=when)
    values = tuple(plain(value) for value in _values(knob))
    if isinstance(knob, (Choice, Flag)):
        return Knob(knob.name, "choice", values=values, when=when)
    return Knob(knob.name, "ordered", values=values, when=when)


def _values(knob: SpaceKnob) -> tuple[Any, ...]:
    if isinstance(knob, OrderedValues):
        return knob.values
    if isinstance(knob, Choice):
        return knob.choices
    if isinstance(knob, Flag):
        return (False, True)
    if isinstance(knob, IntegerRange):
        return tuple(knob.cells[0].values)
    raise ValueError(f"no peer has a word for the knob {knob.name!r} ({type(knob).__name__})")


def _condition(space: Space, knob: SpaceKnob) -> Condition | None:
    if knob.when is None:
        return None
    parents = sorted(knob.when.knobs)
    if len(parents) != 1:
        raise ValueError(
            f"the condition of {knob.name!r} mentions {parents}: peers know conditions on one knob"
        )
    (parent,) = parents
    values = _values(space.knob(parent))
    return Condition(parent, tuple(v for v in values if knob.when.holds({parent: v})))
