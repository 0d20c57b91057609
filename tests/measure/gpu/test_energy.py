"""Energy per run from a counter that steps, against a device whose power is known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.gpu.energy import LEAST_SECONDS, MOST_SECONDS, Look, energy_per_run, enough


def watch(watts: float, run_seconds: float, step: float, seconds: float, piece: float = 2e-3) -> list[Look]:
    """Looks every ``piece`` at a counter that is written every ``step``, of a device at constant power."""
    count = math.floor(seconds / piece)
    return [
        Look(t := i * piece, watts * step * math.floor(t / step + 1e-9), math.floor(t / run_seconds + 1e-9))
        for i in range(count)
    ]


@given(st.floats(50, 700), st.floats(1e-5, 1e-3), st.floats(0.02, 0.1))
def test_a_known_power_comes_out(watts: float, run_seconds: float, step: float) -> None:
    found = energy_per_run(watch(watts, run_seconds, step, 1.0))
    assert found is not None
    slack = 2 * 2e-3 / found.seconds + 2 * run_seconds / found.seconds
    assert found.watts == pytest.approx(watts, rel=slack)
    assert found.joules == pytest.approx(watts * run_seconds, rel=2 * slack)


def test_a_window_too_short_for_the_counter_says_nothing() -> None:
    assert energy_per_run(watch(500, 1e-4, 0.1, 0.25)) is None
    assert energy_per_run([]) is None
    assert energy_per_run([Look(0.1 * i, 7.0, i) for i in range(20)]) is None


def test_the_counter_is_watched_for_some_steps_but_not_for_ever() -> None:
    looks = watch(500, 1e-4, 0.1, 1.0)
    ends = next(n for n in range(1, len(looks)) if enough(looks[:n]))
    assert LEAST_SECONDS <= looks[ends].at <= 0.7
    dead = [Look(0.1 * i, 7.0, i) for i in range(40)]
    assert dead[next(n for n in range(1, 40) if enough(dead[:n])) - 1].at == pytest.approx(MOST_SECONDS)
    assert not enough([])
