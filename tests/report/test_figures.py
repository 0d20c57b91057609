"""Figures, by what can be read off them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from autotune.report import drawing
from autotune.report.convergence import convergence
from autotune.report.evidence import load_evidence
from autotune.report.figures import (
    convergence_figure,
    failure_figure,
    finale_figure,
    front_figure,
    importance_figure,
    steadiness_figure,
)
from autotune.report.figures_compare import progress_figure
from autotune.report.pages.style import DARK
from tests.report.studies import Written


def contenders(values: Sequence[float], unit: str = "s") -> pd.DataFrame:
    """What stood in a finale; the first has won, the last is the default."""
    rows = [
        {"label": f"trial {n}", "role": "finalist", "value": v, "low": v * 0.99995, "high": v * 1.00005}
        for n, v in enumerate(values)
    ]
    rows[0]["role"], rows[-1]["role"], rows[-1]["label"] = "winner", "default", "the default"
    frame = pd.DataFrame(rows)
    frame.attrs |= {"metric": "time", "unit": unit}
    return frame


def ticks(figure: Figure, which: str = "x") -> list[str]:
    """The labels of an axis of the first plot that lie in what it shows."""
    figure.draw_without_rendering()
    axis = getattr(figure.axes[0], f"{which}axis")
    low, high = sorted(axis.get_view_interval())
    return [tick.label1.get_text() for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]


@pytest.mark.parametrize(
    "values", [(0.0100, 0.010004, 0.01001), (1.0, 1.0005, 1.001), (1000.1, 1000.4, 1001.0), (1.0, 2.0, 9.0)]
)
@pytest.mark.parametrize("unit", ["s", "", "B"])
def test_no_two_ticks_say_the_same(values: Sequence[float], unit: str) -> None:
    """Where contenders lay within a thousandth, each of eight ticks said 10 ms."""
    said = ticks(finale_figure(contenders(values, unit)))
    assert len(said) == len(set(said)) >= 2


def test_ticks_that_need_many_digits_have_room() -> None:
    figure = finale_figure(contenders((0.0100, 0.010004, 0.01001)))
    figure.draw_without_rendering()
    [axes] = figure.axes
    boxes = [tick.label1.get_window_extent() for tick in axes.xaxis.get_major_ticks()]
    assert all(one.x1 < other.x0 for one, other in pairwise(boxes))


def test_ticks_of_a_wide_scale_are_short() -> None:
    said = ticks(finale_figure(contenders((1e6, 5e7, 1e8), "B")))
    assert {"1 MB", "10 MB", "100 MB"} <= set(said) and not any("." in one for one in said)


def test_there_are_several_ticks_where_their_words_are_short() -> None:
    assert len(ticks(finale_figure(contenders((4.5e-6, 5e-6, 8e-6))))) >= 4


def test_what_stands_below_an_axis_is_not_cut_off_beside_long_names() -> None:
    name = "a_name_of_a_knob_that_goes_on_and_on"
    important = pd.DataFrame([{"knob": name, "importance": 0.5, "low": 0.4, "high": 0.6}])
    failing = pd.DataFrame(
        [{"knob": name, "place": 0, "value": "1", "trials": 4, "failed": 2, "share": 0.5, "tells": 0.5}]
    )
    for figure in (importance_figure(important), failure_figure(failing)):
        figure.draw_without_rendering()
        below = figure.axes[0].xaxis.get_label().get_window_extent()
        assert below.x0 >= 0 and below.x1 <= figure.bbox.width


def test_the_winner_is_named_and_not_only_green() -> None:
    """Where a baseline is ahead of it, nothing but the colour told which had won."""
    assert ticks(finale_figure(contenders((1.0, 2.0, 3.0))), "y") == [
        "the default",
        "trial 1",
        "trial 0, the winner",
    ]


def test_values_can_be_read_where_the_worst_are_cut_off(tmp_path: Path) -> None:
    """The scale went by all values, and what was shown of them had one tick on it."""
    written = Written(tmp_path)
    for tile, value in enumerate([5.0, *(6.0 + n / 4 for n in range(40)), 8000.0, 9000.0]):
        written.trial({"tile": tile}, value)
    figure = convergence_figure(convergence(load_evidence(written.store)))
    assert len(ticks(figure, "y")) >= 3


@pytest.mark.filterwarnings("error", "ignore::ResourceWarning")  # what other tests left may be collected here
@pytest.mark.parametrize(
    "values",
    [(5e-324, 1e-300, 1.0), (1e-300, 1.0, 1.7e308), (1.5e308, 1.6e308, 1.7e308), (-1.7e308, 0, 1.7e308)],
)
def test_numbers_as_large_and_as_small_as_there_are_can_be_drawn(
    values: Sequence[float], tmp_path: Path
) -> None:
    """A study in which failures were given the largest float had no report."""
    both = pd.DataFrame({"metric.one": values, "metric.other": values[::-1], "front": [True, True, False]})
    names = {"one": "", "other": "s"}
    both.attrs |= {"goals": list(names), "units": names, "better": names}
    written = Written(tmp_path)
    for tile, value in enumerate(values):
        written.trial({"tile": tile}, value)
    found = convergence_figure(convergence(load_evidence(written.store)))
    for figure in (found, finale_figure(contenders(values)), front_figure(both)):
        figure.draw_without_rendering()


@pytest.mark.parametrize("trials", [1, 2, 7])
def test_there_is_no_half_trial(trials: int, tmp_path: Path) -> None:
    written = Written(tmp_path)
    for tile in range(trials):
        written.trial({"tile": tile}, 1.0 + tile)
    said = ticks(convergence_figure(convergence(load_evidence(written.store))))
    assert said and all("." not in one for one in said)


def test_the_legend_lies_beside_the_readings() -> None:
    """Among thousands of readings it could not be read."""
    frame = pd.DataFrame(
        {
            "at": [0.0, 1.0, 2.0],
            "ratio": [1.0, 1.01, 0.99],
            "purpose": ["search", "search", "final"],
            "discarded": ["", "throttled", ""],
        }
    )
    figure = steadiness_figure(frame)
    figure.draw_without_rendering()
    top = figure.axes[0]
    legend = top.get_legend()
    assert legend is not None
    assert legend.get_window_extent().y0 >= top.get_window_extent().y1 - 1


def luminance(colour: str) -> float:
    """WCAG 2.1's relative luminance of ``#rrggbb``."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("mode", [{}, DARK], ids=["light", "dark"])
def test_small_text_in_squares_can_be_read(mode: dict[str, str]) -> None:
    """WCAG asks for 4.5 of small text; one step of the scale had 3.8."""
    for place, step in enumerate(drawing.STEPS):
        ink = drawing.on_step((place + 0.5) / len(drawing.STEPS))
        assert contrast(mode.get(step, step), mode.get(ink, ink)) >= 4.5


def test_parts_of_a_bar_differ_in_lightness_too() -> None:
    """Failed beside in flight was red beside green."""
    row: dict[str, Any] = {"study": "one#1", "succeeded": 1, "pruned": 1, "failed": 1, "in_flight": 1}
    figure = progress_figure(pd.DataFrame([row]))
    colours = [bar[0].get_facecolor() for bar in figure.axes[0].containers]
    in_hex = [f"#{''.join(f'{round(255 * part):02x}' for part in colour[:3])}" for colour in colours]
    assert all(contrast(a, b) > 1.5 for a, b in pairwise(in_hex))
