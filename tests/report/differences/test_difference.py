"""Two results beside each other: whether they differ, and in which units."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.report.differences.difference import Differences, by_runs, in_unit_of
from autotune.session.reproduction.replicates import Spread


def test_a_number_that_was_rounded_is_the_same() -> None:
    """Of a recipe and the same one in a file, ``B is worse, 1x [1, 1] as good`` was said."""
    stored, filed = (18.999999999999996,) * 3, (19.0,) * 3
    assert by_runs("speed-up", "", "maximize", filed, stored).answer == "no difference shown"
    assert by_runs("loss", "", "minimize", (-1.0,) * 3, (-1.0000002,) * 3).answer == "no difference shown"
    assert by_runs("loss", "", "minimize", (1.0,) * 3, (0.999,) * 3).answer == "better"


def test_how_much_runs_differ_has_a_unit() -> None:
    """Where a value is not above 0 it is no part of one, and had stood there as 6.9e-07."""
    apart = by_runs("time", "s", "minimize", (-1.0,) * 3, (-2.0,) * 3, Spread(6.9e-7, 3, logarithmic=False))
    assert "runs of the same thing differ by 690 ns (standard deviation)" in apart.how
    close = by_runs("time", "s", "minimize", (1.0,) * 3, (2.0,) * 3, Spread(0.01, 3))
    assert "differ by 1.0% (standard deviation)" in close.how


@pytest.mark.parametrize(
    ("one", "other", "factor"),
    [
        ("ms", "milliseconds", 1.0),
        ("s", "ms", 1e-3),
        ("ms", "h", 3.6e6),
        ("", "s", 1.0),  # unknown
        ("J", "J", 1.0),
        ("MB/s", "GB/s", 1e3),
        ("B", "KiB", 1024.0),
        ("GB/s", "GB", None),
        ("s", "J", None),
        ("B/s", "B/request", None),
    ],
)
def test_units_are_of_one_kind_by_what_they_mean(one: str, other: str, factor: float | None) -> None:
    assert in_unit_of(one, other) == pytest.approx(factor)


def test_the_better_side_and_the_ratio_follow_the_goal() -> None:
    """Half-widths of 3 % and 4 % make one of 5 %: independent errors are added in squares."""
    slow, fast = (2.0, 2.0 / 1.03, 2.0 * 1.03), (1.0, 1.0 / 1.04, 1.0 * 1.04)
    contrast = by_runs("time", "s", "minimize", slow, fast)
    assert contrast.answer == "better" and contrast.ratio == pytest.approx(
        (2.0, 2.0 / 1.05, 2.0 * 1.05), rel=1e-3
    )
    assert by_runs("time", "s", "minimize", fast, slow).answer == "worse"
    assert by_runs("rate", "1/s", "maximize", slow, fast).answer == "worse"
    again = by_runs("rate", "1/s", "maximize", fast, slow)
    assert (again.answer, again.ratio) == ("better", pytest.approx(contrast.ratio))
    assert again.to_document()["ratio"] == dict(zip(("value", "low", "high"), again.ratio or (), strict=True))


POSITIVE = st.floats(1e-6, 1e6)


@given(st.lists(POSITIVE, min_size=3, max_size=3), st.lists(POSITIVE, min_size=3, max_size=3))
def test_the_other_way_round_it_is_the_inverse(one: list[float], other: list[float]) -> None:
    (low, value, high), (its_low, its_value, its_high) = sorted(one), sorted(other)
    sides = (value, low, high), (its_value, its_low, its_high)
    there, back = by_runs("time", "s", "minimize", *sides), by_runs("time", "s", "minimize", *sides[::-1])
    assert there.ratio is not None and back.ratio is not None
    assert there.ratio[1] <= there.ratio[0] <= there.ratio[2]
    inverse = tuple(1 / back.ratio[place] for place in (0, 2, 1))
    assert there.ratio == pytest.approx(inverse)
    opposite = {"better": "worse", "worse": "better"}
    assert back.answer == opposite.get(there.answer, there.answer)


@pytest.mark.parametrize("end", [0.0, -1.0, math.inf, math.nan])
def test_there_is_no_ratio_to_what_is_not_above_0_or_has_no_end(end: float) -> None:
    contrast = by_runs("time", "s", "minimize", (1.0, 1.0, 1.0), (2.0, min(end, 2.0), max(end, 2.0)))
    assert contrast.ratio is None
    assert contrast.to_document()["ratio"] is None and contrast.to_document()["one"] == {
        "value": 1.0,
        "low": 1.0,
        "high": 1.0,
    }


def test_nothing_differs_where_no_part_does() -> None:
    assert Differences("trials", "a", "b", {"code": {}, "workload": {}}).alike
    found = Differences("trials", "a", "b", {"code": {"commit": (None, "c")}, "workload": {}})
    assert not found.alike
    assert found.to_document()["parts"] == {"code": {"commit": {"one": None, "other": "c"}}, "workload": {}}
