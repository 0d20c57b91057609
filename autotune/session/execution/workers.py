"""The executor with worker processes: the next configurations are prepared while one is measured.

::

    submit ─▶ to prepare ─▶ [preparer] ┐  to check ─▶ [preparer] ─▶ to measure ─▶ [measurer] ─▶ Finished
                            [preparer] ├─────▲────────────────────────▲                         ▲
                            [preparer] ┘  where it may be ahead    else     same code as another ┘

All runs in the caller's thread, in :meth:`WorkerExecutor.poll`: there is one wait, for all workers at once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from autotune.measure.cores.pinning import Cores, pin
from autotune.measure.loading.sources import source_files
from autotune.measure.objective import Baseline
from autotune.measure.outcome import Estimate, Report
from autotune.provenance.code.files import signature
from autotune.session.execution.crew import Crew
from autotune.session.execution.executor import Entrant, Event, Executor, Ticket, nothing
from autotune.session.execution.flight import Flight
from autotune.session.execution.lane import Lane
from autotune.session.execution.settling import Settling
from autotune.session.execution.slot import Slot
from autotune.session.execution.waiting import Waiting
from autotune.session.result import better
from autotune.session.same_code import Known
from autotune.space.configuration import Configuration, Value
from autotune.space.spec import CommandObjective, StudySpec
from autotune.status import Status


class WorkerExecutor(Executor):
    """Runs trials in killable worker processes: several prepare, and one measures, or one on each GPU.

    It hands what waits (:mod:`autotune.session.execution.waiting`) to the workers that are free
    (:mod:`autotune.session.execution.crew`); what becomes of it is decided in
    :mod:`autotune.session.execution.settling`.

    A worker that dies, hangs or leaves processes behind costs its own trial and is replaced. If workers
    cannot even start, the search ends with an error that shows what one of them printed. Where other searches
    leave no core, each measurement waits for its turn (:mod:`autotune.measure.cores.turns`).

    ``prepare_workers``: how many prepare, by default as many as there are cores beside the measuring ones, up
    to eight; none where the objective has nothing to prepare. ``lanes``: where to measure; ``None``: as the
    settings say. ``meanwhile`` is called while the first worker starts, which takes seconds with a large
    library.

    Raises :class:`autotune.errors.InputError` on construction where the objective cannot be used.
    """

    def __init__(
        self,
        spec: StudySpec,
        device: Mapping[str, Value],
        prepare_workers: int | None = None,
        compiled: Path | None = None,
        lanes: tuple[Lane, ...] | None = None,
        meanwhile: Callable[[], object] = nothing,
    ) -> None:
        self.spec = spec
        self.settings = spec.measure
        self.long_lived = not isinstance(spec.objective, CommandObjective)  # each run of a program is one
        self._note_source()
        began = time.monotonic()
        self._crew = Crew(spec, device, prepare_workers, compiled, lanes, meanwhile)
        self.starting = time.monotonic() - began
        self._waiting = Waiting()
        self._settling = Settling(self._crew, self._waiting, spec.goals[0].name, self._listen)
        self.remark, self.capacity = self._crew.remark, self._crew.capacity

    @property
    def cores(self) -> Cores:
        return self._crew.cores

    # -- the contract --------------------------------------------------------------------------

    @property
    def edited(self) -> bool:
        return signature(self._sources) != self._loaded

    def _note_source(self) -> None:
        """Look at the objective's files before they are loaded: they may be edited while workers start."""
        self._sources = source_files(self.spec.objective)
        self._loaded = signature(self._sources)

    def remember(self, known: Mapping[str, Known]) -> None:
        self._waiting.remember(known)

    @contextmanager
    def aside(self) -> Iterator[None]:
        before = os.sched_getaffinity(0)
        pin(self.cores.preparing)
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)

    def together(self) -> AbstractContextManager[None]:
        return self._crew.together()

    def submit(self, ticket: Ticket) -> None:
        flight = Flight(ticket)
        (self._waiting.to_prepare if self._crew.preparers else self._waiting.to_measure).append(flight)

    def poll(self, timeout: float) -> list[Event]:
        until = time.monotonic() + timeout
        while True:
            for slot in self._crew.slots:
                self._settling.attend(slot)
            for lane, measurer in self._crew.measuring:
                if measurer.job is None and (lane.turn.held or not self._waiting.to_measure):
                    lane.turn.end()  # another search may be waiting for it
            self._dispatch()
            now = time.monotonic()
            if self._settling.events or now >= until or not self._in_flight:
                return self._settling.take()
            waits_for_turn = bool(self._waiting.to_measure) and any(m.free for m in self._crew.measurers)
            self._crew.wait(until - now, for_turn=waits_for_turn)

    def cancel(self) -> None:
        why = "given up before it was finished"
        self._settling.lose(why, self._waiting.take_all())
        for slot in self._crew.slots:
            if slot.job is not None:
                self._settling.lose(why, [slot.take()])
                slot.stop()

    def tidy(self, configuration: Configuration) -> None:
        self._crew.tidy(configuration)

    def reload(self) -> None:
        """A trial that is being measured goes on to its end, with the code by which it was prepared."""
        self._note_source()
        stale = self._waiting.take_all()
        self._waiting.remember({})  # what was measured before is other code
        stale += [slot.take() for slot in self._crew.preparers if slot.job]
        self._settling.lose("the objective's source has changed", stale)
        self._crew.renew()

    def baselines(self) -> tuple[Baseline, ...]:
        return self._crew.baselines()

    def entrants(self, wanted: Sequence[Configuration | Baseline], run: int = 0) -> list[Entrant]:
        return self._crew.entrants(wanted, run)

    def close(self) -> None:
        self._crew.close()

    # -- one step ------------------------------------------------------------------------------

    @property
    def _in_flight(self) -> bool:
        return bool(self._waiting) or self._crew.busy

    def _listen(self, trial_id: int, report: Report, waits: bool) -> str:
        return self.listener(trial_id, report, waits)

    def _dispatch(self) -> None:
        """Hand waiting trials to idle workers; start workers that are missing."""
        if self._in_flight:
            for measurer in self._crew.measurers:
                measurer.fill()
        for slot in self._crew.preparers:
            if self._waiting.for_preparers:
                slot.fill()
            if slot.free:
                self._prepare_or_check(slot)
        for lane, measurer in self._crew.measuring:
            if self._waiting.to_measure and measurer.free and lane.turn.begin():
                flight = self._waiting.to_measure.popleft()
                if flight.preparation is None:
                    self._settling.started(flight, measurer)
                best, preparers = self._best_so_far(), len(self._crew.preparers)
                request = flight.measure_request(self.settings.timeout, best, preparers)
                measurer.give(flight, request, self.settings.timeout)

    def _best_so_far(self) -> Estimate | None:
        """The incumbent, or a better outcome that the session has not been told of yet."""
        best, goal = self.incumbent, self.spec.goals[0]
        if len(self.spec.goals) > 1 or self.spec.search.early_stopping is not None:
            return best  # another outcome may be better in another goal, or only have been stopped later
        for outcome in self._settling.ended:
            found = outcome.metrics.get(goal.name) if outcome.status is Status.OK else None
            if found and (best is None or better(goal.direction, found.value, best.value)):
                best = found
        return best

    def _prepare_or_check(self, slot: Slot[Flight]) -> None:
        """Give a preparer the trial that is closest to being measured."""
        if self._waiting.to_check:
            flight = self._waiting.to_check.popleft()
            slot.give(flight, flight.check_request, self.settings.timeout)
        elif self._waiting.to_prepare:
            flight = self._waiting.to_prepare.popleft()
            self._settling.started(flight, slot)
            slot.give(flight, flight.prepare_request, self.settings.prepare_timeout)
