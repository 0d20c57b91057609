"""The estimate of a metric: its interval holds as often as it says, for noise as timings have it."""

from __future__ import annotations

import math
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from autotune.measure.outcome import Estimate
from autotune.measure.rules.statistics import (
    _risen,
    autocorrelation,
    drift,
    estimate,
    less_sure,
    relative_half_width,
    student_quantile,
    suspicions,
)

Noise = Callable[[np.random.Generator, int], np.ndarray]

NOISES: dict[str, tuple[Noise, float]] = {
    # a sample of n readings, and the true median
    "normal": (lambda rng, n: rng.normal(1.0, 0.02, n), 1.0),
    "lognormal": (lambda rng, n: rng.lognormal(0.0, 0.5, n), 1.0),
    "exponential tail": (lambda rng, n: 1 + rng.exponential(0.1, n), 1 + 0.1 * math.log(2)),
    "outliers": (
        lambda rng, n: rng.normal(1, 0.01, n) + 2.0 * (rng.random(n) < 0.05),
        1 + 0.01 * stats.norm.ppf(0.5 / 0.95),
    ),
    "two modes": (
        lambda rng, n: np.where(rng.random(n) < 0.25, 1.3, 1.0) + rng.normal(0, 0.01, n),
        1 + 0.01 * stats.norm.ppf(0.5 / 0.75),
    ),
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 8, 10, 15, 40])
def test_the_interval_holds(noise: str, n: int) -> None:
    """Nominal 95 %: at least 93 % of 2,000 samples, save where n < 6 readings all fall in the lesser mode."""
    sample, median = NOISES[noise]
    rng = np.random.default_rng((n, len(noise)))
    held = 0
    for _ in range(2000):
        e = estimate(sample(rng, n), 0.95)
        held += e.low <= median <= e.high
    assert held / 2000 >= (0.93 if n >= 6 else 0.92)


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.99])
@pytest.mark.parametrize("n", [3, 6, 12, 30])
def test_other_confidences_hold_and_are_not_far_too_wide(confidence: float, n: int) -> None:
    rng = np.random.default_rng(n)
    held = np.mean([_holds(estimate(rng.lognormal(0, 0.1, n), confidence), 1.0) for _ in range(2000)])
    assert confidence - 0.02 <= held <= min(1.0, confidence + 0.5 * (1 - confidence) + 0.05)


def _holds(e: Estimate, truth: float) -> bool:
    return e.low <= truth <= e.high


def test_one_wild_reading_in_ten_hardly_moves_it() -> None:
    readings = [1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0]
    calm, wild = estimate(readings), estimate([*readings, 1000.0])
    assert wild.value == pytest.approx(calm.value, abs=0.01)
    assert wild.high < 1.03


def test_a_single_reading_knows_nothing_of_its_noise() -> None:
    assert estimate([3.0]) == Estimate(3.0, 3.0, 3.0, 1, 0.0)
    assert relative_half_width(estimate([3.0])) == math.inf


def test_equal_readings_have_no_width() -> None:
    assert estimate([2.0, 2.0, 2.0]) == Estimate(2.0, 2.0, 2.0, 3, 0.0)
    assert relative_half_width(estimate([2.0, 2.0])) == 0.0
    assert relative_half_width(estimate([0.0, 0.0])) == 0.0
    assert relative_half_width(estimate([-1.0, 1.0])) == math.inf


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_shows(odd: float) -> None:
    e = estimate([1.0, odd, 2.0])
    assert repr(e.value) == repr(odd) and relative_half_width(e) == math.inf


@pytest.mark.parametrize(
    "values", [[1e200, 3e200], [-1e308, 1e307], [7e307, 8e307, 8.5e307, 8.8e307], [1.5e308, 1.6e308] * 2]
)
def test_readings_may_be_larger_than_the_root_of_the_largest_number(values: list[float]) -> None:
    found = estimate([value * 2.0**-600 for value in values])
    large = estimate(values)
    assert large.error == pytest.approx(found.error * 2.0**600)
    assert large.low <= large.value <= large.high
    assert large.value == pytest.approx(found.value * 2.0**600)


@pytest.mark.parametrize(("values", "confidence"), [([], 0.95), ([1.0], 0.0), ([1.0], 1.0), ([1.0], 95)])
def test_refused(values: list[float], confidence: float) -> None:
    with pytest.raises(ValueError, match=r"reading|confidence"):
        estimate(values, confidence)


def test_agrees_with_the_exact_ranks() -> None:
    """The interval lies between that of the exact confidence above and below the nominal one."""
    readings = [float(i) for i in range(1, 21)]
    e = estimate(readings, 0.95)
    assert 6 <= e.low <= 7 and 14 <= e.high <= 15  # ranks 6 and 7 of 20: 95.9 % and 88.5 %
    exact = 1 - 2 * float(stats.binom.cdf(5, 20, 0.5))
    assert estimate(readings, exact).low == pytest.approx(6)


READINGS = st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40)
CONFIDENCE = st.floats(0.01, 0.999)


@pytest.mark.parametrize("n", [3, 5, 12, 40])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_standard_error_is_about_the_deviation_of_the_value(n: int, confidence: float) -> None:
    """Far from 0, of which it knows nothing; a model takes it for the noise of a trial."""
    rng = np.random.default_rng(n)
    found = [estimate(readings, confidence) for readings in 1000.0 + rng.normal(size=(500, n))]
    deviation = np.std([one.value for one in found])
    assert 0.7 < np.sqrt(np.mean([one.error**2 for one in found])) / deviation < 1.4


@given(READINGS, CONFIDENCE)
def test_the_value_lies_in_its_interval(values: list[float], confidence: float) -> None:
    e = estimate(values, confidence)
    assert e.low <= e.value <= e.high
    assert e.value == pytest.approx(float(np.median(values)))
    assert e.n == len(values) and e.error >= 0
    if min(values) > 0:
        assert e.low >= 0
    assert estimate(values[::-1], confidence) == e


@given(READINGS, st.floats(0.5, 0.9), st.floats(0.91, 0.999))
def test_more_confidence_is_wider(values: list[float], less: float, more: float) -> None:
    narrow, wide = estimate(values, less), estimate(values, more)
    tolerance = 1e-9 * (1 + max(map(abs, values)))
    assert wide.low <= narrow.low + tolerance and wide.high >= narrow.high - tolerance


@given(st.lists(st.floats(0.1, 1e3), min_size=1, max_size=30), st.sampled_from([0.25, 2.0, 1024.0]))
def test_units_do_not_matter(values: list[float], factor: float) -> None:
    e, scaled = estimate(values), estimate([value * factor for value in values])
    assert scaled.value == pytest.approx(e.value * factor)
    assert scaled.low == pytest.approx(e.low * factor)
    assert scaled.error == pytest.approx(e.error * factor)


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 8, 9, 30, 99, 1000, 20_001])
def test_student_quantile_is_that_of_scipy(freedom: int) -> None:
    for probability in (0.6, 0.9, 0.975, 0.995, 1 - 0.05 / 16, 0.9999, 1 - 1e-6, 0.025, 0.2, 1e-4):
        expected = stats.t.ppf(probability, freedom)
        assert student_quantile(probability, freedom) == pytest.approx(expected, rel=1e-7)
    assert student_quantile(0.5, freedom) == 0.0


@pytest.mark.parametrize(("probability", "freedom"), [(0.0, 3), (1.0, 3), (float("nan"), 3), (0.9, 0)])
def test_student_quantile_that_does_not_exist(probability: float, freedom: int) -> None:
    with pytest.raises(ValueError, match="quantile"):
        student_quantile(probability, freedom)


def test_measuring_does_not_wait_for_scipy() -> None:
    code = (
        "import sys; from autotune.measure.phases import runner; "
        "from autotune.measure.rules import significance; from autotune.measure.workers import worker; "
        "from autotune.measure.rules.statistics import estimate; estimate([1.0, 2.0, 4.0]); "
        "sys.exit('scipy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@given(st.lists(st.integers(0, 5), min_size=8, max_size=40))
def test_kendalls_score_is_that_of_all_pairs(values: list[int]) -> None:
    pairs = sum(np.sign(b - a) for i, a in enumerate(values) for b in values[i + 1 :])
    assert _risen(np.array(values, dtype=float))[0] == pairs


def test_many_readings_need_little_memory() -> None:
    rng = np.random.default_rng(0)
    rising = np.linspace(1.0, 1.2, 30_000) + rng.normal(0, 0.01, 30_000)
    tracemalloc.start()
    assert any("drifted up by" in text for text in suspicions(rising.tolist()))
    assert drift(rising.tolist()) == pytest.approx(0.2 / 1.1, rel=0.05)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100e6


def test_drift_is_said() -> None:
    rng = np.random.default_rng(0)
    rising = 1 + 0.05 * np.linspace(0, 1, 30) + 0.005 * rng.normal(size=30)
    assert drift(rising) == pytest.approx(0.05, abs=0.01)
    assert any("drifted up by" in text for text in suspicions(rising))
    assert any("drifted down by" in text for text in suspicions(rising[::-1]))


def test_memory_is_said() -> None:
    rng = np.random.default_rng(0)
    slow = np.repeat(rng.normal(1, 0.1, 12), 5)
    assert autocorrelation(slow) > 0.5
    assert any("resembles the one before" in text for text in suspicions(slow))


def test_independent_readings_are_seldom_suspected() -> None:
    rng = np.random.default_rng(0)
    suspected = sum(bool(suspicions(rng.lognormal(0, 0.1, 30))) for _ in range(1000))
    assert suspected <= 25


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 3.0], [1.0] * 20, [math.nan] * 20])
def test_too_little_for_suspicion(values: list[float]) -> None:
    assert suspicions(values) == ()


@pytest.mark.parametrize("n", [*range(6, 40), 200, 501])
def test_the_interval_ends_at_the_ranks_of_the_binomial_distribution(n: int) -> None:
    found = estimate(list(range(n)))
    held = [1 - 2 * stats.binom.cdf(d - 1, n, 0.5) for d in range(n // 2 + 1)]
    last = max(d for d, confidence in enumerate(held) if confidence >= 0.95)
    assert last - 1 <= found.low < last and n - last - 1 < found.high <= n - last


def test_many_readings_are_estimated_at_once() -> None:
    """As many as latencies of requests; to count all ranks out took minutes."""
    began = time.process_time()
    found = estimate(list(range(50_001)))
    assert time.process_time() - began < 5
    half = stats.norm.ppf(0.975) * math.sqrt(50_001) / 2
    assert found.value == 25_000 and (found.high - found.low) / 2 == pytest.approx(half, rel=0.01)


def test_an_error_in_common_widens_what_is_known_of_more_than_one_reading() -> None:
    known = estimate([1.0, 1.01, 1.02, 0.99, 1.0, 1.0])
    wider = less_sure(known, 0.01)
    assert wider.value == known.value and wider.n == known.n
    assert wider.low == pytest.approx(1 - math.hypot(1 - known.low, 0.0196), rel=1e-4)
    assert wider.high == pytest.approx(1 + math.hypot(known.high - 1, 0.0196), rel=1e-4)
    assert wider.error == pytest.approx(math.hypot(known.error, 0.01))
    for unchanged in (estimate([1.0]), known):
        assert less_sure(unchanged, 0.01 if unchanged.n == 1 else 0.0) == unchanged


def test_one_reading_that_is_off_by_what_is_shared_alone_has_an_interval() -> None:
    known = less_sure(estimate([2.0]), 0.01, alone=True)
    assert (known.value, known.n, known.error) == (2.0, 1, pytest.approx(0.02))
    assert (2.0 - known.low, known.high - 2.0) == (pytest.approx(0.0392, rel=1e-3),) * 2


def test_an_error_in_common_makes_no_time_negative() -> None:
    assert less_sure(estimate([1.0, 1.0, 1.1]), 3.0).low == 0
