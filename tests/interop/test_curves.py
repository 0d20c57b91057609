"""What trials reported on their way, thinned alike."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from autotune.interop.curves import OCTAVE, curve, kept, thinned


def test_fractions_of_the_longest_trial() -> None:
    assert curve({2: 0.5, 1: 1.0}, 4) == ((0.25, 1.0), (0.5, 0.5))
    assert curve({1: math.nan, 2: math.inf, 3: 1.0}, 4) == ((0.75, 1.0),)


@given(st.integers(1, 10**6))
def test_long_trials_are_thinned(longest: int) -> None:
    octave = [step for step in range(longest, 2 * longest) if kept(step)] if longest < 2000 else []
    assert len(octave) <= 2 * OCTAVE
    assert all(kept(step) for step in range(1, OCTAVE))
    assert kept(1 << longest.bit_length())


def test_few_points_far_apart_are_all_kept() -> None:
    far = {1000 * n: float(n) for n in range(1, OCTAVE)}
    assert thinned(far) == far


def test_of_many_points_those_are_kept_that_a_longer_trial_has_too() -> None:
    short, long = (dict.fromkeys(range(1000, 1000 + count), 1.0) for count in (777, 5000))
    assert thinned(short).keys() <= thinned(long).keys() and len(thinned(long)) < 10 * OCTAVE
