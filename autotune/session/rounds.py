"""How often finalists are read, and how many of them: what the time for a finale allows. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace

from autotune.space.spec import StudySpec
from autotune.store.records import TrialRecord

MIN_ROUNDS, MAX_ROUNDS = 12, 60
"""Below the first no interval is trusted where there is time; past the second more hardly narrow it."""

FEWEST_ROUNDS = 8
"""Where there is not: so many signed ranks still tell the best of five at 95 %, if all of them agree."""

FEWEST_RUNS = 3
"""The same where a reading is a whole training, and a trial seldom more than one: an interval from so few is
wide, but costs a quarter."""

FEWEST_READINGS = 2
"""From a single one nothing is known of the noise, and the verdict would not count it."""

SHARE = 0.2
"""Of the time for the search; a search without a limit of time counts as given what it took."""

LEAST_SECONDS, USUAL_SECONDS = 5.0, 30.0
"""There is always time for the first; a search without a limit of time gets the second, or as long as it
took where that was less."""


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

    def room(self, reading: float) -> int | None:
        """How many contenders can be read often enough if one reading takes so long; ``None``: any number."""
        return int(self.seconds / (self.fewest * reading)) if reading > 0 else None

    def among(self, contenders: int, reading: float) -> Rounds:
        """With as many rounds as fit for so many contenders. One alone is read twice, for its own sake."""
        if contenders < 2:
            return replace(self, least=FEWEST_READINGS)
        once = contenders * reading
        fit = int(self.seconds / once) if once > 0 else self.least
        return replace(self, least=min(self.least, max(self.fewest, fit)))

    def longest(self, contenders: int, reading: float) -> float:
        """About how many seconds they take at most."""
        return max(self.seconds, self.least * contenders * reading)


def seconds_a_reading(spec: StudySpec, trials: Iterable[TrialRecord]) -> float:
    """The median over trials that succeeded; of trainings that may be stopped, of a whole one.

    0 where there are none.
    """
    goal = spec.goals[0].name
    whole = spec.search.early_stopping is not None
    taken = [
        trial.phases["measure"] / (1 if whole else max(trial.metrics[goal].n, 1))
        for trial in trials
        if "measure" in trial.phases and goal in trial.metrics
    ]
    return statistics.median(taken) if taken else 0.0


def _seconds(given: float | None, searched: float | None) -> float:
    if given is not None:
        return max(LEAST_SECONDS, SHARE * given)
    if searched is None:
        return USUAL_SECONDS
    return max(LEAST_SECONDS, SHARE * searched, min(searched, USUAL_SECONDS))
