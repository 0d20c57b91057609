"""Ranges of which nearly all lies at the far end: most were meant to have a logarithmic scale."""

from __future__ import annotations

from dataclasses import dataclass

from autotune.space.knobs import FloatRange, IntegerRange
from autotune.space.space import Space

FOLD = {FloatRange: 1_000, IntegerRange: 10_000}
"""How many times the lower bound of a range on a linear scale the upper one has to be. A batch or a number of
threads up to a thousand may be meant one by one; a learning rate never is."""


@dataclass(frozen=True)
class SteepRange:
    knob: str
    low: float
    high: float
    tenth: float
    """Nine in ten random draws are above this."""


def steep_ranges(space: Space) -> list[SteepRange]:
    """The ranges of this kind, in the order of the knobs."""
    return [
        SteepRange(knob.name, knob.low, knob.high, knob.low + (knob.high - knob.low) / 10.0)
        for knob in space.knobs
        if isinstance(knob, (FloatRange, IntegerRange)) and knob.scale == "linear"
        if 0 < knob.low * FOLD[type(knob)] <= knob.high
    ]
