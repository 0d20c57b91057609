"""Whether counting what a trial costs saves time, with the compile times that were recorded on real GPUs.

    python -m benchmarks.cost --spaces DIR --seeds 10 --jobs 2 --out benchmarks/results/cost.md

A trial costs the seconds that its compilation, its verification and its benchmark took when it was recorded.
What is counted are the seconds until a search has found a configuration within 5 % of the optimum; one that
has not in the time of 220 median trials counts with all of it. Beside a search that knows of no limit stands
one that is told of it, so that cost counts, in two ways:

``anew``     every configuration is compiled anew, as it was recorded.
``launch``   the knobs named ``block_size_...`` are taken to be set when the kernel is launched: what
             differs from an earlier configuration in them alone needs no compilation, with or without the
             option ``rebuild``, which names the others.

The recordings of the second way are of kernels that were compiled anew each time: that it need not have been
so is an assumption, which only serves to give knobs of which some are cheap and some are not.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from autotune.errors import InputError
from autotune.measure.recordings.recording import Entry
from autotune.search.contract import Option, Problem
from autotune.search.registry import make_strategy
from autotune.space.spec import MetricSpec
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish, software
from benchmarks.recorded_spaces import entry_of, observed, opened, recordings, space_name
from benchmarks.running import at_least_one, in_workers, known_names, one_thread_each, run_as_command

TRIALS = 220
"""Of median length fit into the time of a search."""
NEAR = 1.05
CHEAP = "block_size_"
"""How the names of the knobs begin that are taken to need no compilation."""
WAYS = ("anew", "launch")
"""Every configuration compiled anew; or only where a knob differs that is not set at the launch."""


@dataclass(frozen=True)
class Line:
    space: str
    way: str
    counted: bool
    seed: int
    seconds: float
    tries: int
    builds: int
    found: bool


def run(path: Path, way: str, counted: bool, seed: int) -> Line | None:
    """One search; ``None`` where the space has no knobs of both kinds."""
    recording, space = opened(path)
    times = [entry.time for entry in recording.entries if entry.time is not None]
    if not times:
        raise InputError(f"{path}: every configuration failed, so that there is no optimum to be found")
    building = [k.name for k in space.knobs if way == "anew" or not k.name.startswith(CHEAP)]
    if way == "launch" and len(building) in (0, len(space.knobs)):
        return None
    options: dict[str, Option] = {"rebuild": ",".join(building)} if counted and way == "launch" else {}
    limit = TRIALS * statistics.median(_seconds(entry, compiled=False) for entry in recording.entries)
    goals = (MetricSpec("time", "minimize", "s"),)
    problem = Problem(space, goals, options=options, seconds=limit if counted else None)
    strategy = make_strategy("bayes", problem, seed)
    goal = NEAR * min(times)
    best, spent, tries, built = math.inf, 0.0, 0, set()
    while best > goal and spent < limit and (proposals := strategy.ask()):
        configuration = proposals[0].configuration
        build = tuple(configuration[name] for name in building)
        seconds = _seconds(entry_of(recording, configuration), compiled=build in built)
        built.add(build)
        spent += seconds
        tries += 1
        heard = observed(recording, configuration, seconds=seconds)
        best = min(best, heard.metrics.get("time", math.inf))
        strategy.tell([heard])
    return Line(space_name(path), way, counted, seed, min(spent, limit), tries, len(built), best <= goal)


def _seconds(entry: Entry, compiled: bool) -> float:
    measured = entry.verification_seconds + entry.benchmark_seconds
    return measured if compiled else measured + entry.compile_seconds


def report(lines: Sequence[Line], command: str) -> str:
    about = (
        f"{software('numpy')},"
        f" seeds 0 to {max(x.seed for x in lines)}, recordings of GPUs; no GPU was used here."
        " Seconds, builds and tries until a configuration within 5 % of the optimum was found: medians over"
        " seeds, quartiles of the seconds in brackets. The ratio is of the seconds of a search that is told"
        " to those of one that is not, seed by seed: its geometric mean."
    )
    return page("What counting the cost of a trial saves", command, about, list(_table(lines)))


def _table(lines: Sequence[Line]) -> Iterator[str]:
    yield from head("space | compiled | told | seconds | builds | tries | not found | ratio")
    words = {"anew": "always", "launch": "for other knobs than the block's"}
    for way, space in product(WAYS, dict.fromkeys(line.space for line in lines)):
        some = [x for x in lines if (x.space, x.way) == (space, way)]
        plain = {x.seed: x.seconds for x in some if not x.counted}
        for counted in (False, True):
            mine = [x for x in some if x.counted == counted]
            if not mine:
                continue
            low, middle, high = np.percentile([x.seconds for x in mine], [25, 50, 75])
            ratio = math.exp(statistics.fmean(math.log(x.seconds / plain[x.seed]) for x in mine))
            told = ("the limit" if way == "anew" else "the limit, `rebuild`") if counted else "nothing"
            yield (
                f"| {space} | {words[way]} | {told} | {middle:.1f} ({low:.1f} to {high:.1f})"
                f" | {statistics.median(x.builds for x in mine):.0f}"
                f" | {statistics.median(x.tries for x in mine):.0f}"
                f" | {sum(not x.found for x in mine)} | {f'{ratio:.2f}' if counted else ''} |"
            )


def arguments() -> argparse.Namespace:
    parser = Options(__file__, __doc__)
    parser.add_argument("--spaces", type=Path, required=True, help="directory of recordings")
    parser.add_argument("--only", default="", help="names of recordings, separated by commas; default: all")
    parser.add_argument("--ways", default=",".join(WAYS), help="of %(default)s")
    parser.add_argument("--seeds", type=at_least_one, default=10)
    parser.aside("--jobs", type=at_least_one, default=os.cpu_count() or 1)
    return parser.read()


def main() -> int:
    one_thread_each()
    options = arguments()
    paths = [path for _, path in recordings(options.spaces, options.only)]
    ways = known_names(options.ways, "way", WAYS)
    todo = list(product(paths, ways, (False, True), range(options.seeds)))
    lines: list[Line] = []
    for _, line in in_workers(run, todo, options.jobs):
        lines += [line] if line is not None else []
        print(".", end="", flush=True, file=sys.stderr)
    publish(report(lines, options.command), options.out)
    return 0


if __name__ == "__main__":
    run_as_command(main)
