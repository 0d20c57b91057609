"""Measuring the winner of a finale and the default in fresh processes, since one process may just be lucky.

All rounds of a finale are read in one process for each contender. Where the memory of a process lies, and
in which order its sets are iterated, is random at its start and stays the same. That changes times by up to
a tenth for ordinary Python, and by some per cent for a kernel (Mytkowicz, Diwan, Hauswirth and Sweeney,
*Producing wrong data without doing anything obviously wrong!*, ASPLOS 2009). The interval of the rounds
does not include it, so that a knob without any effect may win.

So the gain is measured in some more runs, each with processes of its own. As they had no part in choosing
the winner, their result needs no correction for the best of many.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.errors import shorten_middle
from autotune.measure.clocks import monotonic
from autotune.measure.outcome import Reading
from autotune.measure.rules.significance import Ratio, over_runs
from autotune.session.caveats import MOST_OF_A_MESSAGE
from autotune.session.execution.executor import Executor
from autotune.session.finale.contender import Contender
from autotune.session.finale.disturbed import DISTURBED
from autotune.session.finale.interleaved import read_again
from autotune.session.finale.rounds import ReadingSeconds, Rounds
from autotune.space.spec import MetricSpec, StudySpec, is_speed
from autotune.status import Status

RUNS, FEWEST = 12, 4
"""How many runs there are if time allows, and with how few a gain is still worth reporting."""

EARLIEST = 6
"""From so many runs on, the test of signed ranks can decide at 95 %, and runs may end because the gain is
known. With four, where only Student's t decides, too many would end because their spread is small by
luck."""

LEAST_SECONDS = 10.0
"""The runs always have so many seconds: of twelve runs one may be an outlier, of eight hardly any."""

COLD = 1.05
"""So many times as long as later ones, readings at a start are taken for those of a cold one."""

ROUNDS = Rounds(least=3, most=3, seconds=5.0, fewest=3)
"""The rounds of a run: the median of three leaves out one that was disturbed. For so many seconds,
disturbed readings are taken again."""


@dataclass(frozen=True)
class FreshRuns:
    """What was read of some contenders in runs of fresh processes."""

    runs: Sequence[Mapping[str, tuple[float, ...]]] = ()
    """For each run without a failure, the values of the first goal by the contender's label."""
    failed: str = ""
    """The label of the configuration whose failure ended the runs; empty if none failed."""
    how: str = ""
    """How it failed, as a clause."""

    @property
    def enough(self) -> bool:
        return len(self.runs) >= FEWEST


@dataclass(frozen=True)
class Plan:
    """Which contenders are read in how many runs, and about how long that takes."""

    contenders: tuple[Contender, ...]
    runs: int
    """0 if too few would fit into the time."""
    seconds: float
    """About how long the runs take."""
    allowed: float
    """Seconds after which no further run begins, once there are :data:`FEWEST`."""

    @classmethod
    def of(cls, contenders: Sequence[Contender], seconds: ReadingSeconds, allowed: float) -> Plan:
        """As many runs as fit; contenders after the first two are left out if too few runs fit otherwise.

        ``allowed`` is how many seconds the rounds of the finale had.
        """
        asked, allowed = list(contenders), seconds_for(allowed)
        while (runs := _affordable(asked, seconds, allowed)) < FEWEST and len(asked) > 2:
            asked.pop()
        runs = runs if runs >= FEWEST else 0
        return cls(tuple(asked), runs, runs * _run_seconds(asked, seconds), allowed)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its contenders."""
        return tuple(contender.label for contender in self.contenders)


def seconds_for(before: float) -> float:
    """How many seconds the runs have after rounds that had ``before`` seconds."""
    return max(before, LEAST_SECONDS)


def read_in_fresh_processes(
    spec: StudySpec, executor: Executor, plan: Plan, before: int, after_run: Callable[[], None]
) -> FreshRuns:
    """Read the contenders of ``plan`` in its runs; a baseline that fails is left out from then on.

    ``before`` is the number of rounds in which they were read already. New readings are added to those that
    they have. ``after_run`` is called after each run. A run in which somebody was lost does not count. If the
    objective is edited, there are no more runs.
    """
    asked: Sequence[Contender] = plan.contenders
    runs: list[Mapping[str, tuple[float, ...]]] = []
    began = monotonic()
    for run in range(1, plan.runs + 1):
        fresh = [Contender(contender.label, contender.what) for contender in asked]
        rounds, outcomes = read_again(spec, executor, fresh, ROUNDS, before, run=run)
        if executor.edited:
            break  # the processes of this run may have loaded another source than those before
        before += rounds
        for contender, again in zip(asked, fresh, strict=True):
            contender.readings += [replace(r, context={**r.context, "process": run}) for r in again.readings]
        after_run()
        if any(again.failure is not None and again.failure.status is Status.LOST for again in fresh):
            continue
        for again in fresh:
            if again.failure is not None and again.configuration is not None:
                outcome = outcomes[again.label]
                message = shorten_middle(outcome.message, MOST_OF_A_MESSAGE)
                how = f"ended as {outcome.status} in another process: {message}"
                return FreshRuns(runs, again.label, how)
        asked = [c for c, again in zip(asked, fresh, strict=True) if again.failure is None]
        goal = spec.goals[0].name
        runs.append({again.label: tuple(again.values(goal)) for again in fresh if again.failure is None})
        late = monotonic() - began > plan.allowed
        if len(runs) >= FEWEST and (late or _known(spec, runs, *plan.labels[:2])):
            break
    return FreshRuns(runs)


def say_warming(goal: MetricSpec, readings: Sequence[Reading]) -> str:
    """A remark on a winner that others did not confirm: its first process became faster as it was read.

    So fresh processes, of which each is read three times, may have read it cold. ``readings`` are all of the
    winner; each is compared with the median of its kind, since those that warm the caches are slower anyway.
    Empty if it was as fast from the beginning, or if the goal is no speed.
    """
    own = [r for r in readings if r.metric == goal.name and "process" not in r.context]
    own = [r for r in own if r.discarded != DISTURBED]
    if not is_speed(goal.goal, goal.unit) or len(own) < ROUNDS.most or min(r.value for r in own) <= 0:
        return ""
    kinds = {r.discarded for r in own}
    usual = {kind: statistics.median(r.value for r in own if r.discarded == kind) for kind in kinds}
    first = [r.value / usual[r.discarded] for r in own[: ROUNDS.most]]
    slower = 1 / max(first) if goal.goal == "maximize" else min(first)
    if slower < COLD:
        return ""
    return (
        f"its first readings in that process took {slower:.2g} times as long as later ones, or more, so that"
        " others may have read it cold: measure: {warmup: N} lets N calls pass first"
    )


def _known(spec: StudySpec, runs: Sequence[Mapping[str, tuple[float, ...]]], one: str, other: str) -> bool:
    """Whether the gain of one over the other has no noise, or is known as precisely as the space file asks.

    This depends on the noise, not on who is ahead, so that checking it after each run favours no one.
    """
    first, second = ([run[label] for run in runs] for label in (one, other))
    if len(set(first)) == len(set(second)) == 1:
        return True
    found = over_runs(first, second, spec.measure.confidence) if len(runs) >= EARLIEST else None
    half = spec.measure.precision / 2
    return isinstance(found, Ratio) and (found.high - found.low) / 2 <= half * found.estimate


def _affordable(contenders: Sequence[Contender], seconds: ReadingSeconds, allowed: float) -> int:
    """How many runs of the contenders fit into ``allowed`` seconds, at most :data:`RUNS`."""
    each = _run_seconds(contenders, seconds)
    return min(RUNS, int(allowed / each)) if each > 0 else RUNS


def _run_seconds(contenders: Sequence[Contender], seconds: ReadingSeconds) -> float:
    """About how many seconds one run takes. Each process reads once more than its rounds, to warm up."""
    return sum(c.entering + (1 + ROUNDS.most) * seconds(c.configuration) for c in contenders)
