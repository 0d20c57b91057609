"""How much better finalists looked, how noisy readings are, and how many of them would show it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.outcome import Estimate
from autotune.session.finale.stakes import Stakes


def read(value: float, noise: float = 0.0, n: int = 4) -> Estimate:
    """A value from ``n`` readings with this standard deviation, as a fraction."""
    return Estimate(value, value, value, n, abs(value) * noise / n**0.5)


def test_the_stakes_are_the_middle_gain_and_the_middle_noise() -> None:
    finalists = [read(1.0, 0.1), read(6.0, 0.3, n=9), read(7.0)]
    found = Stakes.of(read(8.0, 0.2, n=2), finalists, sign=1.0)
    assert found.gain == 0.25 and found.noise == pytest.approx(0.2)
    assert Stakes.of(read(8.0), [read(10.0)], sign=-1.0) == Stakes(gain=0.25)
    assert Stakes.of(read(8.0), [read(10.0)], sign=1.0) == Stakes(gain=0.0)
    assert Stakes.of(read(-8.0), [read(-10.0)], sign=1.0) == Stakes(gain=0.25)
    assert Stakes.of(None, finalists, 1.0) == Stakes.of(read(0.0), finalists, 1.0) == Stakes()
    assert Stakes.of(read(8.0), [], 1.0) == Stakes()


@given(st.floats(0.01, 2.0), st.floats(0.0, 1.0), st.integers(2, 8))
def test_more_noise_needs_more_rounds(gain: float, noise: float, least: int) -> None:
    wanted = Stakes(gain, noise).rounds_to_show(least, 8)
    assert least <= wanted <= 8
    assert wanted <= Stakes(gain, 1.5 * noise).rounds_to_show(least, 8)
    assert wanted >= Stakes(1.5 * gain, noise).rounds_to_show(least, 8)


def test_nothing_known_asks_for_no_more_rounds() -> None:
    assert Stakes().rounds_to_show(3, 8) == Stakes(gain=0.2).rounds_to_show(3, 8) == 3
    assert Stakes(noise=0.2).rounds_to_show(3, 8) == 3
    assert Stakes(gain=0.01, noise=0.9).rounds_to_show(3, 8) == 8
    assert Stakes(gain=0.01, noise=0.9).rounds_to_show(12, 8) == 12


def test_more_rounds_are_worth_it_between_hopeless_and_shown() -> None:
    assert Stakes(gain=0.2).shown_by(0.21, 8, 16)
    assert not Stakes(gain=0.2).shown_by(0.23, 8, 16)
    assert not Stakes(gain=0.2).shown_by(0.08, 8, 16), "it is shown already"
    assert not Stakes(gain=0.2).shown_by(0.1, 8, 8)
    assert not Stakes(gain=0.2).shown_by(0.1, 1, 8), "the noise is unknown"
    assert Stakes(gain=0.3).shown_by(0.48, 3, 6), "the first readings narrow an interval most"
