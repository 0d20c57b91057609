"""What all figures share: colours, sizes, and text in which matplotlib finds no formulas.

Figures are made without pyplot, so no global state is changed. All colours are different from each other,
so that a page can replace each by one of its own (:mod:`autotune.report.pages.svg`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from autotune.report.numbers import MOST_DIGITS, say_value
from autotune.report.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID, PAPER = "#1f2328", "#57606a", "#d0d7de", "#ffffff"
BEST, RANDOM, TRIAL, GOOD, BAD = "#0b5fb0", "#9a5b00", "#78828e", "#1a7f37", "#c21f32"
STEPS = ("#eef4fb", "#d3e4f6", "#a9cbec", "#75abdf", "#3678bd", "#1d64ab", "#0a4480")
"""Colours of a scale from low to high."""
PARTS = (
    "#2f6fb3",
    "#b8860f",
    "#5a9e3d",
    "#8d6cc4",
    "#c4653f",
    "#3b9c9c",
    "#a8577e",
    "#6d7580",
    "#8a8f3a",
    "#b3b9c0",
)
"""Colours for the parts of a whole."""
COLOURS = (INK, MUTED, GRID, PAPER, BEST, RANDOM, TRIAL, GOOD, BAD, *STEPS, *PARTS)

WIDTH = 5.8
"""The width of figures in inches: narrow enough for a phone."""
SMALL = 8.5
"""The size of small text in points."""
USUAL_TICK_DIGITS = 3
"""The number of digits of a tick with a unit, where these tell it from the next one."""
MOST_DRAWN = 1e200
"""Values are drawn no further out than this: matplotlib's arithmetic would overflow."""


def words(text: object, most: int = 40) -> str:
    """A name for matplotlib: at most ``most`` characters, without formulas or control characters."""
    return one_line(text, most).replace("$", r"\$")


def blank(height: float, rows: int = 1, ratios: Sequence[float] | None = None) -> Figure:
    """A figure of ``height`` inches with ``rows`` plots, one below the other over the same x axis.

    ``ratios`` are the relative heights of the plots.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained", facecolor=PAPER)
    made = figure.subplots(rows, 1, squeeze=False, sharex=rows > 1, height_ratios=ratios)
    for axes in made[:, 0]:
        dress(axes)
    return figure


def plot(height: float) -> tuple[Figure, Axes]:
    """A figure of ``height`` inches with a single plot, and this plot."""
    figure = blank(height)
    return figure, figure.axes[0]


def drawable(values: Any) -> Any:
    """Numbers as an array, limited to :data:`MOST_DRAWN`; positive ones also from below, for logarithms."""
    import numpy as np

    known = np.asarray(values, dtype=np.float64)
    above = np.where((known > 0) & (known < 1 / MOST_DRAWN), 1 / MOST_DRAWN, known)
    return np.where(np.isfinite(above), np.clip(above, -MOST_DRAWN, MOST_DRAWN), above)


def intervals(axes: Axes, rows: Sequence[tuple[str, float, float, float, str]]) -> None:
    """A dot on a line for each ``(name, value, low, high, colour)``, from the top."""
    for place, (_, *numbers, colour) in enumerate(reversed(rows)):
        value, low, high = drawable(numbers)
        axes.hlines([place], [low], [high], color=colour, lw=2.6)
        axes.plot([value], [place], "o", ms=6, color=colour)
    axes.set_yticks(range(len(rows)), [name for name, *_ in reversed(rows)])
    axes.set_ylim(-0.6, len(rows) - 0.4)


def dress(axes: Axes) -> None:
    """Give a plot the common style: few lines, quiet colours."""
    axes.set_facecolor(PAPER)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(MUTED)
    axes.tick_params(colors=MUTED, labelcolor=INK, labelsize=SMALL)
    axes.grid(visible=True, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def label(axes: Axes, x: str = "", y: str = "") -> None:
    axes.set_xlabel(words(x, 80), color=INK, fontsize=SMALL + 0.5)
    axes.set_ylabel(words(y, 60), color=INK, fontsize=SMALL + 0.5)


def legend(axes: Axes) -> None:
    axes.legend(frameon=False, fontsize=SMALL, labelcolor=INK, loc="best")


def legend_above(axes: Axes) -> None:
    """A legend above the plot, for plots that leave no room inside."""
    axes.legend(
        frameon=False,
        fontsize=SMALL - 0.5,
        labelcolor=INK,
        ncols=3,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
    )


def nothing(why: str) -> Figure:
    """A figure that only says why there is nothing to draw."""
    figure, axes = plot(1.2)
    axes.set_axis_off()
    axes.text(0.5, 0.5, words(why, 200), ha="center", va="center", color=MUTED, fontsize=SMALL + 1, wrap=True)
    return figure


def with_unit(axes: Axes, unit: str, which: str = "y") -> None:
    """Write the ticks as values with their unit: ``4 ms``; ``10.002 ms`` where the next is 10.004 ms."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    axis = axes.yaxis if which == "y" else axes.xaxis
    digits = USUAL_TICK_DIGITS
    if axis.get_scale() == "linear":
        locator = MaxNLocator("auto" if which == "y" else 7, steps=[1, 2, 5, 10])
        digits = _digits(locator.tick_values(*axis.get_view_interval()))
        if which == "x" and digits > USUAL_TICK_DIGITS:
            locator.set_params(nbins=4)  # room for longer words
        axis.set_major_locator(locator)
    axis.set_major_formatter(FuncFormatter(lambda value, _: words(say_value(value, unit, digits))))
    axis.set_minor_formatter(NullFormatter())


def _digits(ticks: Sequence[float]) -> int:
    """How many digits tell ticks apart whose distance has one digit."""
    step = min((abs(b - a) for a, b in pairwise(ticks)), default=0.0)
    size = max((abs(tick) for tick in ticks), default=0.0)
    if not 0 < step < size < math.inf:
        return USUAL_TICK_DIGITS
    places = math.floor(math.log10(size)) - math.floor(math.log10(step * (1 + 1e-9)))
    return min(max(places + 1, USUAL_TICK_DIGITS), MOST_DIGITS)


def whole_numbers(axes: Axes) -> None:
    """No ticks between whole numbers on a linear x axis: there is no half trial."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))


def counts(axes: Axes) -> None:
    """Write the ticks of a logarithmic x axis as whole numbers: ``10,000``."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def scale(axes: Axes, values: Sequence[float], which: str = "y") -> None:
    """Make the axis logarithmic if the values are positive and spread over more than a factor of eight."""
    from matplotlib.ticker import LogLocator

    known = [value for value in values if math.isfinite(value)]
    if not known or min(known) <= 0 or max(known) < 8 * min(known):
        return
    axis = axes.yaxis if which == "y" else axes.xaxis
    (axes.set_yscale if which == "y" else axes.set_xscale)("log")
    axis.set_major_locator(
        LogLocator(subs=(1.0, 2.0, 5.0) if max(known) < 300 * min(known) else (1.0,), numticks=8)
    )


def step_of(share: float) -> str:
    """The colour of a share from 0 to 1."""
    place = 0 if math.isnan(share) else int(share * len(STEPS))
    return STEPS[min(max(place, 0), len(STEPS) - 1)]


def on_step(share: float) -> str:
    """The colour of text that is readable on :func:`step_of` the same share."""
    return INK if share < 4 / len(STEPS) or math.isnan(share) else PAPER
