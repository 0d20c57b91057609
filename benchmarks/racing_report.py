"""The table of :mod:`benchmarks.racing`."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autotune.measure.recordings.read import read_recording
from benchmarks.publishing import head, page, software
from benchmarks.racing_rules import RULES, TRIES
from benchmarks.recorded_spaces import space_name

GOAL = 0.005
"""How much worse a choice may be and still count as good."""


@dataclass(frozen=True)
class Line:
    """What came of one rule on one race."""

    space: str
    order: str
    rule: str
    readings: int
    finale: int
    fixed: int
    """What a fixed 32 would have read."""
    regret: float


def report(lines: Sequence[Line], paths: Sequence[Path], command: str) -> str:
    seeds = len(lines) // len(RULES) // len({(line.space, line.order) for line in lines})
    parts: list[str | list[str]] = [
        f"{software('numpy')}, {seeds} seeds,"
        f" searches of {TRIES} tries on recordings of GPUs; no GPU was used here."
        " What each rule is, the module says."
    ]
    for order in dict.fromkeys(line.order for line in lines):
        some = [line for line in lines if line.order == order]
        parts += [f"## Tried by `{order}`", list(_summary(some)), list(_by_space(some))]
    parts += ["## What was recorded", list(_recorded(paths))]
    return page("How many readings a choice takes", command, *parts)


def _summary(lines: Sequence[Line]) -> Iterator[str]:
    yield from head(
        "rule | readings over a fixed 32's | least to most | in the finale | regret: median | worst"
    )
    for rule in RULES:
        some = [x for x in lines if x.rule == rule]
        shares = [x.readings / x.fixed for x in some]
        finale = statistics.fmean(x.finale / x.fixed for x in some)
        regrets = [x.regret for x in some]
        yield (
            f"| {rule} | {statistics.fmean(shares):.3f} | {min(shares):.3f} to {max(shares):.3f}"
            f" | {finale:.3f} | {statistics.median(regrets):.2%} | {max(regrets):.2%} |"
        )


def _by_space(lines: Sequence[Line]) -> Iterator[str]:
    spaces = list(dict.fromkeys(line.space for line in lines))
    yield "By space: readings over a fixed 32's; worst regret; choices within 0.5 % of a fixed 32's."
    yield ""
    yield from head(" | ".join(["rule", *spaces]))
    for rule in RULES:
        cells = []
        for space in spaces:
            some = [x for x in lines if (x.rule, x.space) == (rule, space)]
            share = statistics.fmean(x.readings / x.fixed for x in some)
            good = sum(x.regret <= GOAL for x in some)
            cells.append(f"{share:.3f}; {max(x.regret for x in some):.2%}; {good} of {len(some)}")
        yield f"| {rule} | {' | '.join(cells)} |"


def _recorded(paths: Sequence[Path]) -> Iterator[str]:
    yield "Medians over configurations; noise is the interquartile range over 1.35, over the median."
    yield "A fixed 32 is counted as 32 where fewer were recorded, and chooses by what there is. What"
    yield "drifts in a recording (the halves of the W7800's) does not cancel in the finale, as it does on a"
    yield "machine: its configurations were not read side by side."
    yield ""
    yield from head(
        "space | readings | noise | first over median | second | last | halves apart (90th percentile)"
    )
    for path in paths:
        found = [entry.readings for entry in read_recording(path).entries if entry.readings]
        n = min(map(len, found))
        times = np.array([values[:n] for values in found])
        middle = np.median(times, axis=1)
        noise = np.subtract(*np.percentile(times, [75, 25], axis=1)) / 1.35 / middle
        first, second, last = (np.median(times[:, i] / middle) for i in (0, 1, -1))
        halves = np.median(times[:, n // 2 :], axis=1) / np.median(times[:, : n // 2], axis=1)
        apart = np.percentile(np.abs(halves - 1), 90)
        yield (
            f"| {space_name(path)} | {n} | {np.median(noise):.2%} | {first:.3f} | {second:.3f} | {last:.3f}"
            f" | {apart:.1%} |"
        )
