"""What ``autotune trial`` says of a trial that reported."""

from __future__ import annotations

from typing import Any

from autotune.cli.trial import _curve


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
