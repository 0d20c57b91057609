"""The chart of scores: who is in it, in which order, and that it is well-formed."""

from __future__ import annotations

from xml.etree import ElementTree

from benchmarks.efficiency_chart import Row, chart, rows
from benchmarks.report_efficiency import Cell


def cell(score: float) -> Cell:
    return Cell((score,), 1.0, 1.0, 50, 0.1)


def test_only_strategies_with_every_space_are_shown_the_best_first() -> None:
    cells = {
        ("b", "x"): cell(0.2),
        ("b", "y"): cell(0.4),
        ("a", "x"): cell(0.9),
        ("a", "y"): cell(0.7),
        ("partial", "x"): cell(1.0),
    }
    assert rows(cells, ["x", "y"]) == [Row("a", (0.9, 0.7)), Row("b", (0.2, 0.4))]


def test_the_chart_is_well_formed_and_escapes_names() -> None:
    drawn = chart([Row("a<b", (0.9, -3.0)), Row("random", (0.0, 0.0))], frozenset({"a<b"}))
    texts = [element.text for element in ElementTree.fromstring(drawn).iter() if element.text]
    assert "a<b" in texts and "-1.05" in texts
