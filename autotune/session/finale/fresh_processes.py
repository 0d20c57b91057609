"""The winner of a finale and the default again in fresh processes: what one process had by luck is no gain.

All rounds of a finale are read in one process for each contender. Where its memory lies and in which order
its sets are gone through is drawn by lot as it starts, and stays: of ordinary Python that is up to a tenth,
of a kernel per cents (Mytkowicz, Diwan, Hauswirth and Sweeney, *Producing wrong data without doing anything
obviously wrong!*, ASPLOS 2009). The interval of the rounds knows nothing of it, and a knob without any
effect wins.

So the gain is that of some runs more, each with processes of its own. They had no part in choosing the
winner: what they say needs no correction for the best of many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.measure.clocks import monotonic
from autotune.measure.rules.significance import Ratio, over_runs
from autotune.session.execution.executor import Executor
from autotune.session.finale.contender import Contender
from autotune.session.finale.interleaved import read_again
from autotune.session.finale.rounds import ReadingSeconds, Rounds
from autotune.space.spec import StudySpec

RUNS, FEWEST = 12, 4
"""The more the better; of four it is still worth knowing."""

EARLIEST = 6
"""From so many on the signed ranks tell at 95 %, and runs may end because the gain is known. Were that asked
of four, where Student's t tells, too many would end for a spread that is small by luck."""

LEAST_SECONDS = 10.0
"""There is always time for these: of twelve runs one may be off, of eight hardly any."""

ROUNDS = Rounds(least=3, most=3, seconds=5.0, fewest=3)
"""Of a run: their median leaves out one that something came in between of. In that time what was disturbed is
read again."""


@dataclass(frozen=True)
class FreshRuns:
    """What was read of some contenders in runs of fresh processes."""

    runs: Sequence[Mapping[str, tuple[float, ...]]] = ()
    """Of each run that nobody failed in: values of the first goal by label."""
    failed: str = ""
    """The label of the configuration that failed, which ended it; empty: none."""
    how: str = ""

    @property
    def enough(self) -> bool:
        return len(self.runs) >= FEWEST


@dataclass(frozen=True)
class Plan:
    """Who is read in how many runs, and about how long that takes."""

    contenders: tuple[Contender, ...]
    runs: int
    """0 where too few would fit into the time."""
    seconds: float
    allowed: float
    """Seconds after which no run begins, once there are enough."""

    @classmethod
    def of(cls, contenders: Sequence[Contender], seconds: ReadingSeconds, allowed: float) -> Plan:
        """As many runs of ``contenders`` as fit; those after the first two are left out rather than none.

        ``allowed``: the seconds that the rounds before had.
        """
        asked, allowed = list(contenders), seconds_for(allowed)
        while (runs := _affordable(asked, seconds, allowed)) < FEWEST and len(asked) > 2:
            asked.pop()
        runs = runs if runs >= FEWEST else 0
        return cls(tuple(asked), runs, runs * _run_seconds(asked, seconds), allowed)

    @property
    def labels(self) -> tuple[str, ...]:
        """Of its contenders."""
        return tuple(contender.label for contender in self.contenders)


def seconds_for(before: float) -> float:
    """What the runs are given after rounds that had ``before`` seconds."""
    return max(before, LEAST_SECONDS)


def read_in_fresh_processes(
    spec: StudySpec, executor: Executor, plan: Plan, before: int, after_run: Callable[[], None]
) -> FreshRuns:
    """Read the contenders of ``plan`` in its runs; a baseline that fails is left out from then on.

    ``before``: the rounds that they were read in already. Their readings are added to those that they have.
    """
    asked: Sequence[Contender] = plan.contenders
    runs: list[Mapping[str, tuple[float, ...]]] = []
    began = monotonic()
    while len(runs) < plan.runs:
        run = len(runs) + 1
        fresh = [Contender(contender.label, contender.what) for contender in asked]
        rounds, outcomes = read_again(spec, executor, fresh, ROUNDS, before, run=run)
        before += rounds
        for contender, again in zip(asked, fresh, strict=True):
            contender.readings += [replace(r, context={**r.context, "process": run}) for r in again.readings]
        after_run()
        for again in fresh:
            if again.failure is not None and again.configuration is not None:
                outcome = outcomes[again.label]
                how = f"ended as {outcome.status} in another process: {outcome.message}"
                return FreshRuns(runs, again.label, how)
        asked = [c for c, again in zip(asked, fresh, strict=True) if again.failure is None]
        goal = spec.goals[0].name
        runs.append({again.label: tuple(again.values(goal)) for again in fresh if again.failure is None})
        late = monotonic() - began > plan.allowed
        if len(runs) >= FEWEST and (late or _known(spec, runs, *plan.labels[:2])):
            break
    return FreshRuns(runs)


def _known(spec: StudySpec, runs: Sequence[Mapping[str, tuple[float, ...]]], one: str, other: str) -> bool:
    """Whether the gain of one over the other has no noise, or is known as well as the space file asks for.

    That speaks of the noise, and not of who is ahead: to look at it after each run favours nobody.
    """
    first, second = ([run[label] for run in runs] for label in (one, other))
    if len(set(first)) == len(set(second)) == 1:
        return True
    found = over_runs(first, second, spec.measure.confidence) if len(runs) >= EARLIEST else None
    half = spec.measure.precision / 2
    return isinstance(found, Ratio) and (found.high - found.low) / 2 <= half * found.estimate


def _affordable(contenders: Sequence[Contender], seconds: ReadingSeconds, allowed: float) -> int:
    """How many runs of them fit."""
    each = _run_seconds(contenders, seconds)
    return min(RUNS, int(allowed / each)) if each > 0 else RUNS


def _run_seconds(contenders: Sequence[Contender], seconds: ReadingSeconds) -> float:
    """About how long one run takes. Each process reads once more, to warm its caches."""
    return sum(c.entering + (1 + ROUNDS.most) * seconds(c.configuration) for c in contenders)
