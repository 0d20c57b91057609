"""How much is asked for: beside bounds, no more than some candidate may come to."""

from __future__ import annotations

import numpy as np
import pytest

from autotune.search.acquisition.ambition import REACH, Ambition
from autotune.search.models.features import Features
from autotune.space.knobs import Choice, FloatRange, OrderedValues
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space

RANGES: tuple[Knob, ...] = (FloatRange("x", 0.0, 1.0), Choice("kind", ("a", "b")))
LISTS: tuple[Knob, ...] = tuple(OrderedValues(name, tuple(range(1, 9))) for name in "abcd")


def ambition(knobs: tuple[Knob, ...]) -> Ambition:
    return Ambition(Features(Space(knobs)))


def test_beside_ranges_no_more_is_asked_for_than_is_within_reach() -> None:
    ahead, spread = np.array([-1.0, -0.2, -4.0]), np.array([0.1, 0.3, 1.0])
    own = ambition(RANGES)
    assert own.within_reach(5.0, ahead, spread) == pytest.approx(REACH * 0.3 - 0.2)
    assert own.within_reach(0.5, ahead, spread) == 0.5


def test_what_is_hopeless_leaves_any_improvement_to_ask_for() -> None:
    assert ambition(RANGES).within_reach(5.0, np.array([-9.0]), np.array([0.1])) == 0.0


def test_where_nothing_is_known_of_candidates_and_among_lists_it_stays() -> None:
    nothing = np.zeros(0)
    assert ambition(RANGES).within_reach(5.0, nothing, nothing) == 5.0
    assert ambition(LISTS).within_reach(5.0, np.array([-9.0]), np.array([0.1])) == 5.0
