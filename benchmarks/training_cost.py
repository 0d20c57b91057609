"""Searches of recorded trainings that have so much time, rather than so many tries.

    python -m benchmarks.training_cost --seeds 10 --jobs 2

The trainings of :mod:`benchmarks.recorded_tasks` took seconds or hours, depending on the configuration. A
search has the time of ``--trainings`` trainings of median length. A training is given up, and told as a
timeout, when it has taken ten times the median; one that is not done in time counts for nothing. Given is how
far the loss of the best one lies above the lowest of the space, as a part of how far the median does: the
mean over data sets and seeds, after a quarter, half and all of the time. ``auto, not told`` is ``auto`` that
does not know of the limit, so that it does not count what a training costs. Every strategy tries the default
first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from autotune.search.contract import Problem
from autotune.search.registry import make_strategy
from autotune.space.spec import MetricSpec
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.recorded_tasks import RECORDED_TASKS
from benchmarks.running import (
    at_least_one,
    known_strategies,
    mean_ranks,
    one_thread_each,
    run_as_command,
    search_all,
)

LOSS = (MetricSpec("loss", "minimize"),)
PARTS = (0.25, 0.5, 1.0)
"""Of the time, after which searches are compared."""
TIMEOUT = 10.0
"""Trainings are given up after so many times the median."""
MOST_TRIES = 1000
UNTOLD = ", not told"
"""Behind the name of a strategy that does not know of the limit."""


def search(name: str, method: str, seed: int, *, trainings: int = 40) -> tuple[list[float], int]:
    """How far above the lowest loss a search was after each of :data:`PARTS`, and how many tries it made."""
    task = RECORDED_TASKS[name]
    losses, all_seconds = task.spread
    median = float(np.median(all_seconds))
    limit = trainings * median
    known = None if method.endswith(UNTOLD) else limit
    problem = Problem(task.space, LOSS, seconds=known)
    strategy = make_strategy(method.removesuffix(UNTOLD), problem, seed)
    lowest, middle = float(losses.min()), float(np.median(losses))
    spent, tries = 0.0, 0
    best = [math.inf] * len(PARTS)
    while spent < limit and tries < MOST_TRIES:
        configuration = strategy.ask()[0].configuration
        observation = task.trained(configuration, TIMEOUT * median)
        began, spent = spent, spent + observation.seconds
        tries += 1
        loss = observation.metrics.get("loss", math.inf)
        best = [min(own, loss) if spent <= p * limit else own for own, p in zip(best, PARTS, strict=True)]
        strategy.tell([replace(observation, began=began, ended=spent)])
    return [min((own - lowest) / (middle - lowest), 1.0) for own in best], tries


Runs = Mapping[tuple[str, str], Sequence[tuple[Sequence[float], int]]]


def table(methods: Sequence[str], runs: Runs) -> list[str]:
    """A row for each kind of training; then mean ranks and numbers of tries."""
    lines = head(" | ".join(["trainings", *(f"`{method}`" for method in methods)]))
    for kind in dict.fromkeys(task.kind for task in RECORDED_TASKS.values()):
        cells = [_mean(runs, method, kind) for method in methods]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    above = {case: [found for found, _ in all_seeds] for case, all_seeds in runs.items()}
    ranks = mean_ranks(methods, above, range(1, len(PARTS) + 1))
    lines.append(f"| **mean rank** | {' | '.join(ranks)} |")
    tries = [np.mean([n for (_, own), found in runs.items() if own == m for _, n in found]) for m in methods]
    lines.append(f"| tries | {' | '.join(f'{mean:.0f}' for mean in tries)} |")
    return lines


def _mean(runs: Runs, method: str, kind: str) -> str:
    found = [
        above
        for (name, own), all_seeds in runs.items()
        if own == method and RECORDED_TASKS[name].kind == kind
        for above, _ in all_seeds
    ]
    return ", ".join(f"{mean:.3f}" for mean in np.mean(found, axis=0))


def main() -> None:
    one_thread_each()
    parser = Options(__file__, __doc__)
    parser.add_argument("--strategies", default="auto,optuna-tpe,evolution,random")
    parser.add_argument("--seeds", type=at_least_one, default=10)
    parser.add_argument("--trainings", type=at_least_one, default=40, help="of median length in a search")
    parser.aside("--jobs", type=at_least_one, default=1)
    asked = parser.read()
    methods = known_strategies(asked.strategies)
    if "auto" in methods:
        methods.insert(methods.index("auto") + 1, f"auto{UNTOLD}")
    once = partial(search, trainings=asked.trainings)
    runs = search_all(once, RECORDED_TASKS, methods, range(asked.seeds), asked.jobs)
    about = (
        f"{software('optuna')}; {machine()}. Recorded trainings; none was run. How far the best loss lies"
        f" above the lowest of the space, as a part of how far the median does, after {PARTS[0]:g},"
        f" {PARTS[1]:g} and all of the time of {asked.trainings} trainings of median length: the mean over"
        f" data sets and {asked.seeds} seeds. Trainings of {TIMEOUT:g} times the median are given up."
    )
    publish(page("Trainings under a limit of time", asked.command, about, table(methods, runs)), asked.out)


if __name__ == "__main__":
    run_as_command(main)
