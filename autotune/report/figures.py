"""Figures of one study. Each function takes a frame of this package and returns a new matplotlib figure."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from autotune.report import drawing
from autotune.report.drawing import BAD, BEST, GOOD, INK, MUTED, PAPER, PARTS, RANDOM, SMALL, TRIAL, words
from autotune.report.numbers import say_seconds
from autotune.report.rows import rows_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_DOTS = 1500
"""More trials than this are drawn as bands of quantiles."""
MOST_POINTS = 300
"""Curves are drawn through at most so many points."""
BUCKETS = 60
MOST_KNOBS = 14
"""How many knobs are drawn: the first ones of a frame."""


def convergence_figure(frame: pd.DataFrame, by: str = "tries") -> Figure:
    """The best so far over tries (or ``seconds``), every trial, and the expected best of random draws."""
    if frame.empty or not frame["value"].notna().any():
        return drawing.nothing("no trial has a number yet")
    figure, axes = drawing.plot(3.2)
    x, values = frame[by].to_numpy(), drawing.drawable(frame["value"])
    known = np.isfinite(values)
    if known.sum() > MOST_DOTS:
        _bands(axes, x[known], values[known], by == "tries")
    else:
        axes.plot(x[known], values[known], "o", ms=3.2, color=TRIAL, mew=0, label="a trial")
    at = _thin(len(frame))
    if by == "tries":
        low, high = drawing.drawable(frame["random_low"])[at], drawing.drawable(frame["random_high"])[at]
        axes.fill_between(x[at], low, high, color=RANDOM, alpha=0.16, lw=0)
        middle = drawing.drawable(frame["random"])[at]
        axes.plot(x[at], middle, "--", lw=1.6, color=RANDOM, label="random, expected (90 % band)")
    steps = np.union1d(at, _changes(frame["best"].to_numpy()))
    best = drawing.drawable(frame["best"])[steps]
    axes.plot(x[steps], best, lw=2.2, color=BEST, drawstyle="steps-post", label="best so far")
    ends = _worth_showing(values[known], frame.attrs.get("goal", "minimize"))
    drawing.scale(axes, ends)
    _limit(axes, *ends)
    if by == "tries" and len(frame) > 200:
        axes.set_xscale("log")
        drawing.counts(axes)
    elif by == "tries":
        drawing.whole_numbers(axes)
    drawing.with_unit(axes, frame.attrs.get("unit", ""))
    drawing.label(axes, "trials" if by == "tries" else "seconds of searching", frame.attrs.get("metric", ""))
    drawing.legend(axes)
    return figure


def _bands(axes: Any, x: Any, values: Any, logarithmic: bool) -> None:
    """Draw bands that hold 90 % and half of the trials in each of up to :data:`BUCKETS` buckets along x."""
    edges = np.linspace(0, len(x), BUCKETS + 1)
    if logarithmic:  # each bucket as wide as the others on the axis, from the 30th trial on
        edges = np.append(0.0, np.geomspace(30, len(x), BUCKETS))
    edges = np.unique(edges.round().astype(int))
    parts = [values[a:b] for a, b in pairwise(edges)]
    middle = [float(np.mean(x[a:b])) for a, b in pairwise(edges)]
    for low, high, alpha in ((0.05, 0.95, 0.18), (0.25, 0.75, 0.3)):
        ends = np.array([np.quantile(part, (low, high)) for part in parts])
        name = "trials: 90 % and half of them" if alpha > 0.2 else None
        axes.fill_between(middle, ends[:, 0], ends[:, 1], color=TRIAL, alpha=alpha, lw=0, label=name)


def _thin(count: int) -> Any:
    return np.unique(np.geomspace(1, max(count, 1), MOST_POINTS).round().astype(int)) - 1


def _changes(best: Any) -> Any:
    return np.flatnonzero(np.append(True, best[1:] != best[:-1]) & np.isfinite(best))


def _worth_showing(values: Any, goal: str) -> tuple[float, float]:
    """The ends of the values without the worst tenth of them, which would flatten all that matters."""
    if len(values) < 10:
        return float(values.min()), float(values.max())
    low, high = np.quantile(values, (0.0, 0.9) if goal == "minimize" else (0.1, 1.0))
    return float(low), float(high)


def _limit(axes: Any, low: float, high: float) -> None:
    """Show these values, with a margin."""
    if not low < high:
        return
    if axes.get_yscale() == "log":
        margin = high**0.06 / low**0.06  # their ratio itself may be too large
        axes.set_ylim(low / margin, high * margin)
    else:
        margin = 0.08 * (high - low)
        axes.set_ylim(low - margin, high + margin)


def importance_figure(frame: pd.DataFrame) -> Figure:
    """A bar for each knob, with the range of nine tenths of the splits."""
    if frame.empty:
        return drawing.nothing(str(frame.attrs.get("remark", "")))
    from matplotlib.ticker import PercentFormatter

    shown = frame.head(MOST_KNOBS).iloc[::-1]
    figure, axes = drawing.plot(0.7 + 0.27 * len(shown))
    y = np.arange(len(shown))
    axes.barh(y, shown["importance"], height=0.62, color=BEST)
    axes.hlines(y, shown["low"], shown["high"], color=INK, lw=1.4)
    axes.set_yticks(y, [words(name, 28) for name in shown["knob"]])
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_formatter(PercentFormatter(1.0))
    drawing.label(axes, "share of the variance; line: nine splits in ten")
    return figure


def interactions_figure(frame: pd.DataFrame) -> Figure:
    """A square for each pair of knobs: the strength of their interaction."""
    if frame.empty:
        return drawing.nothing(str(frame.attrs.get("remark", "")))
    names = list(dict.fromkeys([*frame["knob"], *frame["other"]]))
    figure, axes = drawing.plot(0.9 + 0.42 * len(names))
    top = max(float(frame["strength"].max()), 1e-12)
    for row in rows_of(frame):
        one, other = names.index(row.knob), names.index(row.other)
        low, high = min(one, other), max(one, other)
        _cell(axes, low, high, float(row.strength) / top, f"{100 * row.strength:.2g} %")
    axes.set_xlim(-0.5, len(names) - 1.5)
    axes.set_ylim(len(names) - 0.5, 0.5)
    axes.set_xticks(range(len(names) - 1), [words(n, 14) for n in names[:-1]], rotation=20, ha="right")
    axes.set_yticks(range(1, len(names)), [words(n, 20) for n in names[1:]])
    axes.grid(visible=False)
    return figure


def _cell(axes: Any, x: float, y: float, share: float, text: str, size: float = SMALL) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, color=drawing.step_of(share), lw=0))
    axes.text(x, y, words(text, 24), ha="center", va="center", fontsize=size, color=drawing.on_step(share))


def pair_figure(frame: pd.DataFrame) -> Figure:
    """The best value of the goal at each pair of values of two knobs; the best stand out."""
    if frame.empty:
        return drawing.nothing("no trial has a number yet")
    one, other = frame.attrs["knob"], frame.attrs["other"]
    rows, columns = (
        dict(sorted(zip(frame[place], frame[label], strict=True)))
        for place, label in (("other_place", "other"), ("place", "value"))
    )
    figure, axes = drawing.plot(0.9 + 0.3 * len(rows))
    for cell in rows_of(frame):
        x, y = list(columns).index(cell.place), list(rows).index(cell.other_place)
        _cell(axes, x, y, float(cell.standing), cell.said if len(columns) <= 8 else "", SMALL - 2)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(-0.5, len(rows) - 0.5)
    axes.set_xticks(range(len(columns)), [words(c, 14) for c in columns.values()], rotation=30, ha="right")
    axes.set_yticks(range(len(rows)), [words(r, 18) for r in rows.values()])
    axes.grid(visible=False)
    drawing.label(axes, one, other)
    return figure


def parallel_figure(frame: pd.DataFrame) -> Figure:
    """A line for each trial through its values of all knobs; the best ones in front."""
    knobs = [name for name in frame.columns if name.startswith("knob.")][:MOST_KNOBS]
    if frame.empty or not knobs:
        return drawing.nothing("no trial has a number yet")
    figure, axes = drawing.plot(3.6)
    x = np.arange(len(knobs))
    for row in frame.sort_values("quantile", ascending=False).to_dict("records"):
        quantile = float(row["quantile"])
        best = quantile <= 0.05
        share = max(0.0, 0.9 - quantile)
        y = [row[name] for name in knobs]
        colour = BEST if best else drawing.step_of(share)
        axes.plot(x, y, color=colour, lw=1.8 if best else 0.7, alpha=0.9 if best else 0.6)
    for place, name in enumerate(knobs):
        ends = frame.attrs["ends"].get(name, ("", ""))
        for at, text in zip((-0.04, 1.04), ends, strict=True):
            axes.text(place, at, words(text, 10), ha="center", va="center", fontsize=SMALL - 1.5, color=MUTED)
    names = [words(name.removeprefix("knob."), 16) for name in knobs]
    axes.set_xticks(x, names, rotation=25, ha="right")
    axes.set_yticks([])
    axes.set_ylim(-0.1, 1.1)
    return figure


def failure_figure(frame: pd.DataFrame) -> Figure:
    """A row for each knob, a square for each value: how often trials failed there."""
    if frame.empty or not frame["failed"].any():
        return drawing.nothing("no trial failed")
    knobs = list(dict.fromkeys(frame["knob"]))[:MOST_KNOBS]
    figure, axes = drawing.plot(0.5 + 0.42 * len(knobs))
    most = int(frame["place"].max()) + 1
    for row in rows_of(frame[frame["knob"].isin(knobs)]):
        y = knobs.index(row.knob)
        count = int((frame["knob"] == row.knob).sum())
        x = (row.place + 0.5) * most / count - 0.5
        width = most / count
        _wide_cell(axes, x, y, width, float(row.share), str(row.value), int(row.trials))
    axes.set_xlim(-0.5, most - 0.5)
    axes.set_ylim(len(knobs) - 0.5, -0.5)
    axes.set_yticks(range(len(knobs)), [words(name, 22) for name in knobs])
    axes.set_xticks([])
    axes.grid(visible=False)
    drawing.label(axes, "share of trials that failed: the most stands out")
    return figure


def _wide_cell(axes: Any, x: float, y: float, width: float, share: float, text: str, trials: int) -> None:
    from matplotlib.patches import Rectangle

    colour = drawing.step_of(share) if trials else PAPER
    axes.add_patch(Rectangle((x - width / 2, y - 0.45), width * 0.97, 0.9, color=colour, lw=0))
    share_said = f"{share:.0%}" if trials else ""
    axes.text(
        x,
        y,
        f"{_fitting(text, max(3, int(10 * width)))}\n{share_said}",
        ha="center",
        va="center",
        fontsize=SMALL - 2.5,
        color=drawing.on_step(share),
    )


def _fitting(label: str, room: int) -> str:
    """``label``, or the lower end of a range, or a part of it, whichever fits into ``room`` characters."""
    if len(label) <= room:
        return words(label, room)
    low, between, _ = label.partition(" to ")
    return words(f"{low} …" if between and len(low) + 2 <= room + 2 else f"{label[: room - 1]}…", room + 2)


def front_figure(frame: pd.DataFrame) -> Figure:
    """Two goals against each other: every trial, and the Pareto front."""
    names = frame.attrs.get("goals", [])
    if frame.empty or len(names) < 2:
        return drawing.nothing(
            "one goal: there is no front" if len(names) < 2 else "no trial has a number yet"
        )
    figure, axes = drawing.plot(3.2)
    one, other = (f"metric.{name}" for name in names[:2])
    frame = frame.assign(**{column: drawing.drawable(frame[column]) for column in (one, other)})
    front = frame[frame["front"]].sort_values(one)
    rest = frame[~frame["front"]]
    rest = rest.iloc[:: max(1, len(rest) // MOST_DOTS)]
    axes.plot(rest[one], rest[other], "o", ms=3, color=TRIAL, mew=0, label="a trial")
    line = "o-" if len(names) == 2 else "o"  # with more goals, the front is no line in this plane
    axes.plot(front[one], front[other], line, ms=5, lw=1.4, color=BEST, label="front")
    for which, name in zip("xy", names, strict=False):
        drawing.scale(axes, frame[f"metric.{name}"].tolist(), which)
        drawing.with_unit(axes, frame.attrs["units"][name], which)
    drawing.label(axes, *(f"{name}, {frame.attrs['better'][name]} is better" for name in names[:2]))
    drawing.legend(axes)
    return figure


def spend_figure(frame: pd.DataFrame) -> Figure:
    """One bar: the wall clock of the search, by what the measuring device did."""
    shown = frame[frame["where"] == "device"]
    if shown.empty:
        return drawing.nothing("no time was recorded")
    figure, axes = drawing.plot(1.5 + 0.17 * math.ceil(len(shown) / 3))
    left = 0.0
    for place, row in enumerate(rows_of(shown)):
        name = f"{row.part} {say_seconds(row.seconds)} ({row.share:.0%})"
        axes.barh(
            [0], [row.seconds], left=left, height=0.5, color=PARTS[place % len(PARTS)], label=words(name, 60)
        )
        left += row.seconds
    axes.set_yticks([])
    axes.set_xlim(0, left)
    axes.grid(visible=False)
    drawing.label(axes, "seconds of searching")
    drawing.legend_above(axes)
    return figure


def finale_figure(frame: pd.DataFrame) -> Figure:
    """Winner, other finalists, default and baselines, each with its interval, as measured again."""
    if frame.empty:
        return drawing.nothing("nothing was measured again")
    figure, axes = drawing.plot(0.75 + 0.27 * len(frame))
    colours = {"winner": GOOD, "default": BAD, "baseline": RANDOM}
    rows = []
    for row in rows_of(frame):
        name = f"{row.label}, the winner" if row.role == "winner" else row.label
        rows.append((words(name, 30), row.value, row.low, row.high, colours.get(row.role, TRIAL)))
    drawing.intervals(axes, rows)
    drawing.scale(axes, [*frame["low"], *frame["high"]], "x")
    drawing.with_unit(axes, frame.attrs.get("unit", ""), "x")
    drawing.label(axes, frame.attrs.get("metric", ""))
    return figure


def _moves(column: pd.Series[Any]) -> bool:
    """Whether the column changes by more than a thousandth."""
    known = column.dropna()
    return len(known) > 1 and float(known.max() - known.min()) > 1e-3 * max(1.0, abs(float(known.max())))


def steadiness_figure(frame: pd.DataFrame) -> Figure:
    """Each reading relative to the median of its trial, over time; below, the state of the machine."""
    from autotune.report.steadiness import CONTEXT

    if frame.empty:
        return drawing.nothing("no readings are in the store")
    known = frame["ratio"][np.isfinite(frame["ratio"])]
    if known.empty:
        return drawing.nothing("every trial's median is 0: no reading can be divided by it")
    sampled = [name for name in CONTEXT if name in frame.columns and _moves(frame[name])][:3]
    figure = drawing.blank(2.2 + 1.05 * len(sampled), 1 + len(sampled), ratios=[2.0, *([1.0] * len(sampled))])
    top, *below = figure.axes
    shown = frame.iloc[:: max(1, len(frame) // MOST_DOTS)]
    counted, discarded = shown[shown["discarded"] == ""], shown[shown["discarded"] != ""]
    for purpose, colour, name in (("search", TRIAL, "while searching"), ("", BEST, "measured again")):
        own = counted[(counted["purpose"] == "search") == (purpose == "search")]
        if len(own):
            top.plot(own["at"], own["ratio"], "o", ms=2.6, mew=0, color=colour, alpha=0.8, label=name)
    if len(discarded):
        top.plot(discarded["at"], discarded["ratio"], "x", ms=4, color=BAD, label="discarded")
    ends = np.quantile(known, (0.01, 0.98))
    reach = max(abs(ends[0] - 1), abs(ends[1] - 1), 0.005) * 1.15
    top.set_ylim(1 - reach, 1 + reach)
    drawing.label(top, "" if below else "seconds since the first reading", "over its trial's median")
    drawing.legend_above(top)  # inside, the readings would cover it
    for axes, name in zip(below, sampled, strict=True):
        axes.plot(shown["at"], shown[name], "o", ms=2, mew=0, color=RANDOM, alpha=0.8)
        axes.set_title(words(CONTEXT[name], 70), fontsize=SMALL, color=INK, loc="left", pad=3)
    if below:
        drawing.label(below[-1], "seconds since the first reading")
    return figure
