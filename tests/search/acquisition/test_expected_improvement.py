"""The logarithm of the expected improvement, against its integral."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from autotune.search.acquisition.expected_improvement import FAR, log_expected_improvement


def at(z: float, spread: float = 1.0) -> float:
    """The value where the best lies ``z`` standard deviations above what is expected."""
    return float(log_expected_improvement(np.array([0.0]), np.array([spread]), z * spread)[0])


def integral(z: float) -> float:
    """The same as an integral over improvements ``t``, of which the density at 0 is a factor:
    ``t * phi(z - t) = phi(z) * t * exp(z * t - t * t / 2)``."""
    unit = 1.0 / (1.0 + abs(z))

    def gain(t: float) -> float:
        return t * math.exp(z * t * unit - 0.5 * (t * unit) ** 2)

    value, _ = quad(gain, 0.0, 60.0 * (1.0 + max(z, 0.0)), epsabs=0.0, epsrel=1e-11, limit=500)
    return math.log(value * unit * unit) - 0.5 * z * z - 0.5 * math.log(2.0 * math.pi)


@given(st.floats(-2e4, 8.0))
def test_it_is_the_logarithm_of_the_integral(z: float) -> None:
    """Below six standard deviations it had been off by up to 8 %, with a step there."""
    assert at(z) == pytest.approx(integral(z), rel=1e-14, abs=1e-7)


@pytest.mark.parametrize("place", [-6.0, 0.0, FAR])
def test_it_rises_without_a_step(place: float) -> None:
    around = place + np.linspace(-1e-6, 1e-6, 9) * max(1.0, abs(place))
    values = np.diff([at(float(z)) for z in around])
    assert (values > 0.0).all()
    assert values.max() / values.min() < 1.2


def test_the_hopeless_keep_their_order() -> None:
    values = log_expected_improvement(np.array([1e3, 1e4, 1e6, 1e9]), np.ones(4), 0.0)
    assert np.isfinite(values).all()
    assert (np.diff(values) < 0.0).all()


def test_it_scales_with_the_spread() -> None:
    assert at(-3.0, spread=2.5) == pytest.approx(at(-3.0) + math.log(2.5))
