"""Figures within a page."""

from __future__ import annotations

import warnings

import pytest

from autotune.report.pages.svg import Sheet, svg_of


def test_letters_that_only_the_browser_has_are_no_matter() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    figure.text(0.5, 0.5, "日本")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "日本" in svg_of(figure, "a", "a word", Sheet())
