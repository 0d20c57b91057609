"""The time at a limit of power, from what was drawn."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.gpu.energy import Look
from autotune.measure.gpu.power_limit import (
    CORRECTED_ERROR,
    EXPONENT,
    LEAST_SECONDS,
    MOST_SECONDS,
    UNCORRECTED_ERROR,
    UNKNOWN_SECONDS,
    Window,
    is_enough,
    window_of,
)

WATTS = 650.0


def looks(until: float, each: float = 4e-3, counter: float = 0.1) -> tuple[list[Look], list[float]]:
    """So many seconds of readings, and a counter that steps so often; each time is its own number."""
    count = round(until / each)
    seen = [Look(i * each, WATTS * (i * each // counter * counter), i + 1) for i in range(1, count + 1)]
    return seen, [float(i) for i in range(count)]


def test_what_was_drawn_is_known_between_two_steps_of_the_counter() -> None:
    each, counter = 1 / 256, 1 / 8
    window = window_of(*looks(0.39, each, counter))
    readings = range(32, 96)  # behind the first step, and before the third
    assert window.seconds == sum(readings) / len(readings)
    assert window.watts == WATTS
    assert window.uncertain == pytest.approx(each / math.sqrt(6) / (2 * counter))


@pytest.mark.parametrize(
    ("until", "each", "counter"), [(0.15, 4e-3, 0.1), (0.4, 25e-3, 0.1), (MOST_SECONDS, 4e-3, 5.0)]
)
def test_where_it_stepped_or_was_looked_at_too_seldom_all_readings_count(
    until: float, each: float, counter: float
) -> None:
    seen, times = looks(until, each, counter)
    assert window_of(seen, times) == Window(sum(times) / len(times), None)


def test_how_well_that_is_known_hangs_on_how_often_the_counter_was_looked_at() -> None:
    seldom, often = (window_of(*looks(0.39, each)) for each in (8e-3, 2e-3))
    assert seldom.uncertain == pytest.approx(8e-3 / math.sqrt(6) / 0.2, rel=0.1) and seldom.watts
    assert CORRECTED_ERROR < often.error < seldom.error < UNCORRECTED_ERROR == Window(1.0, None).error


def first_enough(counts: bool, looks: Callable[[float], list[Look]]) -> float:
    return next(n * 4e-3 for n in range(1, 400) if is_enough(looks(n * 4e-3), counts))


def test_a_window_ends_with_the_counter_or_where_that_is_waited_for_too_long() -> None:
    assert first_enough(True, lambda s: looks(s)[0]) == pytest.approx(0.3, abs=0.01)
    assert first_enough(True, lambda s: looks(s, counter=0.02)[0]) == pytest.approx(
        0.02 + LEAST_SECONDS, abs=0.02
    )
    assert first_enough(True, lambda s: looks(s, counter=5.0)[0]) == pytest.approx(MOST_SECONDS, abs=0.01)
    assert first_enough(False, lambda s: looks(s)[0]) == pytest.approx(UNKNOWN_SECONDS, abs=0.01)
    assert not is_enough([], True)


@given(st.floats(1e-6, 10), st.floats(50, 1000), st.floats(50, 1000))
def test_who_drew_more_than_allowed_takes_longer_at_the_limit(
    seconds: float, drawn: float, allowed: float
) -> None:
    found = Window(seconds, drawn).at_limit(allowed)
    assert found == pytest.approx(seconds * (drawn / allowed) ** EXPONENT)
    assert Window(seconds, None).at_limit(allowed) == Window(seconds, drawn).at_limit(None) == seconds


@pytest.mark.parametrize(
    ("drawn", "limit", "known"),
    [
        (700, 700, True),
        (640, 700, True),
        (800, 700, True),
        (600, 700, False),
        (1000, 700, False),
        (-700, 700, False),
        (700, None, False),
        (700, 0, False),
        (None, 700, False),
    ],
)
def test_what_is_far_from_the_limit_tells_nothing_of_it(
    drawn: float | None, limit: float | None, known: bool
) -> None:
    assert Window(1e-3, drawn).held_against(limit) == Window(1e-3, drawn if known else None)
