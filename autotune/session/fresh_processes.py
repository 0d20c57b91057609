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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from autotune.measure.clocks import monotonic
from autotune.session.contender import Contender
from autotune.session.execution.executor import Executor
from autotune.session.interleaved import read_again
from autotune.session.rounds import ReadingSeconds, Rounds
from autotune.space.spec import StudySpec
from autotune.status import Status

RUNS, FEWEST = 12, 4
"""From six on the signed ranks tell at 95 %, the more the better; of fewer it is Student's t, and of four
that is still worth knowing."""

ROUNDS = Rounds(least=2, most=2, seconds=0.0, fewest=2)
"""Of a run: what its readings have in common is what is looked for, and not to be read away."""


@dataclass
class FreshRuns:
    """What was read of some contenders in runs of fresh processes."""

    values: dict[str, list[tuple[float, ...]]] = field(default_factory=dict)
    """Of the first goal, in each run, by label."""
    failure: str = ""
    """How one of them failed, which ended it."""

    @property
    def count(self) -> int:
        return min(map(len, self.values.values()), default=0)

    @property
    def enough(self) -> bool:
        return self.count >= FEWEST


def read_in_fresh_processes(
    spec: StudySpec,
    executor: Executor,
    contenders: Sequence[Contender],
    before: int,
    seconds: ReadingSeconds,
    allowed: float,
    after_run: Callable[[], None],
) -> FreshRuns:
    """Read ``contenders`` in runs, as many as fit into ``allowed`` seconds; none where too few would.

    Those after the first two are left out rather than that. ``before``: the rounds that they were read in
    already. Their readings are added to those that they have.
    """
    found = FreshRuns()
    asked = list(contenders)
    while (runs := _affordable(asked, seconds, allowed)) < FEWEST and len(asked) > 2:
        asked.pop()
    began = monotonic()
    for run in range(1, runs + 1 if runs >= FEWEST else 1):
        fresh = [Contender(contender.label, contender.what) for contender in asked]
        rounds, outcomes = read_again(spec, executor, fresh, ROUNDS, before, run=run)
        before += rounds
        for contender, again in zip(asked, fresh, strict=True):
            contender.readings += [replace(r, context={**r.context, "process": run}) for r in again.readings]
        after_run()
        for contender, again in zip(list(asked), fresh, strict=True):
            if (outcome := outcomes[again.label]).status is Status.OK:
                found.values.setdefault(again.label, []).append(tuple(again.values(spec.goals[0].name)))
            elif again.configuration is None:  # a baseline that does not stand it is left out
                asked.remove(contender)
                found.values.pop(again.label, None)
            else:
                found.failure = (
                    f"{again.label} ended as {outcome.status} in another process: {outcome.message}"
                )
                return found
        if found.enough and monotonic() - began > 2 * allowed:
            break
    return found


def _affordable(contenders: Sequence[Contender], seconds: ReadingSeconds, allowed: float) -> int:
    """How many runs of them fit."""
    each = sum(c.entering + ROUNDS.most * seconds(c.configuration) for c in contenders)
    return min(RUNS, int(allowed / each)) if each > 0 else RUNS
