"""Several metrics at once, on spaces that were measured exhaustively on real GPUs.

    python -m benchmarks.several_metrics --spaces DIR --seeds 10 --out benchmarks/results/several_metrics.md

*Two goals.* Of the convolution the running time and the time to compile it, both recorded; of the matrix
product the running time and the local memory of a work group, which follows from its knobs. What is compared
is the hypervolume of the front that was found, on logarithmic scales, as a part of that of the true front,
which the recording has; the reference point lies a tenth of the true front's extent behind it.

*A bound.* The convolution's running time is minimised where compiling may take no longer than it does for
the quickest quarter of all configurations. What is counted are tries past the bound, and how much slower than
the best within the bound the best of the tries is. `auto, told only 'wrong'` does not hear what was measured
of a try past the bound.

Optuna has two samplers that take several goals and bounds, NSGA-II and TPE, and both are peers: the former is
its default for several goals, the latter is meant for a few hundred tries.

A search is told the recorded numbers of each configuration that it asks for, or how it failed.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import optuna

from autotune.errors import InputError
from autotune.measure.recordings.read import read_recording
from autotune.measure.recordings.recording import Entry, Recording
from autotune.search.acquisition.pareto import hypervolume, non_dominated
from autotune.search.contract import Observation, Option, Problem, Strategy
from autotune.search.registry import make_strategy
from autotune.search.strategies.optuna_samplers import OptunaOfSeveralGoals, constraints_of, parzen_estimator
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish, software
from benchmarks.recorded_spaces import entry_of, recorded_space, recordings
from benchmarks.running import at_least_one, in_workers, one_thread_each, run_as_command

AFTER = (50, 100, 200)
"""Tries after which the front is looked at."""
TPE = "optuna-tpe"
STRATEGIES = ("auto", "optuna-nsga2", TPE, "random")
UNTOLD = "auto, told only 'wrong'"
QUARTER = 0.25
TIME = MetricSpec("time", "minimize", "s")


@dataclass(frozen=True)
class Case:
    """A recorded space with a second metric, by which each configuration is judged too."""

    space: Space
    recording: Recording
    second: str

    @property
    def goals(self) -> tuple[MetricSpec, ...]:
        return (TIME, MetricSpec(self.second, "minimize"))

    def metrics(self, entry: Entry) -> dict[str, float]:
        """Both metrics; empty where the configuration failed."""
        if entry.status is not Status.OK or entry.time is None:
            return {}
        other = entry.compile_seconds if self.second == "compile time" else local_memory(entry.configuration)
        return {"time": entry.time, self.second: other}


def local_memory(knobs: Mapping[str, object]) -> float:
    """Bytes of local memory that a work group of the matrix product keeps its tiles of A and B in, and 1 KiB.

    ``SA`` and ``SB`` say whether it does (Nugteren, CLBlast, IWOCL 2018). The rest is small, but not 0.
    """
    number = {name: int(str(knobs[name])) for name in ("SA", "SB", "KWG", "MWG", "NWG")}
    tiles = number["SA"] * number["MWG"] + number["SB"] * number["NWG"]
    return 1024.0 + 4.0 * number["KWG"] * tiles


@cache
def case(path: Path) -> Case:
    recording = read_recording(path)
    second = "local memory" if {"SA", "SB"} <= set(recording.knobs) else "compile time"
    made = Case(recorded_space(recording), recording, second)
    for name in ("time", second):
        values = {found[name] for found in map(made.metrics, recording.entries) if found}
        if len(values) < 2 or min(values) <= 0:
            raise InputError(
                f"{path}: there is nothing to weigh where all that ran has the same {name}, or none"
            )
    return made


def logarithms(found: Sequence[Mapping[str, float]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    return np.log([list(metrics.values()) for metrics in found if metrics]).reshape(-1, 2)


@dataclass(frozen=True)
class Search:
    """One search to run; ``bound``: on the second metric, which is a goal where there is none."""

    path: Path
    strategy: str
    seed: int
    bounded: bool


@dataclass(frozen=True)
class Found:
    """The share of the true hypervolume after so many tries; with a bound, wrong tries and slow-downs."""

    figures: tuple[float, ...]
    wrong: int
    seconds: float


class TpeOfSeveral(OptunaOfSeveralGoals):
    """Optuna's TPE of several goals and bounds; our strategy of its name takes one goal."""

    name: ClassVar[str] = TPE
    defaults: ClassVar[dict[str, Option]] = {"initial": 10}

    def _sampler(self, seed: int) -> optuna.samplers.BaseSampler:
        return parzen_estimator(seed, constraints=constraints_of)


def searcher(name: str, problem: Problem, seed: int) -> Strategy:
    return TpeOfSeveral(problem, seed) if name == TPE else make_strategy(name, problem, seed)


def run(search: Search) -> Found:
    """Up to the last of :data:`AFTER` tries; the seconds are the strategy's own processor time."""
    here = case(search.path)
    everything = [here.metrics(entry) for entry in here.recording.entries]
    bound = math.inf
    metrics = here.goals
    if search.bounded:
        bound = float(np.exp(np.quantile(logarithms(everything)[:, 1], QUARTER)))
        metrics = (TIME, MetricSpec(here.second, at_most=bound))
    name = search.strategy.partition(",")[0]
    strategy = searcher(name, Problem(here.space, metrics, AFTER[-1]), search.seed)
    tried: list[dict[str, float]] = []
    wrong, seconds = 0, 0.0
    while len(tried) < AFTER[-1]:
        began = time.process_time()
        proposals = strategy.ask(1)
        seconds += time.process_time() - began
        if not proposals:  # all was tried
            break
        (proposal,) = proposals
        entry = entry_of(here.recording, proposal.configuration)
        found = here.metrics(entry)
        past = bool(found) and found[here.second] > bound
        wrong += past
        tried.append({} if past else found)
        told = Observation(proposal.configuration, entry.status, found)
        if past:
            known = {} if search.strategy == UNTOLD else found
            told = replace(told, status=Status.WRONG, metrics={}, bounded=known)
        began = time.process_time()
        strategy.tell([told])
        seconds += time.process_time() - began
    judge = _slow_down if search.bounded else _share
    within = [found for found in everything if found and found[here.second] <= bound]
    return Found(tuple(judge(tried[:count], within) for count in AFTER), wrong, seconds)


def _share(tried: Sequence[Mapping[str, float]], everything: Sequence[Mapping[str, float]]) -> float:
    points = logarithms(everything)
    front = points[non_dominated(points)]
    nadir, ideal = front.max(axis=0), front.min(axis=0)
    reference = nadir + 0.1 * (nadir - ideal)
    return hypervolume(logarithms(tried), reference) / hypervolume(front, reference)


def _slow_down(tried: Sequence[Mapping[str, float]], everything: Sequence[Mapping[str, float]]) -> float:
    """How much slower the best of the tries is than the best there is; infinite without one."""
    best = min((found["time"] for found in tried if found), default=math.inf)
    return best / min(found["time"] for found in everything) - 1.0


def table_of_fronts(found: Mapping[Search, Found], spaces: Mapping[str, Path]) -> list[str]:
    after = " | ".join(f"{n} tries" for n in AFTER)
    lines = head(f"space | second goal | strategy | {after} | sd | seconds a search")
    for name, path in spaces.items():
        for strategy in STRATEGIES:
            runs = _runs(found, path, strategy, bounded=False)
            shares = np.array([one.figures for one in runs])
            means = " | ".join(f"{mean:.3f}" for mean in shares.mean(axis=0))
            seconds = statistics.mean(one.seconds for one in runs)
            second = case(path).second
            lines.append(
                f"| {name} | {second} | {strategy} | {means} | {shares[:, -1].std():.3f} | {seconds:.1f} |"
            )
    return lines


def table_of_bounds(found: Mapping[Search, Found], spaces: Mapping[str, Path]) -> list[str]:
    lines = head("space | strategy | past the bound | " + " | ".join(f"after {n}" for n in AFTER))
    for name, path in spaces.items():
        if case(path).second == "compile time":
            for strategy in ("auto", UNTOLD, *STRATEGIES[1:]):
                runs = _runs(found, path, strategy, bounded=True)
                wrong = statistics.median(one.wrong for one in runs)
                slow = [statistics.median(one.figures[n] for one in runs) for n in range(len(AFTER))]
                lines.append(
                    f"| {name} | {strategy} | {wrong:.0f} | {' | '.join(f'{s:.1%}' for s in slow)} |"
                )
    return lines


def _runs(found: Mapping[Search, Found], path: Path, strategy: str, *, bounded: bool) -> list[Found]:
    wanted = (path, strategy, bounded)
    return [one for search, one in found.items() if (search.path, search.strategy, search.bounded) == wanted]


def searches(spaces: Mapping[str, Path], seeds: int) -> list[Search]:
    plans = [(path, strategy, False) for path in spaces.values() for strategy in STRATEGIES]
    timed = [path for path in spaces.values() if case(path).second == "compile time"]
    plans += [(path, strategy, True) for path in timed for strategy in ("auto", UNTOLD, *STRATEGIES[1:])]
    return [Search(path, name, seed, bounded) for seed in range(seeds) for path, name, bounded in plans]


def report(found: Mapping[Search, Found], spaces: Mapping[str, Path], seeds: int, command: str) -> str:
    about = (
        f"{software('optuna')}. "
        f"{seeds} seeds, {AFTER[-1]} tries. NSGA-II has Optuna's defaults (a population of 50)."
    )
    fronts = (
        "## Two goals: the part of the true hypervolume that was found",
        "Means over the seeds, and the standard deviation after the last try.",
        table_of_fronts(found, spaces),
    )
    bounds = (
        "## One goal and a bound: tries past it, and how much slower than the best within it",
        f"Of {AFTER[-1]} tries; medians over the seeds. Three quarters of all are past the bound.",
        table_of_bounds(found, spaces),
    )
    return page("Several metrics", command, about, *fronts, *bounds)


def main() -> int:
    one_thread_each()
    parser = Options(__file__, __doc__)
    parser.add_argument("--spaces", type=Path, required=True, help="directory of recordings")
    parser.add_argument("--seeds", type=at_least_one, default=10)
    parser.aside("--jobs", type=at_least_one, default=1)
    options = parser.read()
    # The compile times of the third kernel there are mostly those of a cache.
    kernels = ("convolution", "gemm")
    spaces = {name: path for name, path in recordings(options.spaces) if name.startswith(kernels)}
    if not spaces:
        raise SystemExit(f"there is no recording of a convolution or a matrix product in {options.spaces}")
    todo = searches(spaces, options.seeds)
    found: dict[Search, Found] = {}
    for (search,), one in in_workers(run, [(search,) for search in todo], options.jobs):
        found[search] = one
        print(
            f"{len(found)}/{len(todo)} {search.path.name} {search.strategy} {one}",
            file=sys.stderr,
            flush=True,
        )
        if len(found) % (len(todo) // options.seeds) == 0:
            publish(report(found, spaces, search.seed + 1, options.command), options.out)
    return 0


if __name__ == "__main__":
    run_as_command(main)
