"""Numbers in what a program prints: the last of several, in colours, with units, in forms not read."""

from __future__ import annotations

import pytest

from autotune.measure.commands.patterns import by_patterns, how_to_read
from autotune.space.spec import MetricSpec

WRK = """    50%    1.02ms
    99%  {p99}
Requests/sec:  \x1b[1m1.5e3\x1b[0m
"""


def found(text: str, pattern: str, unit: str) -> object:
    return by_patterns({"p99": pattern}, [MetricSpec("p99", "minimize", unit)], text, "").get("p99")


@pytest.mark.parametrize("pattern", [r"99%\s+([0-9.]+)", r"99%\s+(\S+)", r"99%\s+([0-9.]+)[mun]?s"])
@pytest.mark.parametrize(
    ("printed", "unit", "value"),
    [
        ("3.40ms", "ms", 3.4),
        ("950.00us", "ms", 0.95),
        ("1.20s", "ms", 1200.0),
        ("3.40ms", "s", 0.0034),
        ("7.00us", "µs", 7.0),
        ("3.40ms", "seconds", 0.0034),  # by the digits alone 950.00us is a longer time than this
        ("950.00us", "msec", 0.95),
        ("950.00us", "minutes", 0.00095 / 60),
    ],
)
def test_a_time_is_in_the_unit_of_its_metric(pattern: str, printed: str, unit: str, value: float) -> None:
    assert float(str(found(WRK.format(p99=printed), pattern, unit))) == pytest.approx(value)


@pytest.mark.parametrize("pattern", [r"Time [^:]*:\s+([0-9.]+)", r"Time [^:]*:\s+(\S+)", r"([0-9.]+) m?s ±"])
def test_a_unit_may_stand_behind_a_space(pattern: str) -> None:
    """Hyperfine writes less than a second in milliseconds: 950 ms had counted for more than 1.2 s."""
    for printed, value in (("950.1 ms ±   3.2 ms", 0.9501), ("1.234 s ±  0.010 s", 1.234)):
        text = f"  Time (mean ± σ):     {printed}    [User: 2.0 ms, System: 1.0 ms]"
        assert float(str(found(text, pattern, "s"))) == pytest.approx(value)


@pytest.mark.parametrize(
    ("printed", "unit", "value"),
    [
        ("950.1 milliseconds", "s", 0.9501),
        ("3 sec", "msec", 3000.0),
        ("5 min 3 max", "s", 5.0),
        ("950 MB/s", "MB/s", 950.0),
        ("2.1 GB/s", "MB/s", 2100.0),  # as dd writes what is faster
        ("9.41 Gbits/sec", "Mbits/sec", 9410.0),
        ("9.41 Gbits/sec", "Mbps", 9410.0),
        ("512 KiB", "MiB", 0.5),
        ("3.5 Mops/s", "kops/s", 3500.0),
        ("1.5 TFLOPS", "GFLOPS", 1500.0),
        ("1.5TFLOP/s", "GFLOP/s", 1500.0),
        ("950 GFLOPs", "TFLOP/s", 0.95),
        ("950 Mflops/s", "Gflops", 0.95),
        ("2.1 GHz", "MHz", 2100.0),
        ("3.5 GFLOP", "GFLOP/s", 3.5),
        ("1.5 TFLOPS", "", 1.5),
        ("3.5 GB", "", 3.5),  # whoever gives no unit has one in mind
        ("3.5 GB", "ms", 3.5),
        ("3.5 Gbit/s", "MB/s", 3.5),
        ("3.5 GB", "MB/s", 3.5),
        ("3 B=7", "KiB", 3.0),
        ("3 Batches", "KiB", 3.0),
    ],
)
def test_a_magnitude_behind_a_space_counts_where_it_is_of_what_the_metric_counts(
    printed: str, unit: str, value: float
) -> None:
    assert float(str(found(f"rate {printed}", r"rate ([0-9.]+)", unit))) == pytest.approx(value)


@pytest.mark.parametrize("unit", ["", "GB/s"])
def test_what_has_no_unit_of_time_stays_as_it_is(unit: str) -> None:
    assert found("rate 12.5 ms", r"rate ([0-9.]+)", unit) == "12.5"
    assert found("rate 12.5s", r"rate ([0-9.]+)", unit) == "12.5"
    assert found("rate 12.5s", r"rate (\S+)", unit) == "12.5s"


@pytest.mark.parametrize("pattern", [r"rate=([0-9.]+)", r"rate=(\S+)", r"rate=([0-9.]+[kKMGT]?i?B?)"])
@pytest.mark.parametrize(
    ("printed", "unit", "value"),
    [
        ("12.3k", "", 12_300.0),
        ("12.3k", "IOPS", 12_300.0),
        ("12.3k", "kIOPS", 12.3),
        ("980", "kIOPS", 980.0),
        ("1.25MB", "", 1.25e6),
        ("1.5MiB/s", "B/s", 1.5 * 2**20),
        ("1.5GiB/s", "MiB/s", 1536.0),
        ("512B/s", "KiB/s", 0.5),
        ("1.2Gbit/s", "Mbit/s", 1200.0),
        ("940Mbps", "Gbps", 0.94),
        ("3.5", "GFLOP/s", 3.5),
        ("2k", "kernels/s", 2000.0),
    ],
)
def test_a_magnitude_counts(pattern: str, printed: str, unit: str, value: float) -> None:
    assert float(str(found(f"rate={printed} x", pattern, unit))) == pytest.approx(value)


def test_only_a_unit_right_behind_the_number_is_its_own() -> None:
    assert found("p99=5 min=3", r"p99=([0-9]+)", "ms") == "5"
    assert found("p99 5 min 3", r"p99 ([0-9]+)", "ms") == "5"
    assert found("p99 5 s=3", r"p99 ([0-9]+)", "ms") == "5"
    assert found("p99 5\ns 3", r"p99 ([0-9]+)", "ms") == "5"
    assert found("p99=5steps", r"p99=([0-9]+)", "ms") == "5"
    assert found("p99=5Moves", r"p99=([0-9]+)", "") == "5"
    assert found("p99=badus", r"p99=([a-z]+?)us", "ms") == "bad"


@pytest.mark.parametrize(
    ("printed", "pattern", "value"),
    [
        ("took 1.2e-05 s", r"took ([0-9.]+)", "1.2e-05"),
        ("took 1.2e-05 s", r"([0-9.]+) s", "1.2e-05"),
        ("took 3E+2s", r"took (-?[0-9.]+)", "3E+2"),
        (" 1,234,567  instructions", r"([0-9.]+)\s+instructions", "1,234,567"),
        ("took 1,234.5 s", r"took ([0-9.]+)", "1,234.5"),
        ("took 12,345,6", r"took ([0-9.]+)", "12"),
        ("run,12,345 s", r"([0-9]+) s", "345"),
        ("p50,12,345", r"p50,([0-9]+),", "12"),
        ("p99,12,345", r"p99,[0-9]+,([0-9]+)", "345"),
        ("1e-05", r"1e-([0-9]+)", "05"),
        ("tile1e5 s", r"([0-9]+) s", "5"),
        ("took 3,5 s", r"took ([0-9.]+)", "3,5"),  # where the comma begins the fraction
        ("took 0,0123 seconds", r"([0-9.]+) seconds", "0,0123"),
        ("took 1.234,5 ms", r"took ([0-9.]+)", "1.234,5"),
        ("took 1.234,5 s", r"([0-9.]+) s", "1.234,5"),
        ("3,5", r"^([0-9]+)", "3"),
        ("4,12 s,7", r"^4,([0-9]+)", "12"),
    ],
)
def test_a_number_is_read_whole(printed: str, pattern: str, value: str) -> None:
    """Of 12 us, which Python prints as 1.2e-05, 1.2 s had been read: what is fastest had been the slowest."""
    assert found(printed, pattern, "s") == value


def test_an_exponent_and_a_unit() -> None:
    assert float(str(found("took 1.2e-05ms", r"took ([0-9.]+)", "s"))) == pytest.approx(1.2e-8)


def test_lines_end_as_on_windows_too() -> None:
    assert found("took 12.5\r\ndone\r\n", r"^took ([0-9.]+)$", "s") == "12.5"


def test_the_last_match_counts_and_colours_do_not() -> None:
    assert found("p99 1\np99 2", r"p99 (\d)", "") == "2"
    assert found(WRK, r"Requests/sec:\s+(\S+)", "1/s") == "1.5e3"
    assert found("p99 \x1b[01;31m\x1b[K7\x1b[m\x1b[K", r"p99 (\d)", "") == "7", "as grep --color writes it"
    assert by_patterns({"p99": r"p99 (\d)"}, [], "", "p99 3") == {"p99": "3"}


def test_how_to_read_what_is_not_read() -> None:
    assert "unit: ms" in how_to_read("3.4 ms") and "tr -d ," in how_to_read("12,345.6")
    for fraction in ("3,5", "0,012", "1.234,5"):  # without its comma it would be another number
        assert "LC_ALL=C" in how_to_read(fraction) and "tr" not in how_to_read(fraction)
    assert how_to_read("fast") == how_to_read("-") == how_to_read("-k") == ""
