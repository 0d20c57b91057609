"""Ranges of integers in real programs, where a number that leaves no rest is often the better one.

    python -m benchmarks.integer_ranges --record RECORDED.json
    python -m benchmarks.integer_ranges --recorded RECORDED.json --seeds 20 --out TABLE.md

Two programs are measured once for each of their configurations, on this machine, and then searched by the
record: a matrix product in C whose register tile is a compile-time constant of any size (gcc is needed), and
the layers of a network in NumPy on batches of any size, by the seconds for each sample. A record is of one
machine, and so are the figures.

Given is the score over 50 tries (:mod:`benchmarks.score`: 0 is random search, 1 the optimum), and in how many
tries the median search comes within 1 % and 5 % of the optimum.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import mean, median, stdev
from tempfile import TemporaryDirectory

import numpy as np

from autotune.measure.recordings.recording import Entry, Recording
from autotune.search.contract import Problem
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration
from autotune.space.knobs import Choice, IntegerRange, OrderedValues
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.recorded_spaces import observed
from benchmarks.running import at_least_one, known_strategies, one_thread_each, run_as_command, search_all
from benchmarks.score import LEAST, Judge

SECONDS = (MetricSpec("time", "minimize", "s"),)
SPACES = {
    "register tile": Space(
        [
            IntegerRange("rows", 1, 8, default=1),
            IntegerRange("columns", 1, 48, default=1),
            OrderedValues("steps", (1, 4), default=1),
        ]
    ),
    "layers": Space(
        [
            IntegerRange("batch", 1, 96, default=1),
            Choice("layout", ("rows", "columns")),
            Choice("precision", ("float32", "float64")),
        ]
    ),
}
LAYERS = (256, 192, 256, 192, 256)
RUNS = 25
"""Of the layers, of which the fastest counts."""
NEAR = (1.01, 1.05)


def tile_seconds(values: Mapping[str, object], folder: Path) -> float:
    """Of the matrix product, compiled with this tile."""
    source, program = Path(__file__).with_name("register_tile.c"), folder / "tile"
    sizes = [f"-D{name.upper()}={value}" for name, value in values.items()]
    flags = ["-O3", "-march=native", "-ffast-math"]
    subprocess.run(["gcc", *flags, *sizes, str(source), "-o", str(program)], check=True)
    runs = [subprocess.run([str(program)], check=True, capture_output=True, text=True) for _ in range(3)]
    return min(float(run.stdout.split()[0]) for run in runs)


def layer_seconds(values: Mapping[str, object], folder: Path) -> float:
    """Of the layers, for each sample of a batch."""
    precision, batch = str(values["precision"]), int(str(values["batch"]))
    rng = np.random.default_rng(0)
    weights = [rng.standard_normal(pair).astype(precision) for pair in pairwise(LAYERS)]
    if values["layout"] == "columns":
        weights = [np.asfortranarray(weight) for weight in weights]
    samples = rng.standard_normal((batch, LAYERS[0])).astype(precision)
    least = float("inf")
    for _ in range(RUNS):
        began, there = time.perf_counter(), samples
        for weight in weights:
            there = np.maximum(there @ weight, 0.0)
        least = min(least, time.perf_counter() - began)
    return least / batch


PROGRAMS = {"register tile": tile_seconds, "layers": layer_seconds}


def record(path: Path) -> None:
    """Measure every configuration of both spaces."""
    found: dict[str, list[tuple[dict[str, object], float]]] = {}
    with TemporaryDirectory() as folder:
        for name, space in SPACES.items():
            values: list[dict[str, object]] = [dict(one) for one in space.feasible]
            found[name] = [(one, PROGRAMS[name](one, Path(folder))) for one in values]
    path.write_text(json.dumps({"on": machine(), "spaces": found}))


def recordings(path: Path) -> Iterator[tuple[str, Recording]]:
    """What :func:`record` wrote."""
    for name, rows in json.loads(path.read_text())["spaces"].items():
        space = SPACES[name]
        entries = tuple(Entry(space.configuration(values), Status.OK, seconds) for values, seconds in rows)
        knobs = {knob.name: tuple(knob.cells[0].values) for knob in space.knobs}
        yield name, Recording(path, "kernel-tuner", name, "", knobs, {"time": "s"}, entries)


def search(path: Path, name: str, strategy: str, seed: int) -> list[dict[str, object]]:
    """What a search tried, in order. The first try is the default."""
    recording = dict(recordings(path))[name]
    searcher = make_strategy(strategy, Problem(SPACES[name], SECONDS, LEAST), seed)
    tried: list[Configuration] = []
    while len(tried) < LEAST:
        (proposal,) = searcher.ask()
        tried.append(proposal.configuration)
        searcher.tell([observed(recording, proposal.configuration, reason=proposal.reason)])
    return [dict(one) for one in tried]


def row(recording: Recording, strategy: str, searches: Sequence[Sequence[Mapping[str, object]]]) -> str:
    judge = Judge(recording)
    scores = [judge.judge(tried).score for tried in searches]  # type: ignore[arg-type]
    cells = [f"{mean(scores):.2f} ± {stdev(scores) / len(scores) ** 0.5 if len(scores) > 1 else 0.0:.2f}"]
    for near in NEAR:
        tries = [_tries_to(recording, near * judge.optimum, tried) for tried in searches]
        found = sum(count <= LEAST for count in tries)
        cells.append(
            f"{median(tries):.0f} ({found} of {len(tries)})" if 2 * found > len(tries) else f"– ({found})"
        )
    return f"| {recording.kernel} | `{strategy}` | {' | '.join(cells)} |"


def _tries_to(recording: Recording, seconds: float, tried: Sequence[Mapping[str, object]]) -> int:
    """The first try that is as fast; one more than there were where none is."""
    for number, values in enumerate(tried, 1):
        entry = recording.find(values)  # type: ignore[arg-type]
        if entry is not None and entry.time is not None and entry.time <= seconds:
            return number
    return LEAST + 1


def main() -> int:
    one_thread_each()
    parser = Options(__file__, __doc__)
    parser.aside("--record", type=Path, metavar="RECORDED.json")
    parser.add_argument("--recorded", type=Path, metavar="RECORDED.json")
    parser.add_argument("--strategies", default="auto,optuna-tpe,optuna-gp,skopt-gp,random")
    parser.add_argument("--seeds", type=at_least_one, default=20)
    parser.aside("--jobs", type=at_least_one, default=1)
    asked = parser.read()
    if asked.record:
        record(asked.record)
        return 0
    if not asked.recorded:
        parser.error("--record or --recorded is needed")
    strategies = known_strategies(asked.strategies)
    found = dict(recordings(asked.recorded))
    rows = head(f"program | strategy | score | tries to within 1 % (found in {LEAST}) | 5 %")
    runs = search_all(partial(search, asked.recorded), found, strategies, range(asked.seeds), asked.jobs)
    rows += (row(found[name], strategy, searches) for (name, strategy), searches in runs.items())
    on = json.loads(asked.recorded.read_text())["on"]
    about = (
        f"Recorded with `--record` on {on}. {software('optuna', 'scikit-optimize')}."
        f" {LEAST} tries, {asked.seeds} seeds."
    )
    publish(page("Ranges of integers", asked.command, about, rows), asked.out)
    return 0


if __name__ == "__main__":
    run_as_command(main)
