"""How many readings it takes to choose well, on raw readings that were recorded on real GPUs.

    python -m benchmarks.racing --spaces DIR --seeds 20 --jobs 2 --out benchmarks/results/racing.md

A search tries 220 configurations: in random order, or those that ``auto`` asks for (told the recorded
times, so that every rule meets the same ones in the same order). Each rule reads each configuration from the
start of its recorded readings, and in the end names one. What is counted are readings, warm-ups included; a
configuration that failed has none. The choice is judged by the mean of all that was recorded of it: *regret*
is that over the same of what a fixed 32 readings chose, less 1. (A fixed 32 sees what it is judged by.)

``own`` is what a session does, through the same rules, with the default settings of a space
file (a warm-up, then readings until precise, rejected or capped), each configuration held against the best
so far, and in the end the finale with its verdict: the five best and the default (which is the first
configuration tried) read in rounds, going on where the search stopped reading; its readings count too. No
contender is read in more rounds than the recording has readings of it; the tape begins anew after the last.
``own, read to the end`` does without early rejection. ``nvbench`` is the rule of NVIDIA's nvbench as it
documents it: ten readings at least, then until the relative standard deviation is below 0.5 %, or has
settled (its least time is left out: it would only add readings). Kernel Tuner reads a fixed 7 times.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, product
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from autotune.errors import AutotuneError
from autotune.measure.outcome import Estimate, Reading
from autotune.measure.read_recording import read_recording
from autotune.measure.recording import Entry, Recording
from autotune.measure.repetition import RepetitionRule, Verdict
from autotune.measure.statistics import estimate
from autotune.search.contract import Observation, Problem
from autotune.search.registry import make_strategy
from autotune.session.executor import Entrant
from autotune.session.finale import DEFAULT, Contender, read_in_rounds
from autotune.session.rounds import Rounds
from autotune.session.verdict import Standing, judge
from autotune.space.configuration import Configuration
from autotune.space.space import Space
from autotune.space.spec import MeasureSettings, MetricSpec, ReplayObjective, SearchSettings, StudySpec
from benchmarks.recorded_spaces import recorded_space, recordings, space_name
from benchmarks.running import one_thread_each

TRIES = 220
MOST = 32
"""What a fixed rule reads of each configuration, and all that was recorded of most."""
GOAL = 0.005
"""How much worse a choice may be and still count as good."""
METRICS = (MetricSpec("time", "minimize", "s"),)


@dataclass(frozen=True)
class Race:
    """One search's configurations in the order tried, with what was recorded of each."""

    space: Space
    recording: Recording
    """Only the configurations tried, in the order in which they were."""
    seed: int

    @property
    def measured(self) -> list[Entry]:
        return [entry for entry in self.recording.entries if entry.readings]


@dataclass(frozen=True)
class Choice:
    """What a rule chose, how many readings it took, and how many of these in the finale."""

    chosen: Configuration
    readings: int
    finale: int = 0


Rule = Callable[[Race], Choice]


# -- the rules


def by_mean(least: int, enough: Callable[[Sequence[float]], bool] = lambda read: True) -> Rule:
    """Reads each configuration at least so often and until it is ``enough``; the lowest mean is chosen."""

    def choose(race: Race) -> Choice:
        count, best, chosen = 0, float("inf"), None
        for entry in race.measured:
            stops = (n for n in range(least, len(entry.readings)) if enough(entry.readings[:n]))
            stop = next(stops, max(least, len(entry.readings)))
            read = entry.readings[:stop]
            count += stop
            if (mean := statistics.fmean(read)) < best:
                best, chosen = mean, entry.configuration
        assert chosen is not None
        return Choice(chosen, count)

    return choose


def nvbench_enough(read: Sequence[float], most_noise: float = 0.005, window: int = 64) -> bool:
    """Whether the noise is low, or (from 65 readings on, looked at every 16) has settled within 5 %."""
    if _noise(read) < most_noise:
        return True
    if len(read) <= window or len(read) % 16:
        return False
    noise = [_noise(read[:n]) for n in range(len(read) - window + 1, len(read) + 1)]
    return statistics.pstdev(noise) / noise[-1] < 0.05


def _noise(read: Sequence[float]) -> float:
    """The relative standard deviation."""
    mean = sum(read) / len(read)
    return math.sqrt(sum((value - mean) ** 2 for value in read) / (len(read) - 1)) / mean


def own(settings: MeasureSettings) -> Rule:
    """What a session does; see the top of the module."""

    rule = RepetitionRule(
        settings.precision,
        settings.confidence,
        settings.min_readings,
        settings.max_readings,
        settings.reject,
    )

    def choose(race: Race) -> Choice:
        used: dict[str, int] = {}
        incumbent: Estimate | None = None
        trials: list[tuple[float, Configuration]] = []
        for entry in race.measured:
            configuration = _inside(race.space, entry)
            read, verdict = _measured(rule, entry.readings[settings.warmup :], incumbent)
            used[configuration.hash] = settings.warmup + len(read)
            if verdict is not Verdict.REJECTED:
                found = estimate(read, settings.confidence)
                trials.append((found.value, configuration))
                if incumbent is None or found.value < incumbent.value:
                    incumbent = found
        best = [configuration for _, configuration in sorted(trials, key=lambda trial: trial[0])]
        chosen, finale = _defended(race, settings, best, used)
        return Choice(chosen, sum(used.values()) + finale, finale)

    return choose


def _measured(
    rule: RepetitionRule, tape: Sequence[float], incumbent: Estimate | None
) -> tuple[Sequence[float], Verdict]:
    """What is read of a tape, and why no more; its end is as a cap."""
    for n in range(1, len(tape)):
        decision = rule.decide(tape[:n], incumbent)
        if decision.stop:
            return tape[:n], decision.verdict
    return tape, Verdict.CAPPED


def _inside(space: Space, entry: Entry) -> Configuration:
    return space.configuration({knob.name: entry.configuration[knob.name] for knob in space.knobs})


# -- the finale


class TapeEntrant(Entrant):
    """Reads on in a recording, where the search has stopped."""

    def __init__(self, values: Sequence[float], place: int) -> None:
        self.most_readings = len(values)
        self._values = values
        self._place = place

    def read(self, seed: int) -> tuple[Reading, ...]:
        value = self._values[self._place % len(self._values)]
        self._place += 1
        return (Reading("time", value),)

    def close(self) -> None:
        pass


def _defended(
    race: Race,
    settings: MeasureSettings,
    best: Sequence[Configuration],
    used: Mapping[str, int],
) -> tuple[Configuration, int]:
    """The verdict of the finale, and how many readings it took."""
    default = race.space.default()
    spec = StudySpec(
        name="racing",
        space=race.space,
        objective=ReplayObjective(race.recording.path),
        metrics=METRICS,
        search=SearchSettings(seed=race.seed),
        measure=settings,
    )
    others = [configuration for configuration in best if configuration != default]
    finalists = [(c.hash, c) for c in islice(others, settings.finalists)]
    standing = [(DEFAULT, default)] if default.hash in used else []
    contenders = [Contender(label, c, _entrant(race, c, used)) for label, c in [*standing, *finalists]]
    read_in_rounds(spec, contenders, Rounds.of(spec))
    verdict = judge(
        spec,
        [
            Standing(
                label=c.label,
                configuration=c.configuration,
                is_default=c.label == DEFAULT,
                values=tuple(c.values("time")),
                distance=0.0 if c.label == DEFAULT else race.space.distance(default, _chosen(c)),
            )
            for c in contenders
        ],
    )
    return race.space.configuration(verdict["configuration"]), sum(len(c.readings) for c in contenders)


def _chosen(contender: Contender) -> Configuration:
    assert contender.configuration is not None
    return contender.configuration


def _entrant(race: Race, configuration: Configuration, used: Mapping[str, int]) -> TapeEntrant:
    entry = race.recording.find(configuration)
    assert entry is not None
    return TapeEntrant(entry.readings, used[configuration.hash])


FIXED = f"fixed {MOST}"
OWN = "own"
RULES: Mapping[str, Rule] = {
    FIXED: by_mean(MOST),
    "fixed 7": by_mean(7),
    "nvbench": by_mean(10, nvbench_enough),
    OWN: own(MeasureSettings()),
    "own, read to the end": own(MeasureSettings(reject=False)),
}


# -- what is read


@lru_cache(maxsize=1)
def _opened(path: Path) -> tuple[Recording, Space]:
    recording = read_recording(path)
    return recording, recorded_space(recording)


def race(path: Path, order: str, seed: int, shuffled: bool) -> Race:
    """What one search tries. ``shuffled``: its readings in a random order, without warm-up and drift."""
    recording, space = _opened(path)
    entries = list(islice(_tried(order, recording, space, seed), TRIES))
    if shuffled:
        rng = np.random.default_rng(seed)
        entries = [replace(e, readings=tuple(rng.permutation(e.readings).tolist())) for e in entries]
    return Race(space, replace(recording, entries=tuple(entries)), seed)


def _tried(order: str, recording: Recording, space: Space, seed: int) -> Iterator[Entry]:
    strategy = make_strategy(order, Problem(space, METRICS, TRIES), seed)
    while proposals := strategy.ask():
        entry = recording.find(proposals[0].configuration)
        assert entry is not None
        yield entry
        metrics = {} if entry.time is None else {"time": entry.time}
        strategy.tell([Observation(proposals[0].configuration, entry.status, metrics)])


@dataclass(frozen=True)
class Line:
    """What came of one rule on one race."""

    space: str
    order: str
    rule: str
    readings: int
    finale: int
    fixed: int
    """What a fixed 32 would have read."""
    regret: float


def run(path: Path, order: str, seed: int, shuffled: bool) -> list[Line]:
    """Each rule on one race."""
    tried = race(path, order, seed, shuffled)
    choices = {name: rule(tried) for name, rule in RULES.items()}
    least = _mean(tried, choices[FIXED])
    return [
        Line(
            space=space_name(path),
            order=order,
            rule=name,
            readings=choice.readings,
            finale=choice.finale,
            fixed=MOST * len(tried.measured),
            regret=_mean(tried, choice) / least - 1,
        )
        for name, choice in choices.items()
    ]


def _mean(tried: Race, choice: Choice) -> float:
    entry = tried.recording.find(choice.chosen)
    assert entry is not None
    return statistics.fmean(entry.readings)


# -- the table


def report(lines: Sequence[Line], paths: Sequence[Path], command: str) -> str:
    seeds = len(lines) // len(RULES) // len({(line.space, line.order) for line in lines})
    out = [
        "# How many readings a choice takes",
        "",
        f"`{command}`",
        "",
        f"Python {platform.python_version()}, numpy {np.__version__}, {seeds} seeds,"
        f" searches of {TRIES} tries on recordings of GPUs; no GPU was used here."
        " What each rule is, the module says.",
        "",
    ]
    for order in dict.fromkeys(line.order for line in lines):
        some = [line for line in lines if line.order == order]
        out += [f"## Tried by `{order}`", "", *_summary(some), "", *_by_space(some), ""]
    return "\n".join([*out, "## What was recorded", "", *_recorded(paths)]) + "\n"


def _summary(lines: Sequence[Line]) -> Iterator[str]:
    yield "| rule | readings over a fixed 32's | least to most | in the finale | regret: median | worst |"
    yield "|---|---|---|---|---|---|"
    for rule in RULES:
        some = [x for x in lines if x.rule == rule]
        shares = [x.readings / x.fixed for x in some]
        finale = statistics.fmean(x.finale / x.fixed for x in some)
        regrets = [x.regret for x in some]
        yield (
            f"| {rule} | {statistics.fmean(shares):.3f} | {min(shares):.3f} to {max(shares):.3f}"
            f" | {finale:.3f} | {statistics.median(regrets):.2%} | {max(regrets):.2%} |"
        )


def _by_space(lines: Sequence[Line]) -> Iterator[str]:
    spaces = list(dict.fromkeys(line.space for line in lines))
    yield "By space: readings over a fixed 32's; worst regret; choices within 0.5 % of a fixed 32's."
    yield ""
    yield f"| rule | {' | '.join(spaces)} |"
    yield "|---" * (1 + len(spaces)) + "|"
    for rule in RULES:
        cells = []
        for space in spaces:
            some = [x for x in lines if (x.rule, x.space) == (rule, space)]
            share = statistics.fmean(x.readings / x.fixed for x in some)
            good = sum(x.regret <= GOAL for x in some)
            cells.append(f"{share:.3f}; {max(x.regret for x in some):.2%}; {good} of {len(some)}")
        yield f"| {rule} | {' | '.join(cells)} |"


def _recorded(paths: Sequence[Path]) -> Iterator[str]:
    yield "Medians over configurations; noise is the interquartile range over 1.35, over the median."
    yield "A fixed 32 is counted as 32 where fewer were recorded, and chooses by what there is. What"
    yield "drifts in a recording (the halves of the W7800's) does not cancel in the finale, as it does on a"
    yield "machine: its configurations were not read side by side."
    yield ""
    yield "| space | readings | noise | first over median | second | last | halves apart (90th percentile) |"
    yield "|---|---|---|---|---|---|---|"
    for path in paths:
        found = [entry.readings for entry in read_recording(path).entries if entry.readings]
        n = min(map(len, found))
        times = np.array([values[:n] for values in found])
        middle = np.median(times, axis=1)
        noise = np.subtract(*np.percentile(times, [75, 25], axis=1)) / 1.35 / middle
        first, second, last = (np.median(times[:, i] / middle) for i in (0, 1, -1))
        halves = np.median(times[:, n // 2 :], axis=1) / np.median(times[:, : n // 2], axis=1)
        apart = np.percentile(np.abs(halves - 1), 90)
        yield (
            f"| {space_name(path)} | {n} | {np.median(noise):.2%} | {first:.3f} | {second:.3f} | {last:.3f}"
            f" | {apart:.1%} |"
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spaces", type=Path, required=True, help="directory of recordings")
    parser.add_argument("--only", default="", help="names of recordings, separated by commas; default: all")
    parser.add_argument("--orders", default="random,auto", help="strategies that choose what is tried")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--shuffled", action="store_true", help="each tape in a random order")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, help="the table; default: standard output")
    return parser.parse_args()


def main() -> int:
    one_thread_each()
    options = arguments()
    paths = [path for _, path in recordings(options.spaces, options.only)]
    orders = options.orders.split(",")
    todo = [(*one, options.shuffled) for one in product(paths, orders, range(options.seeds))]
    lines: list[Line] = []
    with ProcessPoolExecutor(options.jobs, get_context("spawn")) as pool:
        for found in pool.map(run, *zip(*todo, strict=True)):
            lines += found
            print(".", end="", flush=True, file=sys.stderr)
    command = f"python -m benchmarks.racing --spaces DIR --orders {options.orders} --seeds {options.seeds}"
    text = report(
        sorted(lines, key=lambda x: orders.index(x.order)),
        paths,
        command + (" --shuffled" if options.shuffled else ""),
    )
    if options.out:
        options.out.write_text(text)
    else:
        print(text)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except AutotuneError as error:
        raise SystemExit(str(error)) from None
