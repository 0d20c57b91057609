"""How overlapped and serial searches are compared."""

from __future__ import annotations

import math

import pytest

from benchmarks.overlap import Search, _ratios, geometric_mean, reading_ratio, wall_ratio
from benchmarks.timeline import Span, Spans


def search(wall: float, **times: float) -> Search:
    """It compiled for a second and checked for one while it measured for six, all of it in ``wall``."""
    spans = (
        Span(0, "prepare", 0, 0.0, 1.0),
        Span(0, "check", 0, 1.0, 2.0),
        Span(0, "measure", 0, wall - 6, wall),
    )
    return Search(Spans(spans), times)


def test_readings_are_compared_where_both_have_them() -> None:
    assert reading_ratio(search(1, a=2.0, b=3.0, c=9.0), search(1, a=1.0, b=6.0)) == pytest.approx(1.0)


def test_the_interval_is_over_the_repeats() -> None:
    mean, low, high = geometric_mean([1.0, 1.1, 1 / 1.1])
    assert mean == pytest.approx(1.0) and low == pytest.approx(1 / high)
    half = 4.303 * math.log(1.1) / math.sqrt(3)  # Student's t of two degrees of freedom
    assert math.log(high) == pytest.approx(half, rel=1e-3)
    assert geometric_mean([1.2])[1:] == (0.0, math.inf)


def test_what_is_said_of_it() -> None:
    searches = {
        "in turn": [search(10, a=1.0), search(10, a=1.001), search(10, a=0.999)],
        "overlapped": [search(6, a=1.05), search(5, a=1.051), search(7, a=1.049)],
    }
    assert wall_ratio(searches) == pytest.approx(0.6)
    walls, readings = _ratios(480, searches)
    assert "0.65 is met" in walls and "0.750" in walls
    assert readings.split(". From")[0].endswith(": moved")


def test_a_check_is_not_counted_as_measuring() -> None:
    """It is done where the compiler runs, and had been added to the seconds of the measuring core."""
    assert (search(8).wall, search(8).preparing, search(8).measuring) == (8.0, 2.0, 6.0)
