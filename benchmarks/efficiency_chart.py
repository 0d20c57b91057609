"""The chart of searches on recorded spaces: one row a strategy, a bar for its mean score, a dot a space.

    python -m benchmarks.efficiency_chart RUNS.jsonl ... --spaces DIR \\
        --out benchmarks/results/search_efficiency.svg

Only strategies that were run on every space of RUNS.jsonl are shown, at most ``--rows``, the best first.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import mean

from benchmarks.kept import read_searches
from benchmarks.report_efficiency import KEYS, Cell, judged, judges_of
from benchmarks.running import at_least_one, run_as_command, split_names

LEFT, RIGHT, TOP, ROW, WIDTH = 210, 60, 34, 24, 780
LEAST = -0.6
"""Scores below this are drawn here: how much worse than random a strategy was is not the point."""
OURS, THEIRS, RANDOM = "#1f6feb", "#8b949e", "#c9d1d9"
INK, LINE = "#57606a", "#d0d7de"  # readable on a white and on a dark page


@dataclass(frozen=True)
class Row:
    """A strategy with its score on each space."""

    strategy: str
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        return mean(self.scores)


def rows(cells: Mapping[tuple[str, str], Cell], spaces: Sequence[str]) -> list[Row]:
    """The strategies that have every space, the best mean first."""
    names = sorted({strategy for strategy, _ in cells})
    whole = [name for name in names if all((name, space) in cells for space in spaces)]
    made = [Row(name, tuple(cells[name, space].score for space in spaces)) for name in whole]
    return sorted(made, key=lambda row: -row.mean)


def chart(shown: Sequence[Row], ours: frozenset[str]) -> str:
    """The chart as SVG."""
    height = TOP + ROW * len(shown) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-size="12" '
        f'font-family="system-ui, sans-serif" role="img" aria-label="Mean score by strategy">'
    ]
    for tick in (-0.5, 0.0, 0.5, 1.0):
        x = _x(tick)
        name = {0.0: "0 (random)", 1.0: "1 (optimum at once)"}.get(tick, f"{tick:g}")
        parts.append(f'<path d="M{x:.1f} {TOP - 6}V{height - 24}" stroke="{LINE}"/>')
        anchor = "end" if tick == 1 else "middle"
        parts.append(_text(x, TOP - 14, name, anchor))
    for number, row in enumerate(shown):
        parts += _row(row, TOP + ROW * number, row.strategy in ours)
    parts.append(_text(LEFT, height - 6, "Bars: mean score over the spaces. Dots: the spaces.", "start"))
    return "\n".join([*parts, "</svg>", ""])


def _row(row: Row, y: float, ours: bool) -> list[str]:
    colour = OURS if ours else RANDOM if row.strategy == "random" else THEIRS
    start, end = sorted((_x(0.0), _x(row.mean)))
    middle = y + ROW / 2
    bar = f'<rect x="{start:.1f}" y="{y + 4}" width="{end - start:.1f}" height="{ROW - 8}" fill="{colour}"/>'
    dots = [f'<circle cx="{_x(s):.1f}" cy="{middle}" r="3" fill="none" stroke="{INK}"/>' for s in row.scores]
    label = _text(LEFT - 10, middle + 4, row.strategy, "end")
    value = _text(WIDTH - 8, middle + 4, f"{row.mean:.2f}", "end")
    return [bar, *dots, label, value]


def _x(score: float) -> float:
    return LEFT + (max(score, LEAST) - LEAST) / (1 - LEAST) * (WIDTH - LEFT - RIGHT)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{INK}">{escape(text)}</text>'


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUNS.jsonl")
    parser.add_argument("--spaces", type=Path, required=True, help="directory of recordings")
    parser.add_argument("--ours", default="auto", help="strategies to be coloured, separated by commas")
    parser.add_argument("--rows", type=at_least_one, default=16)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    lines = read_searches(options.runs, KEYS)
    judges = judges_of(lines, options.spaces)
    shown = rows(judged(lines, judges), list(judges))[: options.rows]
    if not shown:
        raise SystemExit(f"no strategy was run on all of {', '.join(judges)}")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(chart(shown, frozenset(split_names(options.ours))))


if __name__ == "__main__":
    run_as_command(main)
