"""Knobs that exist in no feasible configuration, though their condition mentions knobs: mostly a mistake."""

from __future__ import annotations

import numpy as np

from autotune.space.feasible_set.feasible import FeasibleSet
from autotune.space.feasible_set.removals import MOST
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space

DRAWS = 1_000
"""So many configurations are drawn first: a knob that one of them has is not absent."""


def absent_knobs(space: Space) -> tuple[Knob, ...]:
    """Those whose ``when`` no feasible configuration meets, as far as that can be counted.

    Not among them are those whose ``when`` is false by the facts alone (which is meant so), or depends on a
    continuous knob.
    """
    counted = {knob.name for knob in space.feasible.knobs}
    conditional = [
        knob
        for knob in space.knobs
        if knob.when is not None and not knob.when.never and counted.issuperset(knob.when.knobs)
    ]
    if not space.feasible or len(conditional) * len(space.knobs) > MOST:
        return ()
    present = _drawn(space) if conditional else frozenset()
    return tuple(knob for knob in conditional if knob.name not in present and _never_met(space, knob))


def _drawn(space: Space) -> frozenset[str]:
    """The knobs of some feasible configurations. Building the set once more for each knob takes far longer.

    None if the set is only bounded, since it may take long to draw from that.
    """
    if space.feasible.size is None:
        return frozenset()
    drawn = space.feasible.sample(np.random.default_rng(0), DRAWS)
    return frozenset().union(*drawn)


def _never_met(space: Space, knob: Knob) -> bool:
    assert knob.when is not None
    constraints = (*space.feasible.constraints, knob.when)
    return FeasibleSet(space.feasible.knobs, constraints, rows=space.rows).size == 0
