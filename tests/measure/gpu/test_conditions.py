"""Which readings of a GPU count, and when it is warm."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.gpu.conditions import (
    ABNORMAL,
    LEAST_CLOCK,
    REASONS,
    Conditions,
    WarmUp,
    reasons_in,
    together,
    why_throttled,
)

GOOD = Conditions(1980, 2619, 60, 500.0, 0)


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("first", [True, False])
def test_only_what_is_not_the_kernels_doing_spoils_a_reading(reason: str, first: bool) -> None:
    bad = replace(GOOD, throttle_reasons=REASONS[reason] | REASONS["idle"])
    why = why_throttled(*((bad, GOOD) if first else (GOOD, bad)), steady_mhz=1980)
    assert why == (reason.replace("_", " ") if reason in ABNORMAL else "")


@given(st.floats(200, 2100), st.floats(200, 2100))
def test_a_clock_well_below_the_steady_one_spoils_a_reading(clock: float, steady: float) -> None:
    why = why_throttled(GOOD, replace(GOOD, sm_clock_mhz=clock), steady)
    assert bool(why) == (clock < LEAST_CLOCK * steady)


def test_what_is_unknown_spoils_nothing() -> None:
    assert why_throttled(Conditions(), Conditions(), None) == ""
    assert why_throttled(Conditions(), Conditions(), 1980) == ""
    assert why_throttled(GOOD, GOOD, None) == ""


def test_a_context_has_what_is_known() -> None:
    assert Conditions().numbers() == {}
    hot = replace(GOOD, throttle_reasons=REASONS["thermal"], temperature_c=90)
    cool = replace(GOOD, throttle_reasons=REASONS["power_cap"])
    assert together(hot, cool).numbers() == {
        "sm_clock_mhz": 1980,
        "memory_clock_mhz": 2619,
        "temperature_c": 60,
        "power_watts": 500,
        "throttle_reasons": REASONS["thermal"] | REASONS["power_cap"],
    }
    assert together(Conditions(), Conditions()).throttle_reasons is None
    assert set(reasons_in(0xFFFF)) == set(REASONS) and reasons_in(None) == ()


def test_a_warm_up_ends_when_times_and_clocks_are_steady() -> None:
    rule = WarmUp(least_seconds=0.2, most_seconds=2.0, window=3)
    at = [0.05 * i for i in range(1, 31)]
    times = [1.3, 1.3, 1.25, 1.2, 1.15, 1.1, 1.05, 1.0, *[1.0] * 22]
    clocks: list[float | None] = [1980.0] * 30
    ends = next(n for n in range(1, 31) if rule.done(at[:n], times[:n], clocks[:n]))
    assert 12 <= ends <= 14
    clocks[ends - 3 : ends] = [1200.0] * 3
    assert not rule.done(at[:ends], times[:ends], clocks[:ends])


def test_a_warm_up_waits_for_two_windows_of_times_and_of_the_clocks_that_the_driver_tells() -> None:
    rule = WarmUp(least_seconds=0.2, window=3)
    at = [0.1 * i for i in range(1, 13)]
    told: list[float | None] = [1980.0, None] * 6

    def first(clocks: list[float | None]) -> int:
        return next(n for n in range(1, 13) if rule.done(at[:n], [1.0] * n, clocks[:n]))

    assert first([None] * 12) == 6
    assert first(told) == 11


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=40))
def test_a_warm_up_is_neither_too_short_nor_endless(times: list[float]) -> None:
    rule = WarmUp()
    unknown = [None] * len(times)
    assert not rule.done([0.1] * len(times), times, unknown)
    assert rule.done([2.0] * len(times), times, unknown)
    assert not rule.done([], [], [])
