"""How often finalists are read, and how many of them: what the time for a finale allows. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from autotune.space.configuration import Configuration
from autotune.space.spec import StudySpec
from autotune.store.records import TrialRecord

MIN_ROUNDS, MAX_ROUNDS = 12, 60
"""Where there is time. Fewer rounds give no interval to trust, and more hardly narrow it."""

FEWEST_ROUNDS = 8
"""Where time is short: if all rounds agree, so many signed ranks still tell the best of five at 95 %."""

FEWEST_RUNS = 3
"""The same where a reading is a whole training, and a trial seldom more than one: an interval from so few is
wide, but costs a quarter."""

FEWEST_READINGS = 2
"""From a single one nothing is known of the noise, and the verdict would not count it."""

SHARE = 0.2
"""Of the time for the search; a search without a limit of time counts as given what it took."""

WORTH_MORE = 1.25
"""So many times as long may a round be for the sake of further finalists, where it does not fit anyway."""

LEAST_SECONDS, USUAL_SECONDS = 5.0, 30.0
"""There is always time for the first; a search without a limit of time gets the second, or as long as it
took where that was less."""


ENTERING = ("load", "check", "warmup")
"""The phases in which a contender's process makes ready to be read. What it compiles is kept."""


@dataclass(frozen=True)
class Rounds:
    """How often contenders are read: no end before ``least`` rounds, none after ``most``."""

    least: int
    most: int
    seconds: float
    """After which no round beyond ``least`` begins."""
    fewest: int
    """What ``least`` may fall to where so many do not fit into ``seconds``."""

    @classmethod
    def of(cls, spec: StudySpec, searched: float | None = None) -> Rounds:
        """Those of a finale after ``searched`` seconds; ``None``: there was no search to compare with."""
        seconds = _seconds(spec.budget.time, searched)
        if spec.search.early_stopping is not None:
            return cls(FEWEST_RUNS, MAX_ROUNDS, seconds, FEWEST_RUNS)
        # Whom a few readings of a trial are enough has whole trainings, too.
        fewest = min(FEWEST_ROUNDS, max(FEWEST_RUNS, spec.measure.max_readings))
        return cls(MIN_ROUNDS, MAX_ROUNDS, seconds, fewest)

    def split(self, runs: int) -> Rounds:
        """The same in so many runs, with at least one round in each."""
        each = max(1, -(-self.least // runs))
        return Rounds(each, max(each, self.most // runs), self.seconds / runs, each)

    def among(self, contenders: int, once: float) -> Rounds:
        """With as many rounds as fit where one of so many contenders takes ``once`` seconds.

        One contender alone is read twice, for its own sake.
        """
        if contenders < 2:
            return replace(self, least=FEWEST_READINGS)
        fit = int(self.seconds / once) if once > 0 else self.least
        return replace(self, least=min(self.least, max(self.fewest, fit)))

    def longest(self, once: float) -> float:
        """About how many seconds they take at most, where a round takes ``once``, as it did in the search."""
        return max(self.seconds, self.least * once)

    def room(self, needed: float) -> float:
        """Seconds that one round may take; ``needed`` is what the contenders take that cannot be left out.

        Where those alone take too long, as with a slow default, some finalists enter all the same: beside
        it they take little.
        """
        return max(self.seconds / self.fewest, WORTH_MORE * needed)


@dataclass(frozen=True)
class ReadingSeconds:
    """About how many seconds a reading takes: of what was tried before its own, else what is usual."""

    usual: float
    """The median; 0 where nothing was tried."""
    own: Mapping[str, float] = field(default_factory=dict)
    """By the hash of a configuration."""
    entering: float = 0.0
    """Before its first one: loading, checking and warming up, in the middle of those that were tried."""

    @classmethod
    def of(cls, spec: StudySpec, trials: Iterable[TrialRecord]) -> ReadingSeconds:
        """As the ``trials`` took that succeeded. Of trainings that may be stopped it is a whole one."""
        goal = spec.goals[0].name
        whole = spec.search.early_stopping is not None
        tried = [trial for trial in trials if "measure" in trial.phases and goal in trial.metrics]
        taken = {
            trial.hash: trial.phases["measure"] / (1 if whole else max(trial.metrics[goal].n, 1))
            for trial in tried
        }
        entered = [sum(trial.phases.get(phase, 0.0) for phase in ENTERING) for trial in tried]
        return cls(_middle(taken.values()), taken, _middle(entered))

    def __call__(self, configuration: Configuration | None) -> float:
        """Of a configuration, or of a baseline (``None``)."""
        return self.own.get(configuration.hash, self.usual) if configuration is not None else self.usual


def _middle(seconds: Iterable[float]) -> float:
    return statistics.median([*seconds] or [0.0])


def _seconds(given: float | None, searched: float | None) -> float:
    if given is not None:
        return max(LEAST_SECONDS, SHARE * given)
    if searched is None:
        return USUAL_SECONDS
    return max(LEAST_SECONDS, SHARE * searched, min(searched, USUAL_SECONDS))
