"""Placing the parts of a model on unequal devices: a search against every assignment there is, measured.

    python -m benchmarks.placement --work DIR --rounds 3 --seeds 20 --out benchmarks/results/placement.md

Needs PyTorch. Each case is a model on two to four devices: processes with shares of a core, connected by
shaped links where there are the rights for them. All assignments of its items are measured (*brute force*),
in rounds, each in an order of its own, the best quarter in twice as many, the best twentieth in eight times
as many; micro-batches and schedule are the same for all. The truth of an assignment is the median of its
rounds, at one pace of the cores: beside each reading stands the processor time of the arithmetic of a step,
which is the same wherever it is done, but for what an assignment itself adds to it. While the host of a
virtual machine takes processor time, readings are taken again.

* *Searches* are replays of these measurements: told of a trial is the median of three of its rounds, drawn
  at random, as a session takes three readings at least; so they meet the noise of the machine, and many
  seeds can be compared. Each has a tenth of brute force's trials. Its answer is the best, by that truth, of
  three: the best it saw and those that it expects to be best. A session measures them again.
* The *live* search is a session with as many trials, and a finale.
* In the end the five best of brute force, the answer of the live search, equal split, PipeDream's partition
  (from a profile of that moment) and all on the fastest device are measured interleaved, on fresh data. The
  first fifth of the rounds says which of brute force's is the best; the others give the figures, ratios of
  what was read in the same round.

``--work`` keeps every measurement in files of a line each; another run goes on from there. ``--cases`` takes
numbers, from 0, to run some of the cases alone.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from benchmarks.options import Options
from benchmarks.placement_cases import (
    CASES,
    LATENCY,
    OBJECTIVE,
    SHARES,
    Case,
    Place,
    Readings,
    brute_force,
    measuring,
    read,
)
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.running import at_least_one, one_thread_each, run_as_command

STRATEGIES = ("auto", "bayes", "policy", "evolution", "random")
BRUTE = "brute force"
CLOSE = 0.03
FINALISTS = 3
CURVE = (0.5, 1.0, 2.0)
"""Parts of the budget at which the regret of a search is given."""
READINGS = 3
"""Of a trial, as a session takes them at least."""
LIVE_SECONDS = 2400.0
"""Of a live search at most: a fifth of it is for its finale, which noisy readings need."""
CANDIDATES = 5
"""Of brute force, for its best."""
ROUNDS_AT_THE_END = 100
SELECTING = 20
"""Of these rounds, for which of the candidates is the best."""


# -- replayed searches


def replay(
    case: Case, readings: Readings, strategy: str, seed: int, after: Sequence[int]
) -> list[list[Place]]:
    """The finalists of a search that is told measured times, ``after`` so many trials."""
    from autotune.search.contract import Observation, Problem
    from autotune.search.registry import make_strategy
    from autotune.status import Status

    metrics = case.metrics
    searcher = make_strategy(strategy, Problem(case.space, metrics, after[-1]), seed)
    rng = np.random.default_rng(seed)
    tried: dict[str, tuple[float, Place]] = {}
    finalists = []
    by_place = {place: readings.of(place) for place in case.places}
    for count in range(1, after[-1] + 1):
        configuration = searcher.ask()[0].configuration
        place = case.place_of(configuration)
        rounds = by_place[place]
        drawn = [rounds[i].metrics for i in rng.permutation(len(rounds))[:READINGS]]
        told = {metric.name: statistics.median(one[metric.name] for one in drawn) for metric in metrics}
        searcher.tell([Observation(configuration, Status.OK, told)])
        tried[configuration.hash] = told["time"], place
        if count in after:
            finalists.append(_finalists(tried, searcher.expected()))
    return finalists


def _finalists(tried: Mapping[str, tuple[float, Place]], expected: Mapping[str, float]) -> list[Place]:
    """As a session chooses them: the best that was read, then those expected to be best."""
    first, *rest = sorted(tried, key=lambda one: tried[one])
    rest.sort(key=lambda one: expected.get(one, math.inf))
    return [tried[one][1] for one in [first, *rest][:FINALISTS]]


def regret(finalists: Sequence[Place], truth: Mapping[Place, float]) -> float:
    """Of the best of them by the truth."""
    return min(truth[place] for place in finalists) / min(truth.values()) - 1


def replayed(case: Case, readings: Readings, seeds: int) -> list[str]:
    """The table of the searches."""
    truth = readings.medians()
    budget = len(truth) // 10
    at = [max(2, round(part * budget)) for part in CURVE]
    counted = " | ".join(f"regret, {count} trials" for count in at)
    lines = head(f"search | within 3 % in {budget} trials | {counted}")
    for strategy in STRATEGIES:
        runs = [replay(case, readings, strategy, seed, at) for seed in range(seeds)]
        regrets = [[regret(run[n], truth) for run in runs] for n in range(len(at))]
        close = sum(one <= CLOSE for one in regrets[CURVE.index(1.0)])
        cells = [f"{statistics.fmean(one):.1%} (worst {max(one):.1%})" for one in regrets]
        lines.append(f"| `{strategy}` | {close} of {seeds} | " + " | ".join(cells) + " |")
    return lines


# -- a live search


def live(case: Case, work: Path) -> tuple[Place, int]:
    """The answer of a session, and how many trials it took."""
    from autotune.session.api import open_session
    from autotune.space.configuration import FrozenMap
    from autotune.space.spec import Budget, MeasureSettings, SearchSettings, StudySpec
    from autotune.store.store import Store

    trials = len(case.places) // 10
    spec = StudySpec(
        name="placement",
        space=case.space,
        objective=OBJECTIVE,
        metrics=case.metrics,
        workload=FrozenMap(case.workload),
        search=SearchSettings(seed=1),
        measure=MeasureSettings(
            cores=min(2, os.cpu_count() or 1), warmup=1, min_readings=3, max_readings=5, finalists=FINALISTS
        ),
        budget=Budget(trials=trials, time=LIVE_SECONDS),
    )
    with Store.open(str(work / f"{case.key}.db")) as store:
        result = open_session(spec, store).run()
    assert result.best is not None
    return case.place_of(result.best), len(result.trials)


# -- measured again


def final(case: Case, readings: Readings, answer: Place, kept: Readings) -> tuple[dict[str, Place], Place]:
    """Measure what is compared in the end into ``kept``, interleaved.

    The assignment of each name, and the best of brute force, of which the others are not read to the end.
    """
    medians = readings.medians()
    ranked = sorted(case.places, key=medians.__getitem__)[:CANDIDATES]
    with measuring(case) as objective:
        named = {
            "live search": answer,
            **{b.name: objective.load_baseline(b).place for b in objective.baselines()},
        }
        entrants = [*dict.fromkeys([*ranked, *named.values()])]
        for number in range(ROUNDS_AT_THE_END):
            if number == SELECTING:
                best = best_of(ranked, kept)
                entrants = [*dict.fromkeys([best, *named.values()])]
            for place in random.Random(number).sample(entrants, len(entrants)):
                kept.add(read(objective, case, place, 10_000 + number))
    return named, best


def best_of(candidates: Sequence[Place], kept: Readings) -> Place:
    """Of those that were read in the same rounds."""
    logs = np.log([[one.metrics["time"] for one in kept.of(place)] for place in candidates])
    return candidates[int(np.median(logs - logs.mean(axis=0), axis=1).argmin())]


def compared(case: Case, named: Mapping[str, Place], best: Place, kept: Readings) -> list[str]:
    """The table of what was measured again, after the rounds that chose the best of brute force."""
    from autotune.measure.rules.significance import speedup

    read = {p: [one.metrics["time"] for one in kept.of(p)][SELECTING:] for p in {best, *named.values()}}
    lines = head(" | items on devices | step | over brute force's best")
    for name, place in {BRUTE: best, **named}.items():
        over = speedup(read[place], read[best])
        cell = f"{over.estimate:.3f} [{over.low:.3f}, {over.high:.3f}]" if place != best else "the best"
        where = " ".join(case.names[device] for device in place)
        lines.append(f"| {name} | {where} | {statistics.median(read[place]) * 1e3:.1f} ms | {cell} |")
    return lines


def run(case: Case, work: Path, rounds: int, seeds: int) -> list[str | list[str]]:
    """One case, and its parts of the page."""
    readings = Readings(work / f"{case.key}.jsonl")
    brute_force(case, readings, rounds)
    begun = time.monotonic()
    answer, trials = live(case, work)
    seconds = time.monotonic() - begun
    kept = Readings(work / f"{case.key}-final-{time.time_ns()}.jsonl")
    named, best = final(case, readings, answer, kept)
    paced = readings.at_one_pace()
    raw = {place: [r.metrics["time"] for r in readings.of(place)] for place in case.places}
    steps = [1e3 * step for step in readings.medians().values()]
    return [
        f"## {case.name}",
        f"{len(steps)} assignments, {rounds} rounds, a step of {min(steps):.0f} to {max(steps):.0f} ms;"
        f" links of {case.bandwidth / 1e9:g} Gbit/s. "
        f"The rounds of an assignment have a standard deviation of {_spread(raw):.1%}, at one pace of"
        f" {_spread(paced):.1%} (medians). The host took {_stolen(readings):.1%} of the processor time.",
        "Replayed searches:",
        replayed(case, readings, seeds),
        f"Measured again, interleaved, {ROUNDS_AT_THE_END - SELECTING} times after {SELECTING} that chose the"
        f" best of brute force's first {CANDIDATES}."
        f" The live search had {trials} trials and took {seconds:.0f} s.",
        compared(case, named, best, kept),
    ]


def _spread(times: Mapping[Place, Sequence[float]]) -> float:
    """The relative standard deviation of the rounds of an assignment, the median over all."""
    return statistics.median(statistics.stdev(own) / statistics.fmean(own) for own in times.values())


def _stolen(readings: Readings) -> float:
    return statistics.fmean(reading.stolen for reading in readings.all)


def main() -> None:
    parser = Options(__file__, __doc__)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rounds", type=at_least_one, default=3)
    parser.add_argument("--seeds", type=at_least_one, default=20)
    parser.add_argument(
        "--cases", type=int, nargs="+", default=list(range(len(CASES))), choices=range(len(CASES))
    )
    options = parser.read()
    one_thread_each()
    options.work.mkdir(parents=True, exist_ok=True)
    parts: list[str | list[str]] = []
    for number in options.cases:
        parts += run(CASES[number], options.work, options.rounds, options.seeds)
    about = (
        f"{software('torch', 'numpy')}; {machine()}, load {os.getloadavg()[1]:.0f}. Devices are processes"
        f" with {', '.join(map(str, SHARES.values()))} of a core; links of {1e3 * LATENCY:g} ms."
        f" {CASES[0].micro_batches} micro-batches, {CASES[0].schedule.upper()}. A reading is the median of"
        f" {CASES[0].steps} steps."
    )
    regrets = (
        "Regret is the time of the answer over that of the best assignment, less 1. Replays are told measured"
        " times, drawn from the rounds; nothing is simulated."
    )
    title = "Placing a model on unequal devices"
    publish(page(title, options.command, about, regrets, *parts), options.out)


if __name__ == "__main__":
    run_as_command(main)
