"""The chart of searches of how to train: one panel a space, a line a way, the best loss over time."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 200, 46, 30, 34
COLOURS = ("#1f6feb", "#8b949e", "#d29922", "#8957e5", "#3fb950")
INK, LINE = "#57606a", "#d0d7de"  # readable on a white and on a dark page
POINTS = 60

Run = Mapping[str, Any]


def chart(lines: Sequence[Run], spaces: Sequence[str], seconds: float) -> str:
    """The chart as SVG; medians over the seeds, the loss on a logarithmic scale."""
    ways = list(dict.fromkeys(str(x["way"]) for x in lines))
    width = LEFT + len(spaces) * (WIDTH + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {TOP + HEIGHT + 40}" font-size="12"'
        ' font-family="system-ui, sans-serif" role="img" aria-label="Best validation loss over time">'
    ]
    for number, way in enumerate(ways):
        x, colour = LEFT + 130 * number, COLOURS[number % len(COLOURS)]
        parts.append(f'<rect x="{x}" y="6" width="14" height="4" fill="{colour}"/>')
        parts.append(f'<text x="{x + 20}" y="12" fill="{INK}">{escape(way)}</text>')
    for column, space in enumerate(spaces):
        runs = {way: [x for x in lines if (x["space"], x["way"]) == (space, way)] for way in ways}
        parts += _panel(space, runs, LEFT + column * (WIDTH + GAP), seconds)
    return "\n".join([*parts, "</svg>", ""])


def _panel(space: str, runs: Mapping[str, Sequence[Run]], left: float, seconds: float) -> list[str]:
    curves = {way: curve for way, own in runs.items() if own and (curve := _median(own, seconds))}
    values = [loss for curve in curves.values() for _, loss in curve]
    frame = f'<rect x="{left}" y="{TOP}" width="{WIDTH - 10}" height="{HEIGHT}" fill="none" stroke="{LINE}"/>'
    parts = [frame, f'<text x="{left}" y="{TOP + HEIGHT + 18}" fill="{INK}">{escape(space)}</text>']
    right = f'x="{left + WIDTH - 10}" y="{TOP + HEIGHT + 18}" text-anchor="end" fill="{INK}"'
    parts.append(f"<text {right}>0 to {seconds:g} s</text>")
    if not values:
        return parts
    low = min(values)
    high = max(2.0 * low, statistics.median(curve[0][1] for curve in curves.values()))

    def y(loss: float) -> float:
        part = (math.log(min(loss, high)) - math.log(low)) / (math.log(high) - math.log(low))
        return TOP + HEIGHT - 4 - part * (HEIGHT - 8)

    for loss in (low, high):
        parts.append(
            f'<text x="{left - 4}" y="{y(loss) + 4:.0f}" text-anchor="end" fill="{INK}">{loss:.3g}</text>'
        )
    for number, way in enumerate(runs):
        points = " ".join(
            f"{left + at / seconds * (WIDTH - 10):.1f},{y(loss):.1f}" for at, loss in curves.get(way, [])
        )
        if points:
            colour = COLOURS[number % len(COLOURS)]
            parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
    return parts


def _median(runs: Sequence[Run], seconds: float) -> list[tuple[float, float]]:
    """The median of the best loss so far, from the moment on when most of the runs have one."""
    curve = []
    for place in range(POINTS + 1):
        at = seconds * place / POINTS
        best = [min((v for t, v in run["improved"] if t <= at), default=math.inf) for run in runs]
        median = statistics.median(best)
        if math.isfinite(median):
            curve.append((at, median))
    return curve
