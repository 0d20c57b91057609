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


def test_words_that_look_like_attributes_stay_words() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    said = 'x style="}body{display:none}a{" id="b" href="#c" xmlns="d" url(#e)'
    figure.text(0.5, 0.5, said)
    sheet = Sheet()
    assert f">{said}</text>" in svg_of(figure, "a", "a word", sheet)
    assert "body" not in sheet.css()
