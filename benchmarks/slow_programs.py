"""How often a program that runs for seconds is worth reading, at equal time.

    python -m benchmarks.slow_programs --spaces DIR --seeds 10 --jobs 2 --out slow_programs.md

On recordings of kernels, slowed down: a run of the best configuration takes 10 s, the others as much longer
as they were recorded, and each run is off by so much (a standard deviation, of the logarithm). Runs and clock
are simulated, searches and rules are those of a session. A search has half an hour, or an hour; then the best
reading and those that the search expects to be best are read again with the default, as a session does it, in
a fifth of that time. Compiling costs nothing here, and what fails fails in a second.

``own`` is what a session does where nothing is said of readings; ``own, to the end`` where the program tells
its time itself, so that no run of it is ended early; ``five`` where the space file says ``warmup: 1,
min_readings: 5`` besides. ``once`` reads everything once, and so does ``optuna-tpe``. Given is how far what
was chosen is from the best, in truth.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from autotune.measure.outcome import Estimate
from autotune.measure.phases.repeating import OVERLONG
from autotune.measure.rules.repetition import RepetitionRule, Verdict
from autotune.measure.rules.statistics import estimate
from autotune.measure.rules.worth import Worth
from autotune.search.contract import Observation, Problem
from autotune.search.registry import make_strategy
from autotune.session.finale.rounds import SHARE, Rounds
from autotune.space.configuration import Configuration
from autotune.space.spec import Budget, MeasureSettings, MetricSpec, StudySpec
from autotune.status import Status
from benchmarks.options import Options
from benchmarks.publishing import head, machine, page, publish, software
from benchmarks.recorded_spaces import entry_of, opened, recordings, space_name
from benchmarks.running import at_least_one, in_workers, one_thread_each, run_as_command

BEST_SECONDS = 10.0
NOISE = (0.03, 0.15)
HOURS = (0.5, 1.0)
TIME = (MetricSpec("time", "minimize", "s"),)


@dataclass(frozen=True)
class Way:
    """A strategy, and how it has its configurations read."""

    strategy: str
    settings: MeasureSettings
    warms_each: bool = False
    """Whether each configuration is warmed up, and not only the first."""
    cuts: bool = False
    """Whether a run is ended that takes far longer than the best so far."""


WAYS: Mapping[str, Way] = {
    "own": Way("auto", MeasureSettings(), cuts=True),
    "own, to the end": Way("auto", MeasureSettings()),
    "five": Way("auto", MeasureSettings(min_readings=5), warms_each=True),
    "once": Way("auto", MeasureSettings(min_readings=1, max_readings=1)),
    "optuna-tpe": Way("optuna-tpe", MeasureSettings(min_readings=1, max_readings=1)),
}


@dataclass(frozen=True)
class Tried:
    """A configuration and what is known of it: what was read, and the truth in seconds."""

    configuration: Configuration
    known: Estimate
    truth: float


class Machine:
    """Runs configurations on a clock that is simulated."""

    def __init__(self, noise: float, seed: int) -> None:
        self.seconds = 0.0
        self._noise = noise
        self._rng = np.random.default_rng((seed, 1))

    def run(self, truth: float, most: float = math.inf) -> float:
        """A run, which is ended after ``most`` seconds; how long it took."""
        taken = min(truth * math.exp(self._noise * float(self._rng.standard_normal())), most)
        self.seconds += taken
        return taken


def read(
    way: Way, machine: Machine, truth: float, best: Estimate | None, budget: Budget, *, first: bool
) -> tuple[Estimate, Verdict]:
    """Read one configuration as a session would."""
    settings = way.settings
    rule = RepetitionRule(
        settings.precision, settings.confidence, settings.fewest, settings.max_readings, settings.reject
    )
    worth = Worth(budget.share, settings.min_readings)
    values: list[float] = []
    began = machine.seconds
    if first or way.warms_each:
        warm_up = machine.run(truth)
        if not way.warms_each and worth.enough(1, warm_up, warm_up, 0.0, beaten=True):
            values.append(warm_up)  # the program is so slow that it would be read once
        else:
            began = machine.seconds
    most = OVERLONG * best.high if way.cuts and best is not None and not values else math.inf
    while True:
        values.append(machine.run(truth, most))
        known = estimate(values, settings.confidence)
        if values[-1] == most:
            return known, Verdict.REJECTED
        most = math.inf
        decision = rule.decide(values, best)
        if decision.stop:
            return known, decision.verdict
        beaten = best is not None and known.value > best.value
        if worth.enough(len(values), machine.seconds - began, values[-1], 0.0, beaten=beaten):
            return known, Verdict.CAPPED


def search(path: Path, name: str, noise: float, hours: float, seed: int) -> tuple[float, int]:
    """How far the choice of one search is from the best, as a share of that, and how many it tried."""
    recording, space = opened(path)
    way, budget, machine = WAYS[name], Budget(time=3600 * hours), Machine(noise, seed)
    unit = BEST_SECONDS / min(entry.time for entry in recording.entries if entry.time is not None)
    strategy = make_strategy(way.strategy, Problem(space, TIME, seconds=budget.time), seed)
    tried: list[Tried] = []
    best: Estimate | None = None
    count = 0
    while machine.seconds < 3600 * hours and (proposals := strategy.ask()):
        configuration = proposals[0].configuration
        entry = entry_of(recording, configuration)
        count += 1
        if entry.time is None:
            machine.seconds += 1.0
            strategy.tell([Observation(configuration, entry.status)])
            continue
        truth = unit * entry.time
        known, verdict = read(way, machine, truth, best, budget, first=not tried)
        status = Status.PRUNED if verdict is Verdict.REJECTED else Status.OK
        strategy.tell([Observation(configuration, status, {"time": known.value}, {"time": known.error})])
        if status is Status.OK:
            tried.append(Tried(configuration, known, truth))
            best = known if best is None or known.value < best.value else best
    chosen = defended(tried, strategy.expected(), StudySpec("slow", space, budget=budget), machine)
    return chosen.truth / BEST_SECONDS - 1, count


def defended(
    tried: Sequence[Tried], expected: Mapping[str, float], spec: StudySpec, machine: Machine
) -> Tried:
    """The one of the finalists whose runs were the shortest, in as many rounds as there is time for."""
    first, *others = sorted(tried, key=lambda one: one.known.value)
    others.sort(key=lambda one: expected.get(one.configuration.hash, math.inf))
    rounds, reading = Rounds.of(spec), statistics.median(one.known.value for one in tried)
    room = int(rounds.room(2 * reading) / reading) - 1  # the default is read, too
    finalists = [first, *others][: min(spec.measure.finalists, room)]
    count = rounds.among(len(finalists) + 1, (len(finalists) + 1) * reading).least
    return min(finalists, key=lambda one: statistics.median(machine.run(one.truth) for _ in range(count)))


def report(runs: Mapping[tuple[float, float, str], Sequence[tuple[str, float, int]]], command: str) -> str:
    about = (__doc__ or "").split("\n\n", 2)[2].strip()
    on = f"{software('optuna', 'numpy')}, {machine()}. The finale's time ({SHARE:.0%}) comes on top."
    spaces = list(dict.fromkeys(space for found in runs.values() for space, *_ in found))
    lines = head(f"noise | time | way | tried | off by: mean | median | worst | {' | '.join(spaces)}")
    for (noise, hours, name), found in runs.items():
        off = [regret for _, regret, _ in found]
        each = [statistics.median(r for s, r, _ in found if s == space) for space in spaces]
        figures = [statistics.mean(off), statistics.median(off), max(off), *each]
        count = statistics.mean(tries for *_, tries in found)
        cells = [
            f"{noise:.0%}",
            f"{60 * hours:.0f} min",
            name,
            f"{count:.0f}",
            *(f"{x:.1%}" for x in figures),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    title = "How often a slow program is worth reading"
    return page(title, command, about, on, lines, "By space: medians over seeds.")


def main() -> int:
    one_thread_each()
    parser = Options(__file__, __doc__)
    parser.add_argument("--spaces", type=Path, required=True, help="directory of recordings")
    parser.add_argument("--only", default="", help="names of recordings, separated by commas; default: all")
    parser.add_argument("--seeds", type=at_least_one, default=10)
    parser.aside("--jobs", type=at_least_one, default=os.cpu_count() or 1)
    options = parser.read()
    paths = [path for _, path in recordings(options.spaces, options.only)]
    cases = list(product(NOISE, HOURS, WAYS))
    todo = [
        (path, name, noise, hours, seed)
        for noise, hours, name in cases
        for path in paths
        for seed in range(options.seeds)
    ]
    runs: dict[tuple[float, float, str], list[tuple[str, float, int]]] = {}
    for (path, name, noise, hours, _), found in in_workers(search, todo, options.jobs):
        runs.setdefault((noise, hours, name), []).append((space_name(path), *found))
    publish(report(runs, options.command), options.out)
    return 0


if __name__ == "__main__":
    run_as_command(main)
