"""Whether earlier trainings on other data help, and whether they harm.

    python -m benchmarks.training_transfer --seeds 5 --jobs 2

The trainings of :mod:`benchmarks.recorded_tasks`. What is known beforehand are searches of ``auto``, of as
many tries, on other data sets of the same space: on all of them, on one drawn at random, or on that one with
its losses negated, so that what was best there is said to be worst. Given is how far the best loss lies above
the lowest of the space, as a part of how far the median does: the mean over data sets and seeds, after so
many tries. The default comes first in every search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from autotune.search.contract import Observation, Problem, Source
from autotune.search.registry import make_strategy
from autotune.space.spec import MetricSpec
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish, software
from benchmarks.recorded_tasks import RECORDED_TASKS, RecordedTask
from benchmarks.running import (
    at_least_one,
    mean_ranks,
    one_thread_each,
    problem_random,
    run_as_command,
    search_all,
)

LOSS = (MetricSpec("loss", "minimize"),)
AFTER = (5, 10, 20, 40, 60)
ELSEWHERE = 1000
"""Searches of sources have the seed of the search that learns from them, plus this."""
WAYS = ("nothing", "all others", "one other", "one, negated")


def search(name: str, way: str, seed: int, tries: int = max(AFTER)) -> list[float]:
    """How far above the lowest loss a search was after each try."""
    task = RECORDED_TASKS[name]
    losses, _ = task.spread
    lowest, middle = float(losses.min()), float(np.median(losses))
    told = _searched(task, _sources(task, way, seed, tries), seed, tries)
    values = [o.metrics.get("loss", np.inf) for o in told]
    return [float(best - lowest) / (middle - lowest) for best in np.minimum.accumulate(values)]


def _searched(
    task: RecordedTask, sources: tuple[Source, ...], seed: int, tries: int
) -> tuple[Observation, ...]:
    strategy = make_strategy("auto", Problem(task.space, LOSS, tries, sources=sources), seed)
    told = []
    for _ in range(tries):
        told.append(task.trained(strategy.ask()[0].configuration))
        strategy.tell(told[-1:])
    return tuple(told)


def _sources(task: RecordedTask, way: str, seed: int, tries: int) -> tuple[Source, ...]:
    others = [o.name for o in RECORDED_TASKS.values() if o.kind == task.kind and o is not task]
    one = others[int(problem_random(seed, task.name).integers(len(others)))]
    match way:
        case "nothing":
            return ()
        case "all others":
            return tuple(_source(other, seed, tries) for other in others)
        case "one other":
            return (_source(one, seed, tries),)
    return (_negated(_source(one, seed, tries)),)


@cache
def _source(name: str, seed: int, tries: int) -> Source:
    return Source(name, _searched(RECORDED_TASKS[name], (), seed + ELSEWHERE, tries))


def _negated(source: Source) -> Source:
    worst = 1.1 * max(o.metrics["loss"] for o in source.observations if o.metrics)  # no loss becomes 0
    return replace(
        source,
        observations=tuple(
            replace(o, metrics={"loss": worst - o.metrics["loss"]}) if o.metrics else o
            for o in source.observations
        ),
    )


def table(runs: Mapping[tuple[str, str], Sequence[Sequence[float]]]) -> list[str]:
    """A row for each kind of training, then the mean ranks."""
    lines = head(" | ".join(["trainings", *(f"learns from {way}" for way in WAYS)]))
    for kind in dict.fromkeys(task.kind for task in RECORDED_TASKS.values()):
        names = [name for name, task in RECORDED_TASKS.items() if task.kind == kind]
        means = [np.mean([run for name in names for run in runs[name, way]], axis=0) for way in WAYS]
        cells = [", ".join(f"{mean[after - 1]:.4f}" for after in AFTER) for mean in means]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    lines.append(f"| **mean rank** | {' | '.join(mean_ranks(WAYS, runs, AFTER))} |")
    return lines


def main() -> None:
    one_thread_each()
    parser = Options(__file__, __doc__)
    parser.add_argument("--seeds", type=at_least_one, default=5)
    parser.aside("--jobs", type=at_least_one, default=1)
    asked = parser.read()
    runs = search_all(search, RECORDED_TASKS, WAYS, range(asked.seeds), asked.jobs)
    about = (
        f"{software('numpy')}. Recorded trainings; none was run. How far the best loss lies above the lowest"
        f" of the space, as a part of how far the median does, after {', '.join(map(str, AFTER))} tries: the"
        f" mean over data sets and {asked.seeds} seeds."
    )
    publish(page("What trainings on other data teach", asked.command, about, table(runs)), asked.out)


if __name__ == "__main__":
    run_as_command(main)
