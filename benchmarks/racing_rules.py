"""The rules of :mod:`benchmarks.racing`: how often each reads a configuration, and which it chooses."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from autotune.measure.outcome import Estimate, Reading
from autotune.measure.recordings.recording import Entry, Recording
from autotune.measure.rules.repetition import RepetitionRule, Verdict
from autotune.measure.rules.statistics import estimate
from autotune.session.execution.executor import Entrant
from autotune.session.finale.contender import DEFAULT, Contender
from autotune.session.finale.interleaved import read_in_rounds
from autotune.session.finale.rounds import Rounds
from autotune.session.finale.verdict import Standing, judge
from autotune.space.configuration import Configuration
from autotune.space.space import Space
from autotune.space.spec import MeasureSettings, MetricSpec, ReplayObjective, SearchSettings, StudySpec
from benchmarks.recorded_spaces import entry_of

TRIES = 220
MOST = 32
"""What a fixed rule reads of each configuration, and all that was recorded of most."""
NVBENCH_MOST_NOISE = 0.005
NVBENCH_WINDOW = 64
"""How many of the last readings have to be of about the same noise."""
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


def nvbench_enough(read: Sequence[float]) -> bool:
    """Whether the noise is low, or (from 65 readings on, looked at every 16) has settled within 5 %."""
    if _noise(read) < NVBENCH_MOST_NOISE:
        return True
    if len(read) <= NVBENCH_WINDOW or len(read) % 16:
        return False
    noise = [_noise(read[:n]) for n in range(len(read) - NVBENCH_WINDOW + 1, len(read) + 1)]
    return statistics.pstdev(noise) / noise[-1] < 0.05


def _noise(read: Sequence[float]) -> float:
    """The relative standard deviation."""
    mean = sum(read) / len(read)
    return math.sqrt(sum((value - mean) ** 2 for value in read) / (len(read) - 1)) / mean


def own(settings: MeasureSettings) -> Rule:
    """What a session does; see the top of :mod:`benchmarks.racing`."""

    rule = RepetitionRule(
        settings.precision,
        settings.confidence,
        settings.fewest,
        settings.max_readings,
        settings.reject,
    )

    warmup = 1 if settings.warmup is None else settings.warmup

    def choose(race: Race) -> Choice:
        used: dict[str, int] = {}
        incumbent: Estimate | None = None
        trials: list[tuple[float, Configuration]] = []
        for entry in race.measured:
            configuration = _inside(race.space, entry)
            read, verdict = _measured(rule, entry.readings[warmup:], incumbent)
            used[configuration.hash] = warmup + len(read)
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
    default = _inside(race.space, race.recording.entries[0])
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
    return TapeEntrant(entry_of(race.recording, configuration).readings, used[configuration.hash])


FIXED = f"fixed {MOST}"
OWN = "own"
RULES: Mapping[str, Rule] = {
    FIXED: by_mean(MOST),
    "fixed 7": by_mean(7),
    "nvbench": by_mean(10, nvbench_enough),
    OWN: own(MeasureSettings()),
    "own, read to the end": own(MeasureSettings(reject=False)),
}
