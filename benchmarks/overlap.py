"""Preparing beside measuring, and one after the other: the same trials, and what it does to the readings.

    python -m benchmarks.overlap --trials 60 --repeats 3 --out benchmarks/results/overlap.md

Both search the ready space gemm-c by the same random proposals, from an empty store, and compile all anew.
*In turn* has one trial at a time: compiled and checked on its core, then measured on the other.
*Overlapped* is what a search does. The two alternate, and which of them begins does too, so that a slow hour
of the machine falls on both. *Again* is an overlapped search with a cache that another has filled. Each wall
time runs from the first trial's beginning to the last one's end.

Readings are compared configuration by configuration, with those that both have measured: the ratio of
their medians, overlapped over in turn, and the geometric mean of it. The interval is Student's, over the
repeats and not over the configurations: what shifts a whole search shifts all of them. How far the searches
in turn are from one another, repeat by repeat, stands beside it. 1 means that a compiler on the next core
disturbs nothing.

What can be gained depends on how preparing and measuring compare, and so on the size of the product: where
one of them takes far longer, its time is what is left. The first size is that of the space as it comes.

The last line is the ratio of the wall times at the first size: the median of the repeats.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from autotune.measure.rules.statistics import student_quantile
from autotune.provenance.device import device_facts
from autotune.provenance.environment import Environment
from autotune.session.api import capture_environment
from autotune.session.execution.workers import WorkerExecutor
from autotune.session.opening.loading import load_spec
from autotune.session.opening.overrides import Overrides
from autotune.session.session import Session
from autotune.space.spec import StudySpec
from autotune.status import Status
from autotune.store.records import TrialRecord
from autotune.store.store import Store
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, one_thread_each, run_as_command
from benchmarks.timeline import Spans, busy, spans_of, timeline_svg

BAR = 0.65
SPACE = Path(__file__).parents[1] / "searchspaces" / "gemm-c.yaml"
MODES = ("in turn", "overlapped")
AGAIN = "again, all compiled before"


@dataclass(frozen=True)
class Search:
    """What one search did, and when; and what it read."""

    spans: Spans
    times: dict[str, float]
    """The median reading of each configuration that was measured, by its hash."""

    @property
    def wall(self) -> float:
        """Seconds from the first trial's beginning to the last one's end."""
        return self.spans.wall

    @property
    def preparing(self) -> float:
        """Seconds of the core that compiles, and that checks what it compiled."""
        return self.seconds("prepare") + self.seconds("check")

    @property
    def measuring(self) -> float:
        """Seconds of the core that measures."""
        return self.seconds("measure")

    def seconds(self, stage: str) -> float:
        return math.fsum(span.ended - span.began for span in self.spans.of(stage))


Searches = dict[str, list[Search]]
"""Those of each mode, in the order of the repeats."""


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("--trials", type=at_least_one, default=60)
    parser.add_argument("--repeats", type=at_least_one, default=3)
    parser.add_argument(
        "--sizes", type=at_least_one, nargs="+", default=[960], help="m, n and k of the product"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.read()
    one_thread_each()
    load = os.getloadavg()[0]
    found = {size: compare(options, size) for size in options.sizes}
    again = compiled_before(options, options.sizes[0])
    first = found[options.sizes[0]]
    parts = report(found, again, options, load)
    if options.out:  # the drawing of the timeline goes beside it
        drawing = options.out.with_suffix(".svg")
        parts.append(f"![timeline]({drawing.name})")
    publish(page("Preparing beside measuring", options.command, *parts), options.out)
    if options.out:
        middle = sorted(first["overlapped"], key=lambda search: search.wall)[options.repeats // 2]
        drawing.write_text(timeline_svg(middle.spans))
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


def compiled_before(options: argparse.Namespace, size: int) -> Search:
    """The second of two overlapped searches with one cache between them."""
    spec = _spec(options.trials, size, options.seed)
    environment = capture_environment(spec)
    with tempfile.TemporaryDirectory() as folder:
        search(spec, environment, serial=False, compiled=Path(folder))
        return search(spec, environment, serial=False, compiled=Path(folder))


def _spec(trials: int, size: int, seed: int) -> StudySpec:
    spec = load_spec(SPACE, Overrides(trials=trials, strategy="random", seed=seed))
    workload = type(spec.workload)({**spec.workload, "m": size, "n": size, "k": size})
    budget = replace(spec.budget, time=None, patience=None)
    return replace(spec, workload=workload, budget=budget, measure=replace(spec.measure, finalists=0))


def search(spec: StudySpec, environment: Environment, serial: bool, compiled: Path | None = None) -> Search:
    """One search from an empty store; ``compiled``: the folder of what was compiled before."""
    with tempfile.TemporaryDirectory() as folder, Store.open(f"{folder}/study.db") as store:
        executor = WorkerExecutor(spec, device_facts(), compiled=compiled)
        if executor.remark:
            print(f"these figures are no good: {executor.remark}", flush=True)
        if serial:
            executor.capacity = 1
        result = Session(spec, store, executor, environment).run()
        times = {t.hash: _median(store, t) for t in result.trials if t.status in (Status.OK, Status.PRUNED)}
    return Search(spans_of(result.trials), times)


def _median(store: Store, trial: TrialRecord) -> float:
    return statistics.median(
        r.value for r in store.readings(trial.id) if r.metric == "time" and not r.discarded
    )


def wall_ratio(searches: Searches) -> float:
    pairs = zip(searches["overlapped"], searches["in turn"], strict=True)
    return statistics.median(overlapped.wall / serial.wall for overlapped, serial in pairs)


def reading_ratio(one: Search, other: Search) -> float:
    """The geometric mean over the configurations that both have measured."""
    both = one.times.keys() & other.times.keys()
    return math.exp(statistics.fmean(math.log(one.times[name] / other.times[name]) for name in both))


def geometric_mean(ratios: Sequence[float]) -> tuple[float, float, float]:
    """The geometric mean with its 95 % interval of Student's t; of a single ratio there is none."""
    logs = [math.log(ratio) for ratio in ratios]
    mean, n = statistics.fmean(logs), len(logs)
    if n < 2:
        return math.exp(mean), 0.0, math.inf
    half = student_quantile(0.975, n - 1) * statistics.stdev(logs) / math.sqrt(n)
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)


def report(
    found: dict[int, Searches], again: Search, options: argparse.Namespace, load: float
) -> list[str | list[str]]:
    """The parts of the page."""
    about = (
        f"{software()}; {machine()}."
        f" gemm-c, {options.trials} random trials, {options.repeats} repeats, interleaved."
        f" Load average {load:.1f} before the run and {os.getloadavg()[0]:.1f} after it."
    )
    lines = head("size | | wall s | compiling and checking s | measuring s | the measuring core is busy")
    lines += [_row(size, mode, searches[mode]) for size, searches in found.items() for mode in MODES]
    lines.append(_row(options.sizes[0], AGAIN, [again]))
    each = again.seconds("prepare") / options.trials
    return [
        about,
        lines,
        *(text for size, searches in found.items() for text in _ratios(size, searches)),
        f"Where all was compiled before, compiling takes {1e3 * each:.0f} ms a trial: to find out what the"
        " compiler would see, and to fetch what it made of it.",
    ]


def _row(size: int, mode: str, found: Sequence[Search]) -> str:
    walls = sorted(s.wall for s in found)
    return (
        f"| {size} | {mode} | {statistics.median(walls):.1f} ({walls[0]:.1f} to {walls[-1]:.1f})"
        f" | {statistics.median(s.preparing for s in found):.1f}"
        f" | {statistics.median(s.measuring for s in found):.1f}"
        f" | {statistics.median(busy(s.spans) for s in found):.0%} |"
    )


def _ratios(size: int, searches: Searches) -> list[str]:
    ratio, least = wall_ratio(searches), _least(searches)
    pairs = list(zip(searches["overlapped"], searches["in turn"], strict=True))
    each = ", ".join(f"{overlapped.wall / serial.wall:.3f}" for overlapped, serial in pairs)
    mean, low, high = geometric_mean([reading_ratio(*pair) for pair in pairs])
    moved = "moved" if not (low <= 1.0 <= high or (low >= 0.99 and high <= 1.01)) else "not told apart from 1"
    alike = ", ".join(f"{reading_ratio(later, first):.3f}" for first, later in pairwise(searches["in turn"]))
    return [
        f"{size}: ratio of the wall times {ratio:.3f} (each repeat: {each}); the bar of {BAR} is"
        f" {'met' if ratio <= BAR else 'missed'}. Were the slower stage never to wait for the other:"
        f" {least:.3f}.",
        f"{size}: ratio of the readings, overlapped over in turn: {mean:.4f} ({low:.4f} to {high:.4f}):"
        f" {moved}."
        f" From one search in turn to the next: {alike or 'there is one only'}.",
    ]


def _least(searches: Searches) -> float:
    """The ratio if the slower of the two stages never had to wait for the other."""
    found = searches["overlapped"]
    return statistics.median(max(s.preparing, s.measuring) / (s.preparing + s.measuring) for s in found)


if __name__ == "__main__":
    run_as_command(main)
