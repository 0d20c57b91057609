"""Strategies on problems of twenty to a hundred knobs, at equal budget.

    python -m benchmarks.many_knobs --strategies auto,optuna-tpe,evolution,random --seeds 10 --jobs 2

What compilers, servers and databases have is not ten knobs but a hundred, of which some matter and nobody
knows which. The problems (``benchmarks.many_knobs_problems``) are drawn anew for each seed, all strategies
search the same ones, and try the default first. Readings are off by 0.3 % (a standard deviation). Given is
the time of the best configuration tried, without noise, as a part of the default's: the geometric mean over
seeds, after 25, 50 and 100 tries.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import process_time

import numpy as np

from autotune.search.contract import Observation
from autotune.search.contract import Problem as SearchProblem
from autotune.search.registry import make_strategy, strategy_class
from autotune.space.spec import MetricSpec
from autotune.status import Status
from benchmarks.many_knobs_problems import PROBLEMS
from benchmarks.publishing import machine, publish, software
from benchmarks.running import at_least_one, one_thread_each, run_as_command, search_all, split_names

AFTER = (25, 50, 100)
NOISE = 0.003
TIME = (MetricSpec("time", "minimize"),)

Runs = Mapping[tuple[str, str], Sequence[Sequence[float]]]
"""By problem and strategy, for each seed: the logarithm of the best time so far, the default's being 0."""


def search(name: str, strategy: str, seed: int, tries: int = max(AFTER)) -> tuple[list[float], float]:
    """One search, and the processor seconds of the strategy itself."""
    problem = PROBLEMS[name](np.random.default_rng((seed, list(PROBLEMS).index(name))))
    noise = np.random.default_rng(seed)
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
    lines = [
        f"| knobs | {' | '.join(f'`{strategy}`' for strategy in strategies)} |",
        "|---|" + "---|" * len(strategies),
    ]
    for name in PROBLEMS:
        means = [np.exp(np.mean(runs[name, strategy], axis=0)) for strategy in strategies]
        cells = [", ".join(f"{mean[after - 1]:.3f}" for after in AFTER) for mean in means]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    ranks = [", ".join(f"{rank:.2f}" for rank in own) for own in _mean_ranks(strategies, runs)]
    lines.append(f"| **mean rank** after {', '.join(map(str, AFTER))} | {' | '.join(ranks)} |")
    lines.append(f"| seconds a search | {' | '.join(f'{seconds[s]:.1f}' for s in strategies)} |")
    return lines


def _mean_ranks(strategies: Sequence[str], runs: Runs) -> list[list[float]]:
    """By strategy, over problems and seeds, after each number of tries: 1 is the best."""
    from scipy.stats import rankdata

    means = [
        np.mean(
            [
                rankdata([runs[name, strategy][seed][after - 1] for strategy in strategies])
                for name in PROBLEMS
                for seed in range(len(runs[name, strategies[0]]))
            ],
            axis=0,
        )
        for after in AFTER
    ]
    return [[float(mean[column]) for mean in means] for column in range(len(strategies))]


def main() -> None:
    one_thread_each()
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--strategies", default="auto,optuna-tpe,evolution,random")
    parser.add_argument("--seeds", type=at_least_one, default=10)
    parser.add_argument("--jobs", type=at_least_one, default=1)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    strategies = split_names(asked.strategies)
    for strategy in strategies:
        strategy_class(strategy)
    searched = search_all(search, PROBLEMS, strategies, range(asked.seeds), asked.jobs)
    runs = {case: [found for found, _ in all_seeds] for case, all_seeds in searched.items()}
    seconds = {
        way: float(np.mean([own for name in PROBLEMS for _, own in searched[name, way]]))
        for way in strategies
    }
    text = "\n".join(
        [
            "# Many knobs",
            "",
            f"`python -m benchmarks.many_knobs --strategies {asked.strategies} --seeds {asked.seeds}`",
            "",
            f"{software('optuna')}; {machine()}. The time of the best configuration tried, as a part of the"
            f" default's, after {', '.join(map(str, AFTER))} tries: the geometric mean over {asked.seeds}"
            f" problems drawn at random, the same for all. Readings are off by {NOISE:.1%}.",
            "",
            *table(strategies, runs, seconds),
            "",
        ]
    )
    publish(text, asked.out)


if __name__ == "__main__":
    run_as_command(main)
