"""Searches whose optimum lies at a memory limit that they must discover, beside other tuners.

    python -m benchmarks.hidden_limits --methods auto,optuna-tpe-limit --seeds 20 --out RUNS.jsonl
    python -m benchmarks.hidden_limits --table RUNS.jsonl

The spaces (:mod:`benchmarks.hidden_spaces`) have 1,200 configurations, 20 % or 60 % of which do not fit.
No constraint says so. Where memory is *measured*, each success tells how much it used and a failure how much
there was, as a session records of a trial that was stopped at its cap, and everybody is told that cap
beforehand; else a trial is only *seen* to fail.
Every search begins with the default configuration, which fits, and has 60 tries, or ``--tries``. A repeat
counts as a try. The peers are in :mod:`benchmarks.hidden_peers`.

Lines that RUNS.jsonl already has are kept and not run again. A method whose package is missing is named,
and the exit code is 1. ``--table`` prints the table of what is there; its exit code is 1 where ``auto``
misses a bar.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from pathlib import Path
from statistics import mean, median
from typing import Any

from autotune.search.contract import Observation, Problem
from autotune.search.registry import make_strategy, strategy_class
from autotune.space.spec import MetricSpec
from autotune.status import Status
from benchmarks.hidden_peers import PEERS, Peer, make_peer
from benchmarks.hidden_spaces import NAMES, Limited, limited
from benchmarks.kept import add_line, kept_lines, read_searches
from benchmarks.publishing import head
from benchmarks.running import at_least_one, known_names, run_as_command, split_names

TRIES = 60
"""Of a search, where nothing else is said."""
TOLD = ("measured", "seen")
USES_MEMORY = ("auto", "optuna-tpe-limit", "optuna-gp-limit")
"""Methods to which a measured resource makes a difference; others stand in both tables with the same runs."""
SOON = 30
"""Tries in which the optimum is to be found where memory is measured."""
Line = dict[str, Any]
KEYS = ("method", "space", "told", "seed")
"""What a search is known by."""


class Own:
    """One of autotune's strategies, asked and told as a peer is."""

    def __init__(self, name: str, problem: Limited, measured: bool, seed: int, tries: int) -> None:
        self.problem, self.measured = problem, measured
        metrics = (MetricSpec("time", "minimize", "s"),)
        cap = problem.limit if measured else None
        self.strategy = make_strategy(name, Problem(problem.space, metrics, tries, memory=cap), seed)

    def ask(self) -> dict[str, Any]:
        self.asked = self.strategy.ask()[0]
        return dict(self.asked.configuration)

    def tell(self, values: Mapping[str, Any], seconds: float | None) -> None:
        configuration = self.problem.space.configuration(values)
        had = min(self.problem.shape.memory(values), self.problem.limit)
        status, metrics = (Status.OUT_OF_MEMORY, {}) if seconds is None else (Status.OK, {"time": seconds})
        resources = {"memory": had} if self.measured else {}
        reason = self.asked.reason
        self.strategy.tell([Observation(configuration, status, metrics, resources=resources, reason=reason)])


@lru_cache
def opened(name: str) -> Limited:
    return limited(name)


def search(method: str, name: str, told: str, seed: int, tries: int) -> Line:
    """Run one search. ``found`` is the try at which the optimum was reached, or null."""
    problem, measured = opened(name), told == "measured"
    tuner: Own | Peer  # the latter knows of no budget
    if method in PEERS:
        tuner = make_peer(method, problem, measured, seed)
    else:
        tuner = Own(method, problem, measured, seed, tries)
    tried: set[str] = set()
    infeasible, found = 0, None
    began = time.process_time()
    for attempt in range(1, tries + 1):
        values = tuner.ask()
        fits = problem.fits(values)
        seconds = problem.shape.seconds(values) if fits else None
        tried.add(problem.space.configuration(values).hash)
        infeasible += not fits
        if seconds is not None and found is None and math.isclose(seconds, problem.best):
            found = attempt
        tuner.tell(values, seconds)
    spent = time.process_time() - began
    head = {"method": method, "space": name, "told": told, "seed": seed}
    outcome = {"infeasible": infeasible, "repeats": tries - len(tried), "found": found}
    return {**head, **outcome, "seconds": round(spent, 3)}


def run(methods: Sequence[str], names: Sequence[str], seeds: Sequence[int], tries: int, out: Path) -> int:
    """Add the searches that ``out`` lacks."""
    there = {tuple(line[k] for k in KEYS) for line in kept_lines(out)}
    missing = set()
    for seed, name, method, told in product(seeds, names, methods, TOLD):
        needless = told == TOLD[0] and method not in USES_MEMORY
        if needless or method in missing or (method, name, told, seed) in there:
            continue
        try:
            line = search(method, name, told, seed, tries)
        except ImportError as error:
            print(f"{method}: {error}", file=sys.stderr)
            missing.add(method)
            continue
        add_line(out, line)
    return 1 if missing else 0


def table(lines: Sequence[Line]) -> tuple[str, bool]:
    """The tables in Markdown, and whether ``auto`` meets its bars."""
    text, met = [], True
    for told in TOLD:
        for share in sorted({line["space"].rpartition("-")[2] for line in lines}):
            rows = defaultdict(list)
            for line in lines:
                own_kind = line["told"] == told or line["method"] not in USES_MEMORY
                if own_kind and line["space"].endswith(f"-{share}"):
                    rows[line["method"]].append(line)
            if not rows:
                continue
            text += [f"### {share} % out of memory, {told}", "", *head(HEAD)]
            text += [_row(method, found) for method, found in sorted(rows.items(), key=_infeasible)] + [""]
            met &= _meets(rows, told)
    return "\n".join(text), met


HEAD = f"method | searches | infeasible | repeats | optimum found | in {SOON} tries | median try | worst try"


def _infeasible(row: tuple[str, Sequence[Line]]) -> float:
    return float(mean(line["infeasible"] for line in row[1]))


def _row(method: str, lines: Sequence[Line]) -> str:
    tries = sorted(line["found"] or math.inf for line in lines)
    found, soon = sum(math.isfinite(t) for t in tries), sum(t <= SOON for t in tries)
    typical, worst = (f"{t:.0f}" if math.isfinite(t) else "–" for t in (median(tries), tries[-1]))
    repeats = mean(line["repeats"] for line in lines)
    wasted = _infeasible((method, lines))
    head = f"| `{method}` | {len(lines)} | {wasted:.1f} | {repeats:.1f}"
    return f"{head} | {found} of {len(tries)} | {soon} | {typical} | {worst} |"


def _meets(rows: Mapping[str, Sequence[Line]], told: str) -> bool:
    own = rows.get("auto", [])
    latest = SOON if told == "measured" else math.inf
    others = [_infeasible((m, lines)) for m, lines in rows.items() if m != "auto"]
    return (
        all(line["found"] is not None and line["found"] <= latest and line["repeats"] == 0 for line in own)
        and bool(own)
        and all(_infeasible(("auto", own)) < other for other in others)
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", default=",".join(("auto", *PEERS)))
    parser.add_argument("--spaces", default=",".join(NAMES))
    parser.add_argument("--seeds", type=at_least_one, default=20)
    parser.add_argument("--first", type=int, default=5, help="the first seed; 0 to 4 served development")
    parser.add_argument(
        "--tries", type=at_least_one, default=TRIES, help="of each search; OUT holds one number of them"
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", type=Path, nargs="+", metavar="RUNS.jsonl")
    options = parser.parse_args()
    if options.table:
        text, met = table(read_searches(options.table, KEYS))
        print(text)
        return 0 if met else 1
    if options.out is None:
        parser.error("--out is needed, or --table")
    methods, spaces = split_names(options.methods), known_names(options.spaces, "space", NAMES)
    for method in methods:
        if method not in PEERS:
            strategy_class(method)
    seeds = range(options.first, options.first + options.seeds)
    return run(methods, spaces, seeds, options.tries, options.out)


if __name__ == "__main__":
    run_as_command(main)
