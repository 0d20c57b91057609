"""Two results beside each other: whether they differ, and in which units."""

from __future__ import annotations

import pytest

from autotune.report.differences.difference import by_runs, in_unit_of
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
