"""The table of searches on recorded spaces.

    python -m benchmarks.report_efficiency RUNS.jsonl ... --spaces DIR --out benchmarks/results/FILE.md

RUNS.jsonl is what ``benchmarks.search_efficiency`` wrote. Each line is judged by :mod:`benchmarks.score` from
the configurations in it and the recording in DIR, and by nothing else.
"""

from __future__ import annotations

import platform
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from autotune.errors import InputError
from autotune.measure.recordings.read import read_recording
from benchmarks.kept import read_searches
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish
from benchmarks.recorded_spaces import recordings
from benchmarks.running import run_as_command
from benchmarks.score import Judge

Line = Mapping[str, Any]
KEYS = ("space", "strategy", "seed")
"""What a search is known by."""


@dataclass(frozen=True)
class Cell:
    """A strategy on a space, over its seeds."""

    scores: tuple[float, ...]
    r50: float
    r200: float
    tries: int
    """The least of any seed."""
    seconds: float

    @property
    def score(self) -> float:
        return mean(self.scores)

    @property
    def p10(self) -> float:
        return float(np.percentile(self.scores, 10))


def judges_of(lines: Iterable[Line], folder: Path, only: str = "") -> dict[str, Judge]:
    """The judges of the recordings in ``folder`` that the lines are about.

    One by which nothing can be judged is said and left out; :class:`InputError` where there is no other.
    """
    spaces = {line["space"] for line in lines}
    judges = {}
    for name, path in recordings(folder, only):
        if name in spaces:
            try:
                judges[name] = Judge(read_recording(path))
            except InputError as error:
                print(f"NOT JUDGED: {error}", file=sys.stderr)
    if not judges:
        raise InputError(f"no search was on a recording in {folder} by which it can be judged")
    return judges


def judged(lines: Iterable[Line], judges: Mapping[str, Judge]) -> dict[tuple[str, str], Cell]:
    """The cells of the table, by strategy and space. Lines about other spaces are left out."""
    groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        if line["space"] in judges:
            groups[line["strategy"], line["space"]].append(line)
    return {key: _cell(group, judges[key[1]]) for key, group in groups.items()}


def _cell(lines: list[Line], judge: Judge) -> Cell:
    verdicts = [judge.judge(line["configs"]) for line in lines]
    return Cell(
        scores=tuple(v.score for v in verdicts),
        r50=mean(v.r50 for v in verdicts),
        r200=mean(v.r200 for v in verdicts),
        tries=min(v.tries for v in verdicts),
        seconds=mean(float(line.get("seconds", float("nan"))) for line in lines),
    )


def table(cells: Mapping[tuple[str, str], Cell], spaces: Iterable[str]) -> list[str]:
    """One row a strategy, the best mean first; those that lack a space after those that have all."""
    names = list(spaces)
    rows = []
    for strategy in {strategy for strategy, _ in cells}:
        mine = {name: cells[strategy, name] for name in names if (strategy, name) in cells}
        rows.append((len(mine), mean(c.score for c in mine.values()), strategy, mine))
    lines = head(f"strategy | seeds | mean | p10 | {' | '.join(names)} | seconds")
    for count, score, strategy, mine in sorted(rows, key=lambda row: (-row[0], -row[1], row[2])):
        seeds = sorted({len(cell.scores) for cell in mine.values()})
        shown = [f"{c.score:.2f} ({c.p10:.2f})" if (c := mine.get(name)) else "" for name in names]
        whole = [f"{score:.3f}", f"{mean(c.p10 for c in mine.values()):.3f}"]
        if count < len(names):
            whole = ["", ""]  # a mean over other spaces is no comparison
        seconds = f"{mean(c.seconds for c in mine.values()):.2f}"
        cells_shown = [strategy, "-".join(map(str, dict.fromkeys((seeds[0], seeds[-1])))), *whole, *shown]
        lines.append(f"| {' | '.join([*cells_shown, seconds])} |")
    return lines


def versions(lines: Iterable[Line]) -> str:
    """Everything that the lines say they ran on, and Python."""
    on = sorted({line["on"] for line in lines if "on" in line})
    return f"{'; '.join(on)}; Python {platform.python_version()}."


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUNS.jsonl")
    parser.add_argument("--spaces", type=Path, required=True, help="directory of recordings")
    parser.add_argument("--only", default="", help="names of recordings, separated by commas; default: all")
    options = parser.read()
    lines = read_searches(options.runs, KEYS)
    judges = judges_of(lines, options.spaces, options.only)
    cells = judged(lines, judges)
    about = (
        "Spaces that others measured exhaustively on real GPUs: a replay, no GPU was used here. 0 is "
        "random search, 1 the optimum found at once (`benchmarks/score.py`; Willemsen et al. 2024). A "
        "cell is the mean over seeds, in brackets the tenth percentile. `seconds` is the processor time "
        "of the strategy itself for a search: a peer's ends at the budget."
    )
    budgets = ", ".join(f"{name} {judge.budget}" for name, judge in judges.items())
    parts = about, f"Budgets in tries: {budgets}.", versions(lines), table(cells, judges)
    publish(page("Searching recorded GPU spaces", options.command, *parts), options.out)


if __name__ == "__main__":
    run_as_command(main)
