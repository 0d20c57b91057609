"""Strategies on problems of twenty to a hundred knobs, at equal budget.

    python -m benchmarks.many_knobs --strategies auto,optuna-tpe,evolution,random --seeds 10 --jobs 2

What compilers, servers and databases have is not ten knobs but a hundred, of which some matter and nobody
knows which. The problems (``benchmarks.many_knobs_problems``) are drawn anew for each seed, all strategies
search the same ones, and try the default first. Readings are off by 0.3 % (a standard deviation). Given is
the time of the best configuration tried, without noise, as a part of the default's: the geometric mean over
seeds, after 25, 50 and 100 tries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from time import process_time

import numpy as np

from autotune.search.contract import Observation
from autotune.search.contract import Problem as SearchProblem
from autotune.search.registry import make_strategy
from autotune.space.spec import MetricSpec
from autotune.status import Status
from benchmarks.many_knobs_problems import PROBLEMS
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import (
    at_least_one,
    known_strategies,
    mean_ranks,
    one_thread_each,
    problem_random,
    run_as_command,
    search_all,
)

AFTER = (25, 50, 100)
NOISE = 0.003
TIME = (MetricSpec("time", "minimize"),)

Runs = Mapping[tuple[str, str], Sequence[Sequence[float]]]
"""By problem and strategy, for each seed: the logarithm of the best time so far, the default's being 0."""


def search(name: str, strategy: str, seed: int, tries: int = max(AFTER)) -> tuple[list[float], float]:
    """One search, and the processor seconds of the strategy itself."""
    problem = PROBLEMS[name](problem_random(seed, name))
    noise = problem_random(seed, f"noise of {name}")
    began = process_time()
    searcher = make_strategy(strategy, SearchProblem(problem.space, TIME, tries), seed)
    seconds = process_time() - began
    default = problem.log_time(problem.space.default())
    found, best = [], math.inf
    for _ in range(tries):
        began = process_time()
        configuration = searcher.ask()[0].configuration
        seconds += process_time() - began
        above = problem.log_time(configuration) - default
        told = math.exp(above + NOISE * float(noise.standard_normal()))
        began = process_time()
        searcher.tell([Observation(configuration, Status.OK, {"time": told})])
        seconds += process_time() - began
        best = min(best, above)
        found.append(best)
    return found, seconds


def table(strategies: Sequence[str], runs: Runs, seconds: Mapping[str, float]) -> list[str]:
    """Parts of the default's time, mean ranks, and what a search takes a strategy."""
    lines = head(" | ".join(["knobs", *(f"`{strategy}`" for strategy in strategies)]))
    for name in PROBLEMS:
        means = [np.exp(np.mean(runs[name, strategy], axis=0)) for strategy in strategies]
        cells = [", ".join(f"{mean[after - 1]:.3f}" for after in AFTER) for mean in means]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    ranks = mean_ranks(strategies, runs, AFTER)
    lines.append(f"| **mean rank** after {', '.join(map(str, AFTER))} | {' | '.join(ranks)} |")
    lines.append(f"| seconds a search | {' | '.join(f'{seconds[s]:.1f}' for s in strategies)} |")
    return lines


def main() -> None:
    one_thread_each()
    parser = Options(__file__, __doc__)
    parser.add_argument("--strategies", default="auto,optuna-tpe,evolution,random")
    parser.add_argument("--seeds", type=at_least_one, default=10)
    parser.aside("--jobs", type=at_least_one, default=1)
    asked = parser.read()
    strategies = known_strategies(asked.strategies)
    searched = search_all(search, PROBLEMS, strategies, range(asked.seeds), asked.jobs)
    runs = {case: [found for found, _ in all_seeds] for case, all_seeds in searched.items()}
    seconds = {
        way: float(np.mean([own for name in PROBLEMS for _, own in searched[name, way]]))
        for way in strategies
    }
    about = (
        f"{software('optuna')}; {machine()}. The time of the best configuration tried, as a part of the"
        f" default's, after {', '.join(map(str, AFTER))} tries: the geometric mean over {asked.seeds}"
        f" problems drawn at random, the same for all. Readings are off by {NOISE:.1%}."
    )
    publish(page("Many knobs", asked.command, about, table(strategies, runs, seconds)), asked.out)


if __name__ == "__main__":
    run_as_command(main)
