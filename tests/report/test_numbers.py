"""Numbers for people."""

from __future__ import annotations

import math
from math import factorial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.outcome import Estimate
from autotune.report.numbers import (
    as_duration,
    digits_apart,
    say_between,
    say_count,
    say_estimate,
    say_gain,
    say_ratio,
    say_seconds,
    say_value,
    say_whole,
)
from autotune.session.opening.loading import load_spec
from autotune.session.opening.overrides import Overrides
from autotune.space import IntegerRange, Space
from autotune.space.spec import StudySpec, ratio_title


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (0.004123, "s", "4.123 ms"),
        (1.5e-6, "s", "1.5 us"),
        (12.0, "s", "12 s"),
        (0.0, "s", "0 s"),
        (3e-12, "s", "0.003 ns"),
        (2.5e9, "flop/s", "2.5 Gflop/s"),
        (2.5e9, "B", "2.5 GB"),
        (2500.0, "ms", "2500 ms"),
        (1234567.8, "kB", "1,234,568 kB"),
        (-12345.6, "%", "-12,346 %"),
        (9999.7, "rows/s", "10,000 rows/s"),
        (1e20, "", "1e+20"),
        (0.25, "", "0.25"),
        (float("nan"), "s", "nan"),
    ],
)
def test_a_value_is_said_with_its_unit(value: float, unit: str, said: str) -> None:
    assert say_value(value, unit) == said


PREFIXES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


@given(st.floats(-1e25, 1e25, allow_subnormal=False), st.sampled_from(["s", "B", "rows/s", ""]))
def test_what_is_said_is_the_value_to_four_digits(value: float, unit: str) -> None:
    number, _, name = say_value(value, unit).partition(" ")
    scale = PREFIXES[name] if name != unit else 1.0
    assert float(number.replace(",", "")) * scale == pytest.approx(value, rel=5.1e-4)
    assert say_value(-value, unit).lstrip("-") == say_value(value, unit).lstrip("-")


@pytest.mark.parametrize(
    ("goal", "unit", "title"),
    [
        ("minimize", "s", "speed-up"),
        ("minimize", "ms", "speed-up"),
        ("minimize", "us", "speed-up"),
        ("maximize", "tokens/s", "speed-up"),
        ("minimize", "", "gain"),
        ("minimize", "J", "gain"),
        ("maximize", "", "gain"),
        ("minimize", "B/s", "gain"),
    ],
)
def test_only_a_ratio_of_speeds_is_a_speed_up(goal: str, unit: str, title: str) -> None:
    assert ratio_title(goal, unit) == title


def test_an_interval_has_the_unit_of_its_value() -> None:
    assert say_estimate(Estimate(0.00101, 0.00099, 0.00102, 9), "s") == "1.01 ms [0.99, 1.02]"
    assert say_estimate(Estimate(0.00101, 0.00101, 0.00101, 1), "s") == "1.01 ms"
    assert say_estimate(Estimate(0.00101, 0.00099, 0.00102, 1), "s") == "1.01 ms [0.99, 1.02]"
    assert say_estimate(Estimate(64.0, 64.0, 64.0, 9), "B") == "64 B", "an exact one"
    assert say_estimate(Estimate(5.0, 4.0, 6.0, 3)) == "5 [4, 6]"
    assert say_estimate(Estimate(1.2e9, 9e8, 1.4e9, 3), "B") == "1.2 GB [0.9, 1.4]"
    assert say_estimate(Estimate(3.5, 3.4, 3.6, 3), "ms") == "3.5 ms [3.4, 3.6]"
    assert say_gain(0.0, -1e-5, 2e-5, "s") == "0 us [-10, 20]"


@pytest.mark.parametrize(
    ("values", "digits"),
    [
        ((1.0, 2.0), 4),
        ((11.91, 11.93), 4),
        ((1.0001, 1.0003), 5),
        ((1.0, 1.0007), 5),
        ((-1.0, -1.0007), 5),
        ((1.0, 1.0), 4),
        ((0.0, 0.0), 4),
        ((5e-324, 1.0), 4),
        ((1.0, 1.0 + 1e-12), 4),
        ((1.0, 1.0 + 2e-8), 9),
        ((math.nan, 1.0), 4),
    ],
)
def test_values_side_by_side_are_told_apart(values: tuple[float, float], digits: int) -> None:
    assert digits_apart(*values) == digits == digits_apart(*values[::-1])
    assert say_value(1.00012, "", 5) == "1.0001" and say_value(12345.6, "", 5) == "12346"
    assert say_value(0.001, "s", 5) == "1.0000 ms" and say_value(1.0) == "1"


def test_durations_and_ratios() -> None:
    assert [say_seconds(s) for s in (45, 720, 12600)] == ["45 s", "12 min", "3.5 h"]
    # Budgets are read back in these words: 90 s had been "2 min", and so had been 150 s.
    assert [say_seconds(s) for s in (90, 150, 300, 569)] == ["90 s", "2.5 min", "5 min", "9.5 min"]
    assert say_seconds(599) == "10 min"
    assert [say_seconds(s) for s in (0, 0.0412, 0.949, 0.951)] == ["0 s", "41 ms", "949 ms", "1 s"]
    assert say_ratio(1.4211, 1.4, 1.44) == "1.42x [1.4, 1.44]"
    assert say_ratio(1456.2, 999.7, 12345.6) == "1,456x [1,000, 12,346]"
    assert say_ratio(1.0009, 1.0008, 1.001) == "1.0009x [1.0008, 1.001]", "accuracies near 1"
    assert say_ratio(0.99913, 0.9991, 0.99917) == "0.99913x [0.9991, 0.99917]"
    assert say_ratio(1.0012, 0.9991, 1.0032) == "1x [0.999, 1]", "no difference is shown"
    assert say_ratio(1.0, 1.0, 1.0) == "1x [1, 1]"
    assert say_ratio(1.15e10, 1.14e10, 1.16e10) == "1.15e+10x [at least 1.14e+10]"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1.4, float("inf"), "2.3x [at least 1.4]"),
        (1.4, 6e15, "2.3x [at least 1.4]"),
        (0.0, 3.0, "2.3x [at most 3]"),
        (3e-19, float("inf"), "2.3x [too few rounds to say]"),
    ],
)
def test_an_end_that_is_not_known_is_no_number(low: float, high: float, said: str) -> None:
    assert say_ratio(2.3, low, high) == said


def test_of_a_number_too_long_to_read_the_first_digits_are_said() -> None:
    assert say_whole(1_234_567) == "1,234,567"
    assert say_whole(10**18 - 1) == "999,999,999,999,999,999"
    assert say_whole(factorial(200)) == "7.89e374"
    assert say_count(factorial(200), "combination") == "7.89e374 combinations"


@pytest.mark.parametrize("seconds", [0.25, 20.0, 1_728_000.0, 1_234_567.5])
def test_a_duration_in_a_command_is_read_as_what_it_was(seconds: float) -> None:
    """One of twelve days or more had an exponent, which no option takes."""
    spec = load_spec(StudySpec("a", Space([IntegerRange("x", 1, 2)])), Overrides(time=as_duration(seconds)))
    assert spec.budget.time == seconds


def test_the_ends_of_an_interval_have_the_same_digits_and_differ() -> None:
    """A report said: between 1.0024x and 1.01x, and: between 1.09x and 1.09x."""
    assert say_between(1.0087, 1.0024, 1.0149) == "between 1.0024x and 1.0149x"
    assert say_between(1.09, 1.088, 1.0925) == "between 1.088x and 1.093x"
    assert say_between(3.0, 2.5, 3.5) == "between 2.5x and 3.5x"
    assert say_between(3.0, 3.0, 3.0) == "between 3x and 3x"
