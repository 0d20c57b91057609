"""What a trial reported on its way, as a strategy learns it."""

from __future__ import annotations

import math
from collections.abc import Mapping

OCTAVE = 64
"""Points kept of every doubling of their number: of 100,000 that were reported some 800 are kept."""


def kept(number: int) -> bool:
    """Whether point ``number`` (from 1) is kept: the same ones of every trial, so that they compare."""
    return number % (1 << max(0, number.bit_length() - OCTAVE.bit_length())) == 0


def thinned(values: Mapping[int, float]) -> dict[int, float]:
    """Of the values by step those that are kept.

    What counts is how many were reported before, not the step: who reports every thousand steps reports few.
    """
    return {step: values[step] for number, step in enumerate(sorted(values), start=1) if kept(number)}


def curve(values: Mapping[int, float], longest: int) -> tuple[tuple[float, float], ...]:
    """``(fraction, value)`` at each step with a number; ``longest`` is the last step of any trial."""
    return tuple((step / longest, value) for step, value in sorted(values.items()) if math.isfinite(value))
