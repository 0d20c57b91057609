"""Figures within a page."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pytest

from autotune.report import drawing
from autotune.report.pages import svg
from autotune.report.pages.svg import Sheet, svg_of


def test_letters_that_only_the_browser_has_are_no_matter() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    figure.text(0.5, 0.5, "日本")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "日本" in svg_of(figure, "a", "a word", Sheet())


def test_words_that_look_like_attributes_stay_words() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    said = 'x style="}body{display:none}a{" id="b" href="#c" xmlns="d" url(#e)'
    figure.text(0.5, 0.5, said)
    sheet = Sheet()
    assert f">{said}</text>" in svg_of(figure, "a", "a word", sheet)
    assert "body" not in sheet.css()


def test_a_figure_is_laid_out_as_matplotlib_does_it() -> None:
    """Only that it does so in twice the time."""

    def made() -> Any:
        figure = drawing.blank(4.0, rows=2, ratios=[2, 1])
        above, below = figure.axes
        figure.colorbar(above.imshow([[1.0, 2.0], [3.0, 4.0]]))
        above.set_yticks([0, 1], ["a name that is long", "short"])
        below.plot([1, 1000], label="a line")
        drawing.legend_above(below)
        drawing.label(below, "trial", "time in s")
        return figure

    import matplotlib

    own = io.StringIO()
    with matplotlib.rc_context(svg._SETTINGS):
        nothing = dict.fromkeys(["Date", "Creator", "Format", "Type"])
        made().savefig(own, format="svg", metadata=nothing)
    assert svg._draw(made()) == own.getvalue()
