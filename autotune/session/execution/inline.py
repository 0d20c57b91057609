"""Executors that run trials in this very process: for Python callables, and for replays.

Quick and without protection: a configuration that crashes takes the caller along. One trial at a time and
one event per poll, so that the session's history does not depend on how fast anything is.
"""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from autotune.errors import listed
from autotune.measure.baselines import baselines_of
from autotune.measure.objective import Baseline, Objective
from autotune.measure.outcome import Outcome, Reading
from autotune.measure.own_folder import own_folder, remove_own_folder
from autotune.measure.phases.runner import Runner
from autotune.measure.recordings.replay import ReplayedObjective
from autotune.measure.reports import Reporter, whole_run
from autotune.session.execution.executor import Entrant, Event, Executor, Finished, Started, Ticket
from autotune.session.same_code import Known, SameCode
from autotune.space.configuration import Configuration
from autotune.space.spec import MeasureSettings, StudySpec
from autotune.status import Status

OF_A_PROCESS = ("timeout", "prepare_timeout", "memory", "cores", "gpus")
"""The settings of ``measure`` that only a process of a trial's own can be kept to."""


class InlineExecutor(Executor):
    """Prepares, checks and measures in :meth:`poll`, in the caller's thread. Time and memory are not limited.

    ``scratch`` is a folder to remove in the end.
    """

    def __init__(self, spec: StudySpec, objective: Objective, scratch: Path | None = None) -> None:
        self.spec = spec
        self.objective = objective
        self.remark = self._say_unlimited()
        self.worker = f"{os.uname().nodename}:{os.getpid()}"
        self._runner = Runner(
            objective, spec.metrics, spec.measure, curve=whole_run(spec), share=spec.budget.share
        )
        self._scratch = scratch
        self._waiting: deque[Ticket] = deque()
        self._begun: Ticket | None = None
        self._given_up: list[Event] = []
        self._same_code: SameCode[Ticket] = SameCode()

    def _say_unlimited(self) -> str:
        """A remark on what the study asks for of a trial's process, which this process is not kept to."""
        said, usual = vars(self.spec.measure), vars(MeasureSettings())
        asked = [name for name in OF_A_PROCESS if said[name] and said[name] != usual[name]]
        if not asked:
            return ""
        return (
            f"nothing keeps the objective to {listed(asked)} of the study, since it runs in this process:"
            " name it in a space file (objective: file.py:Name) to run it in one of its own"
        )

    def remember(self, known: Mapping[str, Known]) -> None:
        self._same_code = SameCode(known)

    def submit(self, ticket: Ticket) -> None:
        self._waiting.append(ticket)

    def poll(self, timeout: float) -> list[Event]:
        """In one call that a trial begins; in the next one it is run, and has ended."""
        if self._given_up:
            events, self._given_up = self._given_up, []
            return events
        if self._begun is None:
            if not self._waiting:
                return []
            self._begun = self._waiting.popleft()
            return [Started(self._begun.trial_id, self.worker)]
        ticket, self._begun = self._begun, None
        return [Finished(ticket.trial_id, replace(self._run(ticket), worker=self.worker))]

    def cancel(self) -> None:
        lost = Outcome(Status.LOST, message="given up before it was finished")
        tickets = [*([self._begun] if self._begun else []), *self._waiting]
        self._given_up += [Finished(ticket.trial_id, lost) for ticket in tickets]
        self._begun = None
        self._waiting.clear()

    def tidy(self, configuration: Configuration) -> None:
        remove_own_folder(self.objective.context.cache, configuration)

    def entrants(self, wanted: Sequence[Configuration | Baseline], run: int = 0) -> list[Entrant]:
        return [self._entrant(what) for what in wanted]

    def _entrant(self, what: Configuration | Baseline) -> Entrant:
        return InlineEntrant(self._reader(), what)

    def _reader(self) -> Runner:
        spec = self.spec
        return Runner(self.objective, spec.metrics, spec.measure, curve=whole_run(spec))

    def baselines(self) -> tuple[Baseline, ...]:
        """Those that need no environment variables of their own: this process is running already."""
        return tuple(b for b in baselines_of(self.objective) if not b.environment)

    def close(self) -> None:
        self.cancel()
        self._given_up.clear()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _run(self, ticket: Ticket) -> Outcome:
        begun, prepared = self._runner.prepare(ticket.configuration)
        if begun.status is not Status.OK:
            return begun
        if ticket.curve is None and (known := self._same_code.known(begun)):
            return known.shared(begun)
        outcome = self._runner.measure(
            lambda: prepared,
            ticket.seed,
            self.incumbent,
            reporter=self._reporter(ticket),
            paid=begun.phases.get("prepare", 0.0),
        )
        phases, facts = {**begun.phases, **outcome.phases}, {**begun.facts, **outcome.facts}
        outcome = replace(outcome, phases=phases, facts=facts, peak_memory=None)
        self._same_code.ended(ticket.seed, outcome)
        return outcome

    def _reporter(self, ticket: Ticket) -> Reporter | None:
        if ticket.curve is None:
            return None
        folder = own_folder(self.objective.context.cache, ticket.configuration)
        return Reporter(ticket.curve, partial(self.listener, ticket.trial_id), folder, thinned=True)


class ReplayExecutor(InlineExecutor):
    """Serves what was recorded of a configuration, with its recorded durations."""

    objective: ReplayedObjective

    def _say_unlimited(self) -> str:
        return ""  # it needs no time and no memory

    def _entrant(self, what: Configuration | Baseline) -> Entrant:
        entrant = ReplayEntrant(self._reader(), what)
        if isinstance(what, Configuration):
            entrant.most_readings = self.objective.recorded_readings(what)
        return entrant

    def _run(self, ticket: Ticket) -> Outcome:
        return self.objective.outcome(ticket.configuration)


class InlineEntrant(Entrant):
    """An entrant in this process."""

    def __init__(self, runner: Runner, what: Configuration | Baseline) -> None:
        self._runner = runner
        prepared: Any = None
        if isinstance(what, Configuration):
            begun, prepared = runner.prepare(what)
            if begun.status is not Status.OK:
                self.failure = begun
                return
        entered = runner.enter(what, lambda: prepared, seed=0)
        self.failure = entered if entered.status is not Status.OK else None
        self.checked = entered.metrics

    def read(self, seed: int) -> tuple[Reading, ...]:
        if self.failure is not None:
            return ()
        outcome = self._runner.read(seed)
        if outcome.status is Status.OK:
            return outcome.readings
        self.failure = outcome
        return ()

    def close(self) -> None:
        return


class ReplayEntrant(InlineEntrant):
    """An entrant whose readings come from a recording, without the context of this machine.

    What this machine did meanwhile has changed none of them. If a reading were taken again because of that,
    it would be the next recorded one.
    """

    def read(self, seed: int) -> tuple[Reading, ...]:
        return tuple(replace(reading, context={}) for reading in super().read(seed))
