"""What ``autotune trial`` says of readings and of reports."""

from __future__ import annotations

from typing import Any

from autotune.cli.trial import MOST_SHOWN, _curve, _readings


def reports(n: int) -> list[dict[str, Any]]:
    return [{"step": step, "at": 0.1 * step, "metrics": {"loss": 1.0 / step}} for step in range(1, n + 1)]


def test_a_curve_is_shown_from_its_first_to_its_last_report() -> None:
    assert _curve([]) == []
    assert _curve(reports(3)) == ["  curve    loss 1:1 2:0.5 3:0.3333"]
    (line,) = _curve(reports(1000))
    assert line.split()[2] == "1:1" and line.split()[-1] == "1000:0.001" and len(line.split()) <= 2 + 14


def test_a_metric_that_comes_and_goes_is_shown_where_it_was() -> None:
    told = [*reports(2), {"step": 3, "at": 1.0, "metrics": {"loss": 0.25, "accuracy": 0.5}}]
    assert _curve(told) == ["  curve    loss 1:1 2:0.5 3:0.25", "  curve    accuracy 3:0.5"]


def test_readings_stand_by_metric_and_what_does_not_count_is_explained() -> None:
    """They had stood in one row, seconds and bytes in turn, with a star that nothing explained."""
    assert _readings([]) == []
    taken = [
        {"metric": name, "value": value + i, "discarded": "warm-up" if i == 0 else ""}
        for i in range(3)
        for name, value in (("time", 0.5), ("bytes", 64))
    ]
    assert _readings(taken) == [
        "  readings time = 0.5* 1.5 2.5",
        "  readings bytes = 64* 65 66",
        "           * does not count: warm-up",
    ]
    (line,) = _readings([{"metric": "time", "value": 1.0, "discarded": ""}] * (MOST_SHOWN + 1))
    assert line.endswith(f" ... {MOST_SHOWN + 1} in all (--json has them)")
