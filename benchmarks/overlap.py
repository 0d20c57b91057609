"""Preparing beside measuring, and one after the other: the same trials, and what it does to the readings.

    python -m benchmarks.overlap --trials 60 --repeats 3 --out benchmarks/results/overlap.md

Both search the ready space gemm-c by the same random proposals, from an empty store, and compile all anew.
*In turn* has one trial at a time: prepared on its core, then measured on the other. *Overlapped* is what a
search does. The two alternate, and which of them begins does too, so that a slow hour of the machine
falls on both. Each wall time runs from the first trial's beginning to the last one's end.

Readings are compared configuration by configuration, with the configurations that both have measured:
the ratio of their medians, overlapped over in turn, the geometric mean of it, and its interval by bootstrap
over the configurations. 1 means that compilers on the next core do not disturb a measurement.

What can be gained depends on how preparing and measuring compare, and so on the size of the product: where
one of them takes far longer, its time is what is left. At the first size they are about equal.

The last line is the ratio of the wall times at the first size: the median of the repeats.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from autotune.provenance.device import device_facts
from autotune.provenance.environment import Environment
from autotune.report.timeline import Spans, busy, spans_of, timeline_svg
from autotune.session.api import capture_environment
from autotune.session.executor_workers import WorkerExecutor
from autotune.session.loading import load_spec
from autotune.session.session import Session
from autotune.space.spec import StudySpec
from autotune.status import Status
from autotune.store.records import TrialRecord
from autotune.store.store import Store
from benchmarks.running import one_thread_each

BAR = 0.65
SPACE = Path(__file__).parents[1] / "searchspaces" / "gemm-c.yaml"
MODES = ("in turn", "overlapped")


@dataclass(frozen=True)
class Search:
    """What one search took, in seconds, and what it read."""

    wall: float
    prepare: float
    measure: float
    spans: Spans
    times: dict[str, float]
    """The median reading of each configuration that was measured, by its hash."""


Searches = dict[str, list[Search]]
"""Those of each mode, in the order of the repeats."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sizes", type=int, nargs="+", default=[720], help="m, n and k of the product")
    parser.add_argument("--remark", default="", help="on the machine, for the table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="the table, as Markdown; the timeline goes beside it")
    options = parser.parse_args()
    one_thread_each()
    load = os.getloadavg()[0]
    found = {size: compare(options, size) for size in options.sizes}
    lines = report(found, options, load)
    print("\n".join(lines))
    first = found[options.sizes[0]]
    if options.out:
        options.out.write_text("\n".join([*lines, "", "![timeline](overlap.svg)", ""]))
        middle = sorted(first["overlapped"], key=lambda search: search.wall)[options.repeats // 2]
        options.out.with_suffix(".svg").write_text(timeline_svg(middle.spans))
    print(f"{wall_ratio(first):.3f}")


def compare(options: argparse.Namespace, size: int) -> Searches:
    """Both modes, alternating."""
    spec = _spec(options.trials, size, options.seed)
    environment = capture_environment(spec)
    searches: Searches = {mode: [] for mode in MODES}
    for repeat in range(options.repeats):
        for mode in MODES if repeat % 2 == 0 else MODES[::-1]:
            found = search(spec, environment, serial=mode == "in turn")
            searches[mode].append(found)
            print(f"{size}, {repeat + 1}/{options.repeats}, {mode}: {found.wall:.1f} s", flush=True)
    return searches


def _spec(trials: int, size: int, seed: int) -> StudySpec:
    spec = load_spec(SPACE, trials=trials, strategy="random", seed=seed)
    workload = type(spec.workload)({**spec.workload, "m": size, "n": size, "k": size})
    budget = replace(spec.budget, time=None, patience=None)
    return replace(spec, workload=workload, budget=budget, measure=replace(spec.measure, finalists=0))


def search(spec: StudySpec, environment: Environment, serial: bool) -> Search:
    """One search from an empty store."""
    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/study.db") as store:
        executor = WorkerExecutor(spec, device_facts())
        if serial:
            executor.capacity = 1
        result = Session(spec, store, executor, environment).run()
        times = {t.hash: _median(store, t) for t in result.trials if t.status in (Status.OK, Status.PRUNED)}
    spans = spans_of(result.trials)
    phases = [trial.phases for trial in result.trials]
    prepare = math.fsum(p.get("prepare", 0.0) for p in phases)
    return Search(spans.wall, prepare, math.fsum(sum(p.values()) for p in phases) - prepare, spans, times)


def _median(store: Store, trial: TrialRecord) -> float:
    return statistics.median(
        r.value for r in store.readings(trial.id) if r.metric == "time" and not r.discarded
    )


def wall_ratio(searches: Searches) -> float:
    pairs = zip(searches["overlapped"], searches["in turn"], strict=True)
    return statistics.median(overlapped.wall / serial.wall for overlapped, serial in pairs)


def reading_ratios(searches: Searches) -> list[float]:
    """One a configuration: overlapped over in turn, the medians over the repeats."""
    middles = {mode: _middles(found) for mode, found in searches.items()}
    both = middles["overlapped"].keys() & middles["in turn"].keys()
    return [middles["overlapped"][name] / middles["in turn"][name] for name in sorted(both)]


def _middles(searches: Sequence[Search]) -> dict[str, float]:
    names = {name for found in searches for name in found.times}
    return {name: statistics.median(s.times[name] for s in searches if name in s.times) for name in names}


def geometric_mean(ratios: Sequence[float], seed: int = 0) -> tuple[float, float, float]:
    """The geometric mean, and its 95 % interval by bootstrap over the ratios."""
    logs = np.log(np.asarray(ratios))
    draws = np.random.default_rng(seed).choice(logs, (4000, len(logs))).mean(axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    return math.exp(logs.mean()), math.exp(low), math.exp(high)


def report(found: dict[int, Searches], options: argparse.Namespace, load: float) -> list[str]:
    import autotune

    lines = [
        "# Preparing beside measuring",
        "",
        f"`python -m benchmarks.overlap --trials {options.trials} --repeats {options.repeats}"
        f" --sizes {' '.join(map(str, options.sizes))} --seed {options.seed}`",
        "",
        f"autotune {autotune.__version__}, Python {platform.python_version()}, {os.cpu_count()} cores."
        f" gemm-c, {options.trials} random trials, {options.repeats} repeats, interleaved."
        f" Load average {load:.1f} before the run and {os.getloadavg()[0]:.1f} after it."
        f"{' ' + options.remark if options.remark else ''}",
        "",
        "| size | | wall s | preparing s | measuring s | the measuring core is busy |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_row(size, mode, searches[mode]) for size, searches in found.items() for mode in MODES]
    for size, searches in found.items():
        lines += ["", *_ratios(size, searches)]
    return lines


def _row(size: int, mode: str, found: Sequence[Search]) -> str:
    walls = sorted(s.wall for s in found)
    return (
        f"| {size} | {mode} | {statistics.median(walls):.1f} ({walls[0]:.1f} to {walls[-1]:.1f})"
        f" | {statistics.median(s.prepare for s in found):.1f}"
        f" | {statistics.median(s.measure for s in found):.1f}"
        f" | {statistics.median(busy(s.spans) for s in found):.0%} |"
    )


def _ratios(size: int, searches: Searches) -> list[str]:
    ratio, least = wall_ratio(searches), _least(searches)
    pairs = zip(searches["overlapped"], searches["in turn"], strict=True)
    each = ", ".join(f"{overlapped.wall / serial.wall:.3f}" for overlapped, serial in pairs)
    mean, low, high = geometric_mean(reading_ratios(searches))
    moved = "have not moved" if low <= 1.0 <= high or 0.99 <= mean <= 1.01 else "have moved"
    return [
        f"{size}: ratio of the wall times {ratio:.3f} (each repeat: {each}); the bar of {BAR} is"
        f" {'met' if ratio <= BAR else 'missed'}. Were the slower stage never to wait for the other:"
        f" {least:.3f}. Ratio of the readings, overlapped over in turn: {mean:.4f} ({low:.4f} to"
        f" {high:.4f}): they {moved}.",
    ]


def _least(searches: Searches) -> float:
    """The ratio if the slower of the two stages never had to wait for the other."""
    found = searches["overlapped"]
    return statistics.median(max(s.prepare, s.measure) / (s.prepare + s.measure) for s in found)


if __name__ == "__main__":
    main()
