"""How often finalists are read, and how many of them, in the time for a finale. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from autotune.session.finale.stakes import UNKNOWN, Stakes
from autotune.space.configuration import Configuration
from autotune.space.spec import StudySpec
from autotune.store.records import TrialRecord

MIN_ROUNDS, MAX_ROUNDS = 12, 60
"""The number of rounds if there is time. Fewer give no reliable interval, and more hardly narrow it."""

FEWEST_ROUNDS = 8
"""The number of rounds if time is short. If all eight agree, signed ranks find the best of five at 95 %."""

FEWEST_RUNS = 3
"""The same if a reading is a whole training, of which a trial seldom has more than one. An interval from
three is wide, but costs a quarter."""

FEWEST_READINGS = 2
"""A single reading says nothing about the noise, and the verdict would ignore it."""

SHARE = 0.2
"""The time for a finale, as a fraction of the search's limit of time, or of the time it took without one."""

LONGER = 2.0
"""By this factor a finale may be longer if that is likely to tell a gain from the noise."""

WORTH_MORE = 1.25
"""If a round does not fit into the time anyway, it may be longer by this factor for further finalists."""

LEAST_SECONDS, USUAL_SECONDS = 5.0, 30.0
"""A finale always has the first. After a search without a limit of time it has the second, or as long as
the search took if that is less."""


ENTERING = ("load", "check", "warmup")
"""The phases before a contender's process can be read. Compiling is not among them: its result is cached."""


@dataclass(frozen=True)
class Rounds:
    """In how many rounds contenders are read: at least ``least``, at most ``most``."""

    least: int
    most: int
    seconds: float
    """The time after which no round beyond ``least`` begins, unless it is :meth:`promising`."""
    fewest: int
    """To how many ``least`` may be reduced if they do not fit into ``seconds``."""
    stakes: Stakes = UNKNOWN
    """What they have to tell from noise."""

    @classmethod
    def of(cls, spec: StudySpec, searched: float | None = None) -> Rounds:
        """The rounds of a finale after a search of ``searched`` seconds; ``None`` without a search."""
        seconds = _seconds(spec.budget.time, searched)
        if spec.search.early_stopping is not None:
            return cls(FEWEST_RUNS, MAX_ROUNDS, seconds, FEWEST_RUNS)
        # If a trial has only a few readings, they are expensive, as whole trainings are.
        fewest = min(FEWEST_ROUNDS, max(FEWEST_RUNS, spec.measure.max_readings))
        return cls(MIN_ROUNDS, MAX_ROUNDS, seconds, fewest)

    def split(self, runs: int) -> Rounds:
        """The rounds of each of ``runs`` runs that share these; each has at least one."""
        each = max(1, -(-self.least // runs))
        return Rounds(each, max(each, self.most // runs), self.seconds / runs, each)

    def among(self, contenders: int, once: float) -> Rounds:
        """With ``least`` reduced to the rounds that fit, if one of all contenders takes ``once`` seconds.

        A contender that is alone is read twice, so that its noise is known.
        """
        if contenders < 2:
            return replace(self, least=FEWEST_READINGS)
        fit = int(self.seconds / once) if once > 0 else self.least
        return replace(self, least=min(self.least, max(self.fewest, fit)))

    def longest(self, once: float) -> float:
        """About how many seconds the rounds take at most, if one takes ``once`` seconds."""
        return max(self.seconds, self.least * once)

    def facing(self, stakes: Stakes, once: float) -> Rounds:
        """With as many more rounds at least as are likely to show the gain, if they fit into the time.

        ``once``: seconds of a round of those that are read in any case.
        """
        fit = int(self.seconds / once) if once > 0 else FEWEST_ROUNDS
        wanted = stakes.rounds_to_show(self.fewest, FEWEST_ROUNDS)
        return replace(self, stakes=stakes, fewest=max(self.fewest, min(wanted, fit)))

    def promising(self, width: float, rounds: int, each: float, taken: float) -> bool:
        """Whether more rounds of ``each`` seconds would likely show the gain, in a time :data:`LONGER`.

        ``width``: see :meth:`Stakes.shown_by`. ``taken``: seconds so far.
        """
        further = int((LONGER * self.seconds - taken) / each) if each > 0 else self.most
        return self.stakes.shown_by(width, rounds, min(self.most, rounds + further))

    def room(self, needed: float) -> float:
        """How many seconds one round may take. ``needed`` is what the indispensable contenders take.

        If these alone take too long, as with a slow default, some finalists are included all the same, since
        they add little.
        """
        return max(self.seconds / self.fewest, WORTH_MORE * needed)


@dataclass(frozen=True)
class ReadingSeconds:
    """About how many seconds a reading of a configuration takes, judged by the trials of the search."""

    usual: float
    """The median over all trials; 0 without trials."""
    own: Mapping[str, float] = field(default_factory=dict)
    """By the hash of a configuration: what its own trial took."""
    entering: float = 0.0
    """Seconds before its first reading (loading, checking and warming up): the median over all trials."""

    @classmethod
    def of(cls, spec: StudySpec, trials: Iterable[TrialRecord]) -> ReadingSeconds:
        """By ``trials`` that succeeded. With early stopping, a reading is a whole training."""
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
        """The seconds for a configuration, or for a baseline (``None``)."""
        return self.own.get(configuration.hash, self.usual) if configuration is not None else self.usual


def _middle(seconds: Iterable[float]) -> float:
    return statistics.median([*seconds] or [0.0])


def _seconds(given: float | None, searched: float | None) -> float:
    if given is not None:
        return max(LEAST_SECONDS, SHARE * given)
    if searched is None:
        return USUAL_SECONDS
    return max(LEAST_SECONDS, SHARE * searched, min(searched, USUAL_SECONDS))
