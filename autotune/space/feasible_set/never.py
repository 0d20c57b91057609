"""Rules that no values can satisfy, as the bounds of their knobs prove."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.space.feasible_set.bounds import at_most
from autotune.space.feasible_set.columns import column
from autotune.space.feasible_set.lowering import Lowering
from autotune.space.feasible_set.parts import with_absent
from autotune.space.feasible_set.terms import Term, Terms
from autotune.space.knobs import FloatRange
from autotune.space.knobs.knob import Knob
from autotune.space.language.rule import Rule


def never_holds(rule: Rule, knobs: Mapping[str, Knob]) -> bool:
    """Whether interval arithmetic proves that ``rule`` is false whatever its ``knobs`` are set to.

    It cannot always: each occurrence of a knob is bounded by itself, so that ``x < x`` is not detected.
    """
    terms = Terms()
    numbers: dict[tuple[str, int], int] = {}

    def cell(name: str, place: int) -> Term:
        knob = knobs[name]
        if isinstance(knob, FloatRange) and not knob.cells:
            ends = column((knob.low, knob.high))
        else:
            values = knob.cells[place].values
            ends = column((values[0], values[-1]) if isinstance(values, range) else values)
        number = numbers.setdefault((name, place), len(numbers))
        return terms.variable(number, with_absent(ends, knob.when is not None))

    return any(at_most(term.span, 0) for term in Lowering(knobs, cell, terms).rule(rule))
