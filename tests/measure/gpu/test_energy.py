"""Energy per run from a counter that steps, against a device whose power is known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.gpu.energy import (
    LEAST_SECONDS,
    MOST_SECONDS,
    STEPS,
    Energy,
    Look,
    energy_per_run,
    enough,
)


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


def test_only_what_lies_between_the_first_step_and_the_last_counts() -> None:
    counter = [
        0,
        10,
        10,
        30,
        50,
        50,
    ]  # joules; at what time of a step its runs ended is known, but not before
    looks = [Look(0.5 * i, float(joules), 4 * i) for i, joules in enumerate(counter)]
    assert energy_per_run(looks) == Energy(joules=40 / 12, watts=40 / 1.5, seconds=1.5, steps=2)
    assert energy_per_run(looks[:4]) is None  # two steps


def test_a_window_too_short_for_the_counter_says_nothing() -> None:
    assert energy_per_run(watch(500, 1e-4, 0.1, 0.25)) is None
    assert energy_per_run([]) is None
    assert energy_per_run([Look(0.1 * i, 7.0, i) for i in range(20)]) is None


def test_the_counter_is_watched_for_some_steps_but_not_for_ever() -> None:
    looks = watch(500, 1e-4, 0.1, 1.0)
    ends = next(n for n in range(1, len(looks)) if enough(looks[:n]))
    assert LEAST_SECONDS <= looks[ends].at <= 0.7
    quick = [Look(0.01 * i, float(i), i) for i in range(200)]  # steps at each look
    assert quick[next(n for n in range(1, 200) if enough(quick[:n])) - 1].at == pytest.approx(LEAST_SECONDS)
    slow = [Look(100 + 0.2 * i, float(i), i) for i in range(40)]
    assert next(n for n in range(1, 40) if enough(slow[:n])) - 1 == STEPS + 1
    dead = [Look(0.1 * i, 7.0, i) for i in range(40)]
    assert dead[next(n for n in range(1, 40) if enough(dead[:n])) - 1].at == pytest.approx(MOST_SECONDS)
    assert not enough([])
