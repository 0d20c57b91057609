"""Strategies on constrained spaces whose optimum is known, beside random search at equal budget.

    python -m benchmarks.constrained_spaces --strategies auto,evolution,random --seeds 20 --instances 3

Three families (:mod:`benchmarks.known_optima`): conditional knobs in four branches, the order of eight
jobs, the placement of twelve items on three devices. The regret of a search is how far its best is above
the optimum, in percent. Random search with the same instance and seed is its pair; Wilcoxon's
signed-rank test over all pairs says how sure it is that the strategy is better (one-sided p). A strategy that
has no seed is one search an instance, however often it is paired: it has no p.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from autotune.search.contract import Observation, Problem
from autotune.search.registry import make_strategy, strategy_names
from autotune.space.spec import MetricSpec
from autotune.status import Status
from benchmarks.known_optima import FAMILIES, Instance
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish, software
from benchmarks.running import (
    at_least_one,
    in_workers,
    known_names,
    known_strategies,
    one_thread_each,
    run_as_command,
)

BUDGETS = (60, 120)
STRATEGIES = "auto,bayes,evolution,bandit,policy,optuna-tpe,grid,random"
CONTROL = "random"


@dataclass(frozen=True)
class Search:
    family: str
    instance: int
    strategy: str
    seed: int
    tries: int = max(BUDGETS)


@dataclass(frozen=True)
class Run:
    """A search that was run: its regret in percent after each try, and the strategy's own processor time."""

    search: Search
    regrets: tuple[float, ...]
    seconds: float


def run(search: Search) -> Run:
    instance = FAMILIES[search.family](search.instance)
    began = time.process_time()
    costs = tried(instance, search.strategy, search.seed, search.tries)
    seconds = time.process_time() - began
    best = np.minimum.accumulate(costs)
    return Run(search, tuple(100.0 * (best / instance.optimum - 1.0)), seconds)


def tried(
    instance: Instance, name: str, seed: int, tries: int, options: Mapping[str, str] | None = None
) -> list[float]:
    """What each of ``tries`` tries cost. No strategy may repeat itself or leave the feasible set."""
    problem = Problem(instance.space, (MetricSpec("time", "minimize", "s"),), tries, options or {})
    strategy = make_strategy(name, problem, seed)
    costs: dict[str, float] = {}
    while len(costs) < tries and (proposals := strategy.ask(1)):
        configuration = proposals[0].configuration
        assert configuration.hash not in costs, f"{name} repeated itself"
        assert configuration in instance.space, f"{name} left the feasible set"
        costs[configuration.hash] = instance.cost(configuration)
        metrics = {"time": costs[configuration.hash]}
        strategy.tell([Observation(configuration, Status.OK, metrics, reason=proposals[0].reason)])
    return list(costs.values())


def better(regrets: Sequence[float], controls: Sequence[float]) -> float:
    """The p of Wilcoxon's signed-rank test that ``regrets`` are not below their pairs in ``controls``."""
    from scipy.stats import wilcoxon

    differences = np.subtract(regrets, controls)
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, alternative="less", zero_method="zsplit").pvalue)


def rows(runs: Sequence[Run], strategies: Sequence[str]) -> Iterator[str]:
    """A row a family, budget and strategy, the control last."""
    found: dict[tuple[str, str], dict[tuple[int, int], Run]] = defaultdict(dict)
    for one in runs:
        key = one.search.family, one.search.strategy
        found[key][one.search.instance, one.search.seed] = one
    yield from head("space | tries | strategy | mean regret % | median | optimum found | p | worst p | ms")
    for family, budget, strategy in product(FAMILIES, BUDGETS, strategies):
        pairs = found[family, strategy]
        control = found[family, CONTROL]
        at = {pair: one.regrets[min(budget, len(one.regrets)) - 1] for pair, one in pairs.items()}
        controls = {pair: control[pair].regrets[budget - 1] for pair in pairs}
        regrets = np.array(list(at.values()))
        if not len(regrets):
            continue
        overall, worst = "", ""
        if strategy != CONTROL and _follows_seed(pairs):
            overall = f"{better(list(at.values()), list(controls.values())):.1g}"
            worst = f"{max(_by_instance(at, controls)):.1g}"
        milliseconds = 1000.0 * np.mean([one.seconds / len(one.regrets) for one in pairs.values()])
        yield (
            f"| {family} | {budget} | {strategy} | {regrets.mean():.2f} | {np.median(regrets):.2f}"
            f" | {np.mean(regrets < 1e-9):.0%} | {overall} | {worst} | {milliseconds:.1f} |"
        )


def _follows_seed(runs: Mapping[tuple[int, int], Run]) -> bool:
    """Whether no search is told of more than once: searches of one instance differ, or there is one."""
    instances = {pair[0] for pair in runs}
    different = {(pair[0], one.regrets) for pair, one in runs.items()}
    return len(different) > len(instances) or len(runs) == len(instances)


def _by_instance(
    at: Mapping[tuple[int, int], float], controls: Mapping[tuple[int, int], float]
) -> Iterator[float]:
    for instance in sorted({pair[0] for pair in at}):
        own = [pair for pair in at if pair[0] == instance]
        yield better([at[pair] for pair in own], [controls[pair] for pair in own])


def main() -> None:
    one_thread_each()
    parser = Options(__file__, __doc__)
    parser.add_argument("--strategies", default=STRATEGIES, help=f"of {', '.join(strategy_names())}")
    parser.add_argument("--families", default=",".join(FAMILIES))
    parser.add_argument("--instances", type=at_least_one, default=3, help="instances of each family")
    parser.add_argument("--first", type=int, default=0, help="number of the first instance")
    parser.add_argument("--seeds", type=at_least_one, default=20, help="seeds 0 to N-1")
    parser.aside("--jobs", type=at_least_one, default=1)
    options = parser.read()
    names = [name for name in known_strategies(options.strategies) if name != CONTROL] + [CONTROL]
    families = known_names(options.families, "family", FAMILIES)
    # One instance after the other, so that a worker lists each only once.
    instances = range(options.first, options.first + options.instances)
    todo = [(Search(*one),) for one in product(families, instances, names, range(options.seeds))]
    runs = []
    for (search,), one in in_workers(run, todo, options.jobs):
        runs.append(one)
        if search.seed == options.seeds - 1:
            print(f"{len(runs)}/{len(todo)} {search}", file=sys.stderr, flush=True)
    numbers = f"instances {options.first} to {options.first + options.instances - 1}"
    about = f"{software('numpy', 'scipy', 'optuna')}; {numbers}, {options.seeds} seeds."
    title = "Constrained spaces whose optimum is known"
    publish(page(title, options.command, about, list(rows(runs, names))), options.out)


if __name__ == "__main__":
    run_as_command(main)
