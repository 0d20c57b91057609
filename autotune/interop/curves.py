"""What a trial reported on its way, as a strategy learns it."""

from __future__ import annotations

import math
from collections.abc import Mapping

OCTAVE = 64
"""Points kept of every doubling of the steps: what was reported 100,000 times is kept some 800 times."""


def kept(step: int) -> bool:
    """Whether the value at ``step`` (from 1) is kept: the same steps in every trial, so that they compare."""
    return step % (1 << max(0, step.bit_length() - OCTAVE.bit_length())) == 0


def curve(values: Mapping[int, float], longest: int) -> tuple[tuple[float, float], ...]:
    """``(fraction, value)`` at each step that is kept; ``longest`` is the last step of any trial."""
    points = sorted(values.items())
    return tuple((step / longest, value) for step, value in points if kept(step) and math.isfinite(value))
