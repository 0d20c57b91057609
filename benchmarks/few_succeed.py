"""Strategies on spaces most of whose configurations fail, for reasons that nobody wrote down.

    python -m benchmarks.few_succeed --strategies auto,optuna-tpe,evolution,random --seeds 20 --jobs 2

A kernel whose rules are not stated, a program that runs in one corner of its options: what somebody uses
today works, most other configurations do not, and a trial only shows that it failed. The problems are drawn
anew for each seed, all strategies search the same ones and try the default, which works, first. The best time
is known from listing all. Given is the time of the best configuration tried over that: the geometric mean
over seeds, after 20, 40 and 80 tries; the searches that found the best; and how many of the 80 tries failed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.search.contract import Observation
from autotune.search.contract import Problem as SearchProblem
from autotune.search.registry import make_strategy
from autotune.space.knobs import Choice, IntegerRange, OrderedValues
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status
from benchmarks.many_knobs_problems import Problem, Random, Values
from benchmarks.options import Options
from benchmarks.publishing import head, page, publish, software
from benchmarks.running import (
    at_least_one,
    known_strategies,
    one_thread_each,
    problem_random,
    run_as_command,
    search_all,
)

AFTER = (20, 40, 80)
TIME = (MetricSpec("time", "minimize"),)


@dataclass(frozen=True)
class Failing(Problem):
    """A problem most of whose configurations fail: of those the logarithm of the time is infinite."""

    failure: Status = Status.INFEASIBLE
    """How."""


@dataclass(frozen=True)
class Found:
    """What a search came to."""

    above: tuple[float, ...]
    """The logarithm of the best time so far over the best there is, try by try."""
    failed: int


def ball(rng: Random) -> Failing:
    """Five numbers, of which what is near a place that nobody knows runs: one in twenty."""
    middle, slope = rng.integers(2, 8, 5), rng.uniform(0.05, 0.3, 5)
    best = middle + rng.integers(-1, 2, 5)
    names = [f"k{i}" for i in range(5)]
    default = middle + rng.permutation([3, -2, 2, 0, 0])
    space = Space(
        [
            OrderedValues(name, tuple(range(10)), default=int(np.clip(own, 0, 9)))
            for name, own in zip(names, default, strict=True)
        ]
    )

    def log_time(values: Values) -> float:
        at = np.array([values[name] for name in names])
        return float(np.abs(at - best) @ slope) if np.abs(at - middle).sum() <= 9 else math.inf

    return Failing(space, log_time)


def sizes(rng: Random) -> Failing:
    """Five sizes, of which all but small ones run out of memory; larger ones are faster, up to a point."""
    gain, demand = rng.uniform(0.05, 0.4, 5), rng.uniform(0.5, 1.5, 5)
    names = [f"size{i}" for i in range(5)]
    space = Space([OrderedValues(name, tuple(2**i for i in range(8))) for name in names])

    def log_time(values: Values) -> float:
        logs = np.log2([values[name] for name in names])
        return float(0.03 * ((logs - 2) ** 2).sum() - gain @ logs) if demand @ logs <= 9.0 else math.inf

    return Failing(space, log_time, Status.OUT_OF_MEMORY)


def tiles(rng: Random) -> Failing:
    """The tiles of a product on a GPU, whose divisions must come out even: one in twenty does."""
    weight = rng.uniform(0.1, 0.6, 6)
    best = (rng.uniform(4.5, 6.5), rng.uniform(4.5, 6.5), rng.uniform(3, 5), rng.uniform(3, 5))
    tile, lanes = (16, 32, 48, 64, 96, 128), (1, 2, 4, 8)
    space = Space(
        [
            OrderedValues("m", tile, default=64),
            OrderedValues("n", tile, default=64),
            OrderedValues("k", (8, 16, 32), default=16),
            OrderedValues("own_m", lanes, default=4),
            OrderedValues("own_n", lanes, default=4),
            OrderedValues("threads", (32, 64, 128, 256, 512), default=256),
            OrderedValues("vector", (1, 2, 4), default=1),
        ]
    )

    def log_time(values: Values) -> float:
        m, n, k, own_m, own_n, threads, vector = (values[knob.name] for knob in space.knobs)
        uneven = m * k % (threads * vector) or n * k % (threads * vector) or m % own_m or n % own_n
        if uneven or (m // own_m) * (n // own_n) != threads:
            return math.inf
        off = np.abs(np.log2([m, n, own_m * own_n, k]) - best)
        return float(
            weight[:4] @ off + weight[4] * (4 - vector) / 5 + weight[5] * abs(math.log2(threads) - 7)
        )

    return Failing(space, log_time)


def ranks(rng: Random) -> Failing:
    """How a model is spread over devices: the parts must come out even, as one in twenty does."""
    devices, layers = int(rng.choice([16, 32, 64])), 24
    weight, best = rng.uniform(0.05, 0.4, 5), rng.uniform(0.5, 2.5, 5)
    space = Space(
        [
            OrderedValues("tensor", (1, 2, 4, 8), default=4),
            OrderedValues("stages", (1, 2, 3, 4, 6, 8, 12), default=4),
            OrderedValues("replicas", (1, 2, 4, 8, 16, 32), default=devices // 16),
            OrderedValues("micro", (1, 2, 3, 4, 6, 8, 12, 16), default=4),
            OrderedValues("batch", (32, 48, 64, 96, 128, 192, 256), default=64),
            OrderedValues("buckets", (1, 2, 3, 4)),
        ]
    )

    def log_time(values: Values) -> float:
        tensor, stages, replicas, micro, batch, buckets = (values[knob.name] for knob in space.knobs)
        if tensor * stages * replicas != devices or layers % stages or batch % (replicas * micro):
            return math.inf
        off = np.abs(np.log2([tensor, stages, micro, batch / 32, buckets]) - best)
        return float(weight @ off**1.5)

    return Failing(space, log_time)


def pairs(rng: Random) -> Failing:
    """Four libraries and a size; two in five combinations of the first three do not go together."""
    names, others = "abcd", tuple(f"v{i}" for i in range(6))
    bad = rng.random((6, 6, 6)) < 0.4
    bad[0, 0, 0] = False
    effects, together = rng.normal(0.0, 0.3, (4, 6)), rng.normal(0.0, 0.25, (6, 6))
    space = Space([*(Choice(name, others) for name in names), IntegerRange("size", 1, 40)])

    def log_time(values: Values) -> float:
        a, b, c, d = (others.index(values[name]) for name in names)
        if bad[a, b, c]:
            return math.inf
        off = 0.02 * abs(values["size"] - 20)
        return float(effects[range(4), (a, b, c, d)].sum() + together[c, d] + off)

    return Failing(space, log_time)


def stencil(rng: Random) -> Failing:
    """A time-blocked stencil that has no code for a rest: tiles must divide the rows and columns."""
    rows, columns = (int(size) for size in rng.choice([480, 720, 840, 960, 1200, 1440], 2))
    weight, best = rng.uniform(0.1, 0.4, 4), rng.uniform((3, 4, 0.5, 0.5), (5, 6, 2, 2))
    space = Space(
        [
            IntegerRange("tile_y", 1, 64, default=8),
            IntegerRange("tile_x", 1, 64, default=8),
            OrderedValues("vector", (1, 2, 4, 8), default=1),
            OrderedValues("unroll", (1, 2, 3, 4, 6, 8), default=1),
        ],
        workload={"rows": rows, "columns": columns, "dtype": "float32"},
    )

    def log_time(values: Values) -> float:
        y, x, vector, unroll = (values[knob.name] for knob in space.knobs)
        if rows % (y * unroll) or columns % (x * vector):
            return math.inf
        off = np.abs(np.log2([y, x, vector, unroll]) - best)
        return float(weight @ off**1.5 + 0.02 * math.log2(y) * math.log2(x))

    return Failing(space, log_time, Status.CRASHED)


def pool(rng: Random) -> Failing:
    """A server whose smallest sizes may not be larger than its largest ones: one in four starts."""
    weight, best = rng.uniform(0.05, 0.4, 6), rng.uniform((4, 5.5, 0, 1.5, 1, 2), (7, 8, 2, 3, 3.5, 5))
    heap = (16, 24, 32, 64, 96, 128, 192, 256)
    space = Space(
        [
            OrderedValues("initial_heap", heap, default=32),
            OrderedValues("heap", heap, default=128),
            IntegerRange("least_workers", 1, 8, default=2),
            IntegerRange("most_workers", 1, 8, default=4),
            OrderedValues("batch", (1, 2, 4, 6, 12, 16), default=1),
            OrderedValues("queue", (1, 4, 8, 16, 24, 32), default=32),
        ]
    )

    def log_time(values: Values) -> float:
        small, large, least, most, batch, queue = sizes = [values[knob.name] for knob in space.knobs]
        if small > large or least > most or batch > queue:
            return math.inf
        return float(weight @ np.abs(np.log2(sizes) - best) ** 1.5)

    return Failing(space, log_time, Status.CRASHED)


PROBLEMS: dict[str, Callable[[Random], Failing]] = {
    "near a hidden place": ball,
    "sizes, memory not measured": sizes,
    "tiles, rules not stated": tiles,
    "libraries that do not go together": pairs,
    "ranks, rules not stated": ranks,
    "stencil, sizes to be divided": stencil,
    "server, sizes in order": pool,
}


def drawn(name: str, seed: int) -> Failing:
    return PROBLEMS[name](problem_random(seed, name))


def succeeding(problem: Failing) -> tuple[float, float]:
    """The part of all configurations that succeed, and the logarithm of the best time."""
    times = [problem.log_time(configuration) for configuration in problem.space.feasible]
    return sum(map(math.isfinite, times)) / len(times), min(times)


def search(name: str, strategy: str, seed: int, tries: int = max(AFTER)) -> Found:
    """One search."""
    problem = drawn(name, seed)
    _, optimum = succeeding(problem)
    searcher = make_strategy(strategy, SearchProblem(problem.space, TIME, tries), seed)
    above, best, failed = [], math.inf, 0
    for _ in range(tries):
        proposal = searcher.ask()[0]
        log_time = problem.log_time(proposal.configuration)
        works = math.isfinite(log_time)
        status, metrics = (Status.OK, {"time": math.exp(log_time)}) if works else (problem.failure, {})
        searcher.tell([Observation(proposal.configuration, status, metrics, reason=proposal.reason)])
        best, failed = min(best, log_time - optimum), failed + (not works)
        above.append(best)
    return Found(tuple(above), failed)


def table(strategies: Sequence[str], runs: Mapping[tuple[str, str], Sequence[Found]]) -> list[str]:
    """Times over the best there is, searches that found it, and failures, a line a problem."""
    lines = head(" | ".join(["", *(f"`{strategy}`" for strategy in strategies)]))
    for name in PROBLEMS:
        cells = []
        for strategy in strategies:
            found = runs[name, strategy]
            means = np.exp(np.mean([one.above for one in found], axis=0))
            optima = sum(math.isclose(one.above[-1], 0.0, abs_tol=1e-9) for one in found)
            failed = np.mean([one.failed for one in found])
            times = ", ".join(f"{means[after - 1]:.3f}" for after in AFTER)
            cells.append(f"{times}; {optima} of {len(found)}; {failed:.0f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    one_thread_each()
    parser = Options(__file__, __doc__)
    parser.add_argument("--strategies", default="auto,optuna-tpe,evolution,random")
    parser.add_argument(
        "--first", type=int, default=200, help="the first seed; lower ones served development"
    )
    parser.add_argument("--seeds", type=at_least_one, default=20)
    parser.aside("--jobs", type=at_least_one, default=1)
    asked = parser.read()
    strategies = known_strategies(asked.strategies)
    seeds = range(asked.first, asked.first + asked.seeds)
    runs = search_all(search, PROBLEMS, strategies, seeds, asked.jobs)
    share = {name: np.mean([succeeding(drawn(name, seed))[0] for seed in seeds]) for name in PROBLEMS}
    about = (
        f"{software('optuna')}. The time of the best configuration tried over the best there is, after"
        f" {', '.join(map(str, AFTER))} tries: the geometric mean over {asked.seeds} problems drawn at"
        f" random, the same for all; the searches that found the best; and how many of {max(AFTER)} tries"
        f" failed. Of all configurations there succeed"
        f" {', '.join(f'{part:.0%} ({name})' for name, part in share.items())}."
    )
    rows = table(strategies, runs)
    publish(page("Where few configurations succeed", asked.command, about, rows), asked.out)


if __name__ == "__main__":
    run_as_command(main)
