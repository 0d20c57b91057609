"""How many readings it takes to choose well, on raw readings that were recorded on real GPUs.

    python -m benchmarks.racing --spaces DIR --seeds 20 --jobs 2 --out benchmarks/results/racing.md

A search tries 220 configurations: in random order, or those that ``auto`` asks for (told the recorded
times, so that every rule meets the same ones in the same order). Each rule reads each configuration from the
start of its recorded readings, and in the end names one. What is counted are readings, warm-ups included; a
configuration that failed has none. The choice is judged by the mean of all that was recorded of it: *regret*
is that over the same of what a fixed 32 readings chose, less 1. (A fixed 32 sees what it is judged by.)

``own`` is what a session does, through the same rules, with the default settings of a space
file (a warm-up, then readings until precise, rejected or capped), each configuration held against the best
so far, and in the end the finale with its verdict: the five best and the default (which is the first
configuration tried) read in rounds, going on where the search stopped reading; its readings count too. No
contender is read in more rounds than the recording has readings of it; the tape begins anew after the last.
``own, read to the end`` does without early rejection. ``nvbench`` is the rule of NVIDIA's nvbench as it
documents it: ten readings at least, then until the relative standard deviation is below 0.5 %, or has
settled (its least time is left out: it would only add readings). Kernel Tuner reads a fixed 7 times.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from pathlib import Path

from autotune.errors import InputError
from autotune.measure.recordings.recording import Entry, Recording
from autotune.search.contract import Problem
from autotune.search.registry import make_strategy
from autotune.space.space import Space
from benchmarks.options import Options
from benchmarks.publishing import publish
from benchmarks.racing_report import Line, report
from benchmarks.racing_rules import FIXED, METRICS, MOST, RULES, TRIES, Choice, Race
from benchmarks.recorded_spaces import entry_of, observed, opened, recordings, space_name
from benchmarks.running import at_least_one, in_workers, known_strategies, one_thread_each, run_as_command


def race(path: Path, order: str, seed: int) -> Race:
    """What one search tries."""
    recording, space = opened(path)
    entries = tuple(islice(_tried(order, recording, space, seed), TRIES))
    return Race(space, replace(recording, entries=entries), seed)


def _tried(order: str, recording: Recording, space: Space, seed: int) -> Iterator[Entry]:
    strategy = make_strategy(order, Problem(space, METRICS, TRIES), seed)
    while proposals := strategy.ask():
        configuration = proposals[0].configuration
        yield entry_of(recording, configuration)
        strategy.tell([observed(recording, configuration)])


def run(path: Path, order: str, seed: int) -> list[Line]:
    """Each rule on one race."""
    tried = race(path, order, seed)
    if min((len(entry.readings) for entry in tried.measured), default=0) < 2:
        raise InputError(f"{path}: a rule needs two raw readings at least of each configuration that ran")
    choices = {name: rule(tried) for name, rule in RULES.items()}
    least = _mean(tried, choices[FIXED])
    return [
        Line(
            space=space_name(path),
            order=order,
            rule=name,
            readings=choice.readings,
            finale=choice.finale,
            fixed=MOST * len(tried.measured),
            regret=_mean(tried, choice) / least - 1,
        )
        for name, choice in choices.items()
    ]


def _mean(tried: Race, choice: Choice) -> float:
    return statistics.fmean(entry_of(tried.recording, choice.chosen).readings)


def arguments() -> argparse.Namespace:
    parser = Options(__file__, __doc__)
    parser.add_argument("--spaces", type=Path, required=True, help="directory of recordings")
    parser.add_argument("--only", default="", help="names of recordings, separated by commas; default: all")
    parser.add_argument("--orders", default="random,auto", help="strategies that choose what is tried")
    parser.add_argument("--seeds", type=at_least_one, default=20)
    parser.aside("--jobs", type=at_least_one, default=os.cpu_count() or 1)
    return parser.read()


def main() -> int:
    one_thread_each()
    options = arguments()
    paths = [path for _, path in recordings(options.spaces, options.only)]
    orders = known_strategies(options.orders)
    todo = list(product(paths, orders, range(options.seeds)))
    lines: list[Line] = []
    for _, found in in_workers(run, todo, options.jobs):
        lines += found
        print(".", end="", flush=True, file=sys.stderr)
    lines.sort(key=lambda x: orders.index(x.order))
    publish(report(lines, paths, options.command), options.out)
    return 0


if __name__ == "__main__":
    run_as_command(main)
