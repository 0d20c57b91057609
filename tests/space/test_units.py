"""Durations and amounts of memory as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.space.units import BYTES, SECONDS, given_time, memory, seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90s", 90.0),
        ("10m", 600.0),
        ("1h30m", 5400.0),
        ("1 h 30 m", 5400.0),
        ("1.5h", 5400.0),
        ("2d", 172800.0),
        ("500ms", 0.5),
        ("20us", 2e-5),
        ("20µs", 2e-5),
        ("20μs", 2e-5),
        ("10 minutes", 600.0),
        ("1hour 5min", 3900.0),
        ("42", 42.0),
        (" 42 ", 42.0),
        ("0s", 0.0),
        ("5M", 300.0),
    ],
)
def test_durations(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("s sec secs second seconds", 1.0),
        ("m min mins minute minutes", 60.0),
        ("h hr hrs hour hours", 3600.0),
        ("d day days", 86400.0),
    ],
)
def test_units_of_time_may_be_spelt_out(words: str, expected: float) -> None:
    assert {word: seconds(f"1 {word}") for word in words.split()} == dict.fromkeys(words.split(), expected)


def test_amounts_grow_in_thousands_or_in_1024s() -> None:
    for factor, words in ((1000, "B kB MB GB TB"), (1024, "B KiB MiB GiB TiB")):
        assert [memory(f"3{word}") for word in words.split()] == [3 * factor**power for power in range(5)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("10 parsecs", "unknown unit 'parsecs'"),
        ("10 mintues", "did you mean 'minutes'?"),
        ("30m1h", "'h' is not smaller than the unit before it"),
        ("1m1m", "'m' is not smaller than the unit before it"),
        ("1h30", "a unit is missing after 30: one of"),
        ("-5s", "'-5s' cannot be read"),
        ("", "expected a duration such as"),
        ("soon", "'soon' cannot be read"),
        ("1" * 101, "expected a duration such as"),
        ("5y", "unknown unit 'y'; expected one of us, ms"),
    ],
)
def test_wrong_durations_say_why(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        seconds(text)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4GiB", 4 * 2**30),
        ("4 gib", 4 * 2**30),
        ("512MB", 512 * 10**6),
        ("1.5KiB", 1536),
        ("0.5kB", 500),
        ("7B", 7),
        ("7", 7),
        ("123456789012345678B", 123456789012345678),
        ("4.1MB", 4_100_000),
        ("2.01kB", 2010),
        ("12345678901234567.890123456789TB", 12345678901234567890123456789),
    ],
)
def test_memory(text: str, expected: int) -> None:
    assert memory(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4GBs", "unknown unit 'GBs'; did you mean 'GB'?"),
        ("4Gi", "did you mean 'GiB'?"),
        ("0.3B", "not a whole number of bytes"),
        ("4.1000000000000000000000000000001MB", "not a whole number of bytes"),
        ("1GiB 5MiB", "more than one number"),
        ("plenty", "'plenty' cannot be read"),
        ("4 bananas", "expected one of B, kB"),
    ],
)
def test_wrong_memory_says_why(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r".") as error:
        memory(text)
    assert said in str(error.value)


@given(st.integers(1, 10**6), st.sampled_from(sorted(SECONDS)))
def test_every_unit_of_time_is_its_factor(count: int, unit: str) -> None:
    assert seconds(f"{count}{unit}") == pytest.approx(count * SECONDS[unit])


@given(st.integers(1, 10**6), st.sampled_from(sorted(BYTES)))
def test_every_unit_of_memory_is_its_factor(count: int, unit: str) -> None:
    assert memory(f"{count}{unit}") == count * BYTES[unit]


@given(st.text(max_size=120))
def test_any_text_is_read_or_refused_with_a_reason(text: str) -> None:
    for read in (seconds, memory):
        try:
            assert read(text) >= 0
        except ValueError as error:
            assert str(error)


def test_a_time_that_is_passed_to_a_function_is_a_number_or_a_text() -> None:
    assert (given_time("1h30m"), given_time("90"), given_time(90), given_time(None)) == (
        5400.0,
        90.0,
        90,
        None,
    )
    for wrong in ("soon", "0s", 0, -1.0, float("inf"), True, [3]):
        with pytest.raises(InputError, match="time is "):
            given_time(wrong)  # type: ignore[arg-type]
