"""Figures of several studies. Each function takes a frame of this package and returns a matplotlib figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from autotune.report import drawing
from autotune.report.drawing import BAD, BEST, GOOD, GRID, INK, MUTED, SMALL, TRIAL, words
from autotune.report.rows import rows_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_STUDIES = 30


def studies_figure(frame: pd.DataFrame) -> Figure:
    """The speed-up of each study over its default, with its interval."""
    shown = frame[frame["speedup"].notna()].head(MOST_STUDIES)
    if shown.empty:
        return drawing.nothing("no study has been defended against its default yet")
    figure, axes = drawing.plot(0.7 + 0.28 * len(shown))
    rows = []
    for row in rows_of(shown):
        low, high = max(row.low, row.speedup / 20), min(row.high, row.speedup * 20)
        rows.append((words(row.study, 24), row.speedup, low, high, GOOD if row.low > 1 else TRIAL))
    drawing.intervals(axes, rows)
    axes.axvline(1.0, color=MUTED, lw=1, ls="--")
    drawing.scale(axes, [*shown["speedup"], 1.0], "x")
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    drawing.label(axes, "better than the default, as measured again")
    return figure


def regressions_figure(frame: pd.DataFrame) -> Figure:
    """Winner and default of each study over those of the first of its workload; right of 1 is worse."""
    shown = frame[frame["ratio"].notna()]
    if shown.empty:
        return drawing.nothing("nothing to compare")
    figure, axes = drawing.plot(0.7 + 0.28 * len(shown))
    colours = {"worse": BAD, "better": GOOD}
    rows = []
    for row in rows_of(shown):
        low, high = (end if math.isfinite(end) else row.ratio for end in (row.low, row.high))
        name = words(f"{row.study}: {row.who}", 30)
        rows.append((name, row.ratio, low, high, colours.get(row.verdict, TRIAL)))
    drawing.intervals(axes, rows)
    axes.axvline(1.0, color=MUTED, lw=1, ls="--")
    drawing.label(axes, "over the first study of its workload: above 1 is worse")
    return figure


def matrix_figure(frame: pd.DataFrame, row: str, column: str, value: str) -> Figure:
    """A square for each ``row`` and ``column`` of a long frame; it stands out if ``value`` is near 1."""
    if frame.empty:
        return drawing.nothing("nothing to compare")
    rows, columns = list(dict.fromkeys(frame[row])), list(dict.fromkeys(frame[column]))
    figure, axes = drawing.plot(0.9 + 0.32 * len(rows))
    away = np.abs(frame[value].to_numpy(dtype=np.float64) - 1.0)
    most = float(np.nanquantile(away, 0.8)) if np.isfinite(away).any() else 1.0
    for place in range(len(frame)):
        number = float(frame[value].iloc[place])
        x, y = columns.index(frame[column].iloc[place]), rows.index(frame[row].iloc[place])
        share = 1.0 - min(abs(number - 1.0) / most, 1.0) if most > 0 else 1.0
        _square(axes, x, y, share, f"{number:.2f}" if math.isfinite(number) else "-")
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks(range(len(columns)), [words(c, 22) for c in columns], rotation=25, ha="right")
    axes.set_yticks(range(len(rows)), [words(r, 34) for r in rows])
    axes.grid(visible=False)
    return figure


def _square(axes: Axes, x: int, y: int, share: float, text: str) -> None:
    from matplotlib.patches import Rectangle

    known = text != "-"
    colour = drawing.step_of(share * 0.99) if known else drawing.PAPER
    axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, color=colour, lw=0))
    ink = drawing.on_step(share * 0.99) if known else INK
    axes.text(x, y, text, ha="center", va="center", fontsize=SMALL - 1, color=ink)


def progress_figure(frame: pd.DataFrame) -> Figure:
    """How many trials each study has, by outcome."""
    shown = frame.head(MOST_STUDIES)
    if shown.empty:
        return drawing.nothing("no study in this store")
    figure, axes = drawing.plot(1.2 + 0.28 * len(shown))
    y = np.arange(len(shown))[::-1]
    left = np.zeros(len(shown))
    parts = (
        ("succeeded", shown["succeeded"], BEST),
        ("pruned", shown["pruned"], TRIAL),
        ("failed", shown["failed"], BAD),
        ("in flight", shown["in_flight"], GRID),
    )
    for name, counts, colour in parts:
        axes.barh(y, counts, left=left, height=0.6, color=colour, label=name)
        left = left + counts.to_numpy()
    axes.set_yticks(y, [words(name, 24) for name in shown["study"]])
    axes.grid(visible=False, axis="y")
    drawing.label(axes, "trials")
    drawing.legend_above(axes)
    return figure
