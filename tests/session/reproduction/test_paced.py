"""Two results at the same pace of the machine, on made-up readings whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.outcome import Reading
from autotune.session.reproduction.paced import (
    LARGEST_SHIFT,
    SLOPES_DIFFER,
    Past,
    SamePace,
    Series,
    Slope,
    at_same_pace,
    series_of,
    slope_of,
)
from autotune.session.reproduction.replicates import apart

FAST, SLOW = math.log(350.0), math.log(530.0)
"""The pace of a core alone, and of one whose sibling thread works for somebody else."""


def series(
    rng: np.random.Generator, level: float, pace: float, slope: float = 0.8, noise: float = 0.04, n: int = 12
) -> Series:
    """Readings of a thing that takes ``exp(level)`` at the pace 0; runs and samples scatter by themselves."""
    paces = pace + 0.05 * rng.standard_normal(n)
    own = noise * rng.standard_normal() / 2
    values = level + own + slope * paces + noise * rng.standard_normal(n)
    return Series(tuple(values), tuple(paces))


def compared(seed: int, change: float = 0.0, noise: float = 0.04) -> SamePace | None:
    """A study from a slow hour, replayed in a fast one, in which the trial changed by ``change``."""
    rng = np.random.default_rng(seed)
    past = Past(
        series(rng, 0.0, SLOW, noise=noise, n=40),
        [[series(rng, level, SLOW, noise=noise) for _ in range(2)] for level in (1.0, 2.0, 3.0)],
    )
    now = [series(rng, change, FAST + 0.2 * (run % 2), noise=noise) for run in range(5)]
    default = [series(rng, 1.0, FAST + 0.2 * (run % 2), noise=noise) for run in range(5)]
    return at_same_pace(past, now, [default], 0.95)


def differs(found: SamePace | None) -> bool:
    assert found is not None
    return apart(found.then, found.now, 0.01)


def test_a_core_that_is_faster_now_makes_no_difference() -> None:
    found = [compared(seed) for seed in range(200)]
    assert sum(differs(one) for one in found) <= 20
    assert all(one is not None and one.slower < 0.8 for one in found)


def test_a_change_of_the_code_is_seen_at_any_pace() -> None:
    for change in (math.log(1.35), math.log(0.7)):
        assert sum(differs(compared(seed, change)) for seed in range(100)) >= 95


def test_the_value_is_that_at_the_pace_of_then() -> None:
    found = compared(1, noise=1e-6)
    assert found is not None
    assert found.read[0] == pytest.approx(math.exp(0.8 * SLOW), rel=0.02)


@pytest.mark.parametrize("slope", [0.0, 0.5, 1.0, -1.0])
def test_the_slope_is_found_whatever_the_levels_are(slope: float) -> None:
    rng = np.random.default_rng(3)
    groups = [
        [series(rng, level, pace, slope, 1e-3, 40) for pace in (FAST, SLOW)] for level in (-5.0, 0.0, 7.0)
    ]
    found = slope_of(groups)
    assert found is not None
    assert found.value == pytest.approx(slope, abs=4 * found.error + 1e-3)


def test_short_runs_tell_the_slope_too() -> None:
    rng = np.random.default_rng(3)
    found = slope_of([[series(rng, 0.0, FAST + 0.01 * run, 0.8, 1e-3, 3) for run in range(20)]])
    assert found is not None and found.value == pytest.approx(0.8, abs=0.02)


def test_a_change_between_then_and_now_is_not_taken_for_a_slope() -> None:
    rng = np.random.default_rng(4)
    then, now = series(rng, 0.0, SLOW, 0.0, 1e-3, 60), series(rng, 2.0, FAST, 0.0, 1e-3, 60)
    found = slope_of([[then], [now]])
    assert found is not None and abs(found.value) < 0.01


def test_a_pace_that_stands_still_gives_no_slope() -> None:
    still = Series((1.0,) * 400, (FAST,) * 400)
    assert slope_of([[still]]) is None
    assert at_same_pace(Past(still, []), [still, still], [], 0.95) is None


@pytest.mark.parametrize(("readings", "enough"), [(40, False), (80, True)])
def test_a_slope_from_too_little_is_not_used(readings: int, enough: bool) -> None:
    rng = np.random.default_rng(5)
    past = Past(series(rng, 0.0, FAST, n=readings), [])
    now = [series(rng, 0.0, FAST, n=readings // 2) for _ in range(2)]
    assert (at_same_pace(past, now, [], 0.95) is not None) is enough


def test_each_configuration_has_a_slope_of_its_own() -> None:
    """The others follow the pace in proportion, and the trial with a power of 0.6: both are seen."""
    rng = np.random.default_rng(7)

    def mixed(slope: float) -> list[Series]:
        return [series(rng, 0.0, pace, slope, 0.01) for pace in (FAST, SLOW, FAST, SLOW, FAST)]

    past = Past(series(rng, 0.0, SLOW, 0.6, 0.01, n=60), [mixed(1.0)[:2] for _ in range(4)])
    found = at_same_pace(past, mixed(0.6), [mixed(1.0)], 0.95)
    assert found is not None and not differs(found)
    assert found.read[0] / found.then[0] == pytest.approx(1.0, abs=0.03)


def test_a_slope_is_drawn_towards_that_of_all_as_far_as_little_is_known() -> None:
    rng = np.random.default_rng(8)
    many = Slope(1.0, 0.01, 100)
    sure = many.drawn_by([[series(rng, 0.0, pace, 0.5, 1e-3, 60) for pace in (FAST, SLOW)]])
    unsure = many.drawn_by([[series(rng, 0.0, FAST, 0.5, 0.2, 10)]])
    assert sure.value == pytest.approx(0.5, abs=0.02) and sure.error < 0.02
    assert unsure.value == pytest.approx(1.0, abs=0.3) and 0.1 < unsure.error <= SLOPES_DIFFER + 0.01
    assert many.drawn_by([]).error == pytest.approx(math.hypot(0.01, SLOPES_DIFFER))


@given(st.floats(-1.0, 1.0), st.floats(0.001, 0.3), st.integers(0, 99), st.sampled_from([0.01, 0.05, 0.2]))
def test_a_slope_that_is_drawn_lies_between_and_is_surer_than_either(
    many: float, error: float, seed: int, noise: float
) -> None:
    own = [[series(np.random.default_rng(seed), 0.0, FAST, 0.5, noise, 60)]]
    alone, drawn = slope_of(own), Slope(many, error, 100).drawn_by(own)
    assert alone is not None
    assert min(many, alone.value) - 1e-9 <= drawn.value <= max(many, alone.value) + 1e-9
    assert drawn.error <= min(alone.error, math.hypot(error, SLOPES_DIFFER))


def test_the_reach_of_a_slope_is_that_of_its_error() -> None:
    assert Slope(1.0, 0.1, 10**6).reach(0.95) == pytest.approx(0.196, abs=0.001)


def test_runs_that_differed_in_the_past_make_both_results_less_sure() -> None:
    def width(*levels: float) -> float:
        rng = np.random.default_rng(9)
        past = Past(series(rng, 0.0, SLOW, n=100), [])
        now = [series(rng, 0.0, FAST) for _ in range(5)]
        others = [[series(rng, level, SLOW, noise=1e-3) for level in levels]] if levels else []
        found = at_same_pace(Past(past.then, others), now, [], 0.95)
        assert found is not None
        return math.log(found.now[2] / found.now[1])

    assert width(0.0, 0.5, -0.5) > 1.5 * width()


def test_a_machine_that_is_much_slower_or_faster_is_not_allowed_for() -> None:
    rng = np.random.default_rng(6)
    past = Past(series(rng, 0.0, FAST, n=200), [])
    for shift, allowed in ((0.9 * LARGEST_SHIFT, True), (1.2 * LARGEST_SHIFT, False)):
        for sign in (1, -1):
            now = [series(rng, 0.0, FAST + sign * shift) for _ in range(5)]
            assert (at_same_pace(past, now, [], 0.95) is not None) is allowed


def reading(value: float, pace: float | None, discarded: str = "", metric: str = "time") -> Reading:
    return Reading(metric, value, 0.0, discarded, {} if pace is None else {"pace_us": pace})


def test_readings_count_where_each_has_a_pace() -> None:
    good = [reading(2.0, 300.0), reading(9.0, None, "warm-up"), reading(-1.0, None, metric="loss")]
    assert series_of(good, "time") == Series((math.log(2.0),), (math.log(300.0),))
    for bad in (reading(2.0, None), reading(0.0, 300.0), reading(math.inf, 300.0), reading(2.0, math.nan)):
        assert series_of([*good, bad], "time") is None
    assert series_of([], "time") is None
