"""A space cut into parts by the values of one knob: the arms of a bandit over regions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from autotune.errors import InputError, Problem
from autotune.search.candidates.assemble import at
from autotune.space.configuration import Value, plain
from autotune.space.knobs import Assignment, Permutation
from autotune.space.knobs.knob import Knob
from autotune.space.language.binding import bind_rule
from autotune.space.language.rule import Rule
from autotune.space.language.syntax import Comparison, ComparisonOperator, Item, ListOf, Literal, Name, Node
from autotune.space.space import Space

MOST = 8
"""Of up to this many values each has a region of its own."""
PARTS = 4
"""Into how many regions a range is cut, or a list of more values than :data:`MOST`."""


@dataclass(frozen=True)
class Region:
    """Part of a space; ``label`` is the constraint that cuts it out, for people."""

    label: str
    space: Space


def regions(space: Space, name: str = "") -> list[Region]:
    """The parts of ``space`` by the values of the knob ``name``, save those with nothing feasible.

    An order is cut by its first item, an assignment by where the first item goes, a range into
    quarters. Without a name a knob is chosen: one on which the existence of others depends, else a
    choice, else the one with the most values. Where no knob always exists, the whole space is one region.
    Raises :class:`InputError` for a knob that does not always exist, and where draws find nothing feasible in
    the whole space.
    """
    knob = space.knob(name) if name else _telling(space)
    if knob is None:
        return [Region("all", space)]
    if knob.when is not None:
        raise InputError(
            Problem(
                f"the space cannot be cut into regions by {name!r}, which does not always exist",
                expected=f"one of {', '.join(k.name for k in space.knobs if k.when is None)}",
            )
        )
    found = []
    for label, tree in _conditions(knob):
        rule = bind_rule(Rule(label, tree), knobs=space.knobs)
        rows = None if space.rows is None else [row for row in space.rows if rule.holds(row)]
        if rows is None or rows:
            part = Space(space.knobs, [*space.constraints, rule], space.workload, space.device, rows)
            if part.feasible and (not part.continuous or _can_be_sampled(part)):
                found.append(Region(label, part))
    if not found and space.feasible and space.continuous:
        space.sample(np.random.default_rng(0))  # which says why there are none
    return found


def _can_be_sampled(space: Space) -> bool:
    """Whether draws find something feasible. With continuous knobs there is no other way to know."""
    try:
        space.sample(np.random.default_rng(0))
    except InputError:
        return False
    return True


def _telling(space: Space) -> Knob | None:
    """Of the knobs that always exist, the one whose values say most about the kind of configuration."""

    def weight(knob: Knob) -> tuple[int, bool, int]:
        hanging = sum(other.when is not None and knob.name in other.when.knobs for other in space.knobs)
        choice = not knob.ordered and 1 < (knob.cardinality or 0) <= MOST
        return hanging, choice, knob.cardinality or 0

    return max((knob for knob in space.knobs if knob.when is None), key=weight, default=None)


def _conditions(knob: Knob) -> Iterator[tuple[str, Node]]:
    """For each region its label, and the condition that a configuration is in it."""
    target: Node = Name(knob.name)
    shown = knob.name
    if isinstance(knob, (Permutation, Assignment)):
        key = knob.items[0] if isinstance(knob, Assignment) else 0
        target, shown = Item(knob.name, key), knob.cells[0].name
    if not knob.cells:
        yield from _quarters(knob, target)
        return
    values = knob.cells[0].values
    if len(values) <= MOST:
        for value in values:
            yield f"{shown} == {plain(value)!r}", _among(target, [value])
        return
    rising = knob.ordered and _rise(values)
    for part in range(PARTS):
        held = values[part * len(values) // PARTS : (part + 1) * len(values) // PARTS]
        whole = _from_to(target, held[0], held[-1]) if rising and len(held) > MOST else _among(target, held)
        yield f"{shown} from {plain(held[0])!r} to {plain(held[-1])!r}", whole


def _quarters(knob: Knob, target: Node) -> Iterator[tuple[str, Node]]:
    ends = list(dict.fromkeys(at(knob, part / PARTS) for part in range(PARTS + 1)))
    if len(ends) == 1:  # the range is a single value
        ends *= 2
    for low, high in pairwise(ends):
        signs: tuple[ComparisonOperator, ...] = ("<=", "<=") if high == ends[-1] else ("<=", "<")
        label = f"{low!r} {signs[0]} {knob.name} {signs[1]} {high!r}"
        yield label, Comparison(signs, (Literal(low), target, Literal(high)))


def _among(target: Node, held: Sequence[Value]) -> Node:
    return Comparison(("in",), (target, ListOf(tuple(Literal(value) for value in held))))


def _from_to(target: Node, low: Value, high: Value) -> Node:
    return Comparison(("<=", "<="), (Literal(low), target, Literal(high)))


def _rise(values: Sequence[Value]) -> bool:
    """Whether they are numbers, each larger than the one before: a list may be in any order."""
    if isinstance(values, range):  # of which there may be billions
        return True
    numbers = [value for value in values if isinstance(value, (int, float)) and not isinstance(value, bool)]
    return len(numbers) == len(values) and all(one < other for one, other in pairwise(numbers))
