"""The executor of worker processes: the next configurations are prepared while one is measured.

::

    submit ─▶ to prepare ─▶ [preparer] ┐  to check ─▶ [preparer] ─▶ to measure ─▶ [measurer] ─▶ Finished
                            [preparer] ├─────▲────────────────────────▲                         ▲
                            [preparer] ┘  where it may be ahead    else     same code as another ┘

All runs in the caller's thread, in :meth:`WorkerExecutor.poll`: there is one wait, for all workers at once.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.measure.limits import sweep_groups
from autotune.measure.messages import Checked, Decided, Measured, Prepared, Setup
from autotune.measure.objective import Baseline, Context
from autotune.measure.outcome import Outcome
from autotune.measure.ownership import make_scratch
from autotune.measure.pinning import pin
from autotune.measure.postmortem import outcome_of, start_failure
from autotune.measure.process import Death
from autotune.measure.reports import whole_run
from autotune.measure.turns import LOOK_AGAIN_SECONDS
from autotune.session.executor import Entrant, Event, Executor, Finished, Started, Ticket, nothing
from autotune.session.executor_entrant import WorkerEntrant
from autotune.session.executor_lane import Lane, cores_of, find_lanes, remark_on
from autotune.session.executor_settling import must_end, settled
from autotune.session.executor_slot import MEASURE, PREPARE, Slot, WorkerFactory
from autotune.session.executor_waiting import Waiting
from autotune.session.flight import Flight
from autotune.session.same_code import Known
from autotune.space.configuration import Configuration, Value
from autotune.space.spec import StudySpec
from autotune.status import Status

MOST_PREPARERS = 8

SPARE = 2
"""Trials that wait, prepared, for the measuring worker. Times of preparing and measuring vary: simulated,
with a preparer as fast as the measuring worker, 0, 1, 2, 3 and 8 spare ones take 0.74, 0.67, 0.64, 0.61 and
0.58 of the time without overlap. But each is proposed before one more result is known."""

STOOD_STILL_SECONDS = 2.0
"""Later than this after the end of its wait, the session was itself stopped (Ctrl-Z, a frozen container),
and its trials perhaps as well: that time is none of theirs."""

MOST_FAILED_STARTS = 3
"""A machine may be out of memory or processes for a moment; an objective that kills its process stays so."""


def _setup(spec: StudySpec, device: Mapping[str, Value], compiled: Path | None) -> Setup:
    """What each worker is told, with a new folder for what they compile."""
    scratch = make_scratch(spec.name)
    context = Context(spec.workload, device, scratch, spec.search.seed, compiled, spec.space.ruled)
    return Setup(
        spec.objective,
        context,
        spec.metrics,
        spec.measure,
        tuple(knob.name for knob in spec.space.knobs),
        curve=whole_run(spec),
        share=spec.budget.share,
    )


class WorkerExecutor(Executor):
    """Runs trials in killable worker processes: some prepare, one measures, or one on each GPU.

    A worker that dies, hangs or leaves processes behind costs its own trial and is replaced. One that
    cannot even start ends the search with an error that shows what it printed. Where other searches leave
    no core, each measurement waits for its turn (:mod:`autotune.measure.turns`). ``prepare_workers`` is
    by default as many as there are cores beside the measuring ones, up to eight; none are used where
    the objective has nothing to prepare. ``lanes``: where to measure; ``None``: as the settings say.
    ``meanwhile`` is called while the first worker starts, which with a large library takes seconds.

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
        sweep_groups()
        self.spec = spec
        self.settings = spec.measure
        self._waiting = Waiting()
        self._measurers: list[Slot[Flight]] = []
        self._preparers: list[Slot[Flight]] = []
        self._events: list[Event] = []
        self._entrants: list[WorkerEntrant] = []
        self._closing = ExitStack()
        self._lanes = find_lanes(spec.measure) if lanes is None else lanes
        with ExitStack() as failed:
            failed.callback(self.close)
            for lane in self._lanes:
                self._closing.callback(lane.close)
            self.cores = cores_of(self._lanes)
            self.remark = remark_on(self._lanes, spec.measure.gpus)
            self._factory = WorkerFactory(_setup(spec, device, compiled), self.cores)
            self._closing.callback(self._factory.close)
            self._measurers += [
                Slot[Flight](self._factory, lane.place.cores.measuring, MEASURE, lane.environment)
                for lane in self._lanes
            ]
            self._measurers[0].fill()
            meanwhile()
            self._ready = self._measurers[0].ready()
            failed.pop_all()
        wanted = (
            min(len(self.cores.preparing), MOST_PREPARERS) if prepare_workers is None else prepare_workers
        )
        count = max(wanted, 1) if self._ready.prepares else 0
        seen = self._lanes[0].environment
        self._preparers = [Slot(self._factory, self.cores.preparing, PREPARE, seen) for _ in range(count)]
        # One is measured in each lane, and one prepared by each preparer. With nothing to prepare, the next
        # one waits, so that the measuring core does not stand idle while the session thinks.
        self.capacity = len(self._lanes) + (count + SPARE if count else 1)

    # -- the contract --------------------------------------------------------------------------

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

    def submit(self, ticket: Ticket) -> None:
        flight = Flight(ticket)
        (self._waiting.to_prepare if self._preparers else self._waiting.to_measure).append(flight)

    def poll(self, timeout: float) -> list[Event]:
        until = time.monotonic() + timeout
        while True:
            for slot in self._slots:
                self._attend(slot)
            for lane, measurer in self._measuring:
                if measurer.job is None and (lane.turn.held or not self._waiting.to_measure):
                    lane.turn.end()  # others may wait for it
            self._dispatch()
            now = time.monotonic()
            if self._events or now >= until or not self._in_flight:
                events, self._events = self._events, []
                return events
            self._wait(until - now)

    def cancel(self) -> None:
        self._lose("given up before it was finished", self._waiting.take_all())
        for slot in self._slots:
            if slot.job is not None:
                self._lose("given up before it was finished", [slot.take()])
                slot.stop()

    def reload(self) -> None:
        """What is being measured is measured to its end with the code that it was prepared by."""
        stale = self._waiting.take_all()
        self._waiting.forget_codes()
        stale += [slot.take() for slot in self._preparers if slot.job]
        self._lose("the objective's source has changed", stale)
        for slot in self._preparers:
            slot.stop()
        for _, measurer in self._measuring:
            measurer.stop_when_idle()
        self._factory.forget(make_scratch(self.spec.name))

    def baselines(self) -> tuple[Baseline, ...]:
        return self._ready.baselines

    def entrant(self, what: Configuration | Baseline, label: str) -> Entrant:
        return self.entrants([(what, label)])[0]

    def entrants(self, wanted: Sequence[tuple[Configuration | Baseline, str]]) -> list[Entrant]:
        """Their processes start side by side, which takes seconds each where a large library is loaded.

        So do they prepare where they share no core. On one, side by side, each would take as long as all.
        """
        lane = self._lanes[0]  # the same for all, so that they can be compared
        cores, turn = lane.place.cores.measuring, lane.turn
        made: list[WorkerEntrant] = []
        with turn.taken():  # it happens on the measuring cores, as entering does
            for what, _ in wanted:
                entrant = WorkerEntrant(self._factory, cores, turn, self.settings, what, lane.environment)
                made.append(entrant)
                self._entrants.append(entrant)
            for entrant in made:
                entrant.wait()
            if not cores:
                for entrant in made:
                    entrant.begin()
        for entrant in made:
            with turn.taken():
                entrant.enter()
        return list(made)

    def close(self) -> None:
        for slot in self._slots:
            slot.stop()
        for entrant in self._entrants:
            entrant.close()
        self._closing.close()  # the folders of compiled files, then the cores

    # -- one step ------------------------------------------------------------------------------

    @property
    def _slots(self) -> list[Slot[Flight]]:
        return [*self._measurers, *self._preparers]

    @property
    def _measuring(self) -> Iterable[tuple[Lane, Slot[Flight]]]:
        return zip(self._lanes, self._measurers, strict=True)

    @property
    def _in_flight(self) -> bool:
        return bool(self._waiting or any(slot.job for slot in self._slots))

    def _dispatch(self) -> None:
        """Hand waiting trials to idle workers; start workers that are missing."""
        if self._in_flight:
            for _, measurer in self._measuring:
                measurer.fill()
        for slot in self._preparers:
            if self._waiting.for_preparers:
                slot.fill()
            if slot.free:
                self._prepare_or_check(slot)
        for lane, measurer in self._measuring:
            if self._waiting.to_measure and measurer.free and lane.turn.begin():
                flight = self._waiting.to_measure.popleft()
                if flight.preparation is None:
                    self._events.append(Started(flight.ticket.trial_id, measurer.name))
                request = flight.measure_request(self.settings.timeout, self.incumbent)
                measurer.give(flight, request, self.settings.timeout)

    def _prepare_or_check(self, slot: Slot[Flight]) -> None:
        """Give a preparer what is nearest to being measured."""
        if self._waiting.to_check:
            flight = self._waiting.to_check.popleft()
            slot.give(flight, flight.check_request, self.settings.timeout)
        elif self._waiting.to_prepare:
            flight = self._waiting.to_prepare.popleft()
            self._events.append(Started(flight.ticket.trial_id, slot.name))
            slot.give(flight, flight.prepare_request, self.settings.prepare_timeout)

    @property
    def _waits_for_turn(self) -> bool:
        return bool(self._waiting.to_measure) and any(measurer.free for measurer in self._measurers)

    def _attend(self, slot: Slot[Flight]) -> None:
        """Take what a worker has to say."""
        came = slot.attend()
        self._hear(slot)
        if isinstance(came, Death):
            self._bury(slot, came)
        elif isinstance(came, Prepared):
            self._prepared(slot, came)
        elif isinstance(came, Checked):
            self._checked(slot, came)
        elif isinstance(came, Measured):
            self._measured(slot, came)

    def _hear(self, slot: Slot[Flight]) -> None:
        """Pass on what the trial has reported, and answer where it waits."""
        worker = slot.worker
        if worker is None or slot.job is None:
            return
        made, worker.reported = worker.reported, []
        for reported in made:
            why = self.listener(slot.job.ticket.trial_id, reported.report, reported.waits)
            if reported.waits:
                worker.answer(Decided(why))

    def _answered(self, slot: Slot[Flight], answer: Prepared | Checked | Measured) -> tuple[Flight, Outcome]:
        """The flight that a worker has done its part of, and how that ended."""
        where = self._lanes[self._measurers.index(slot)].facts if slot in self._measurers else None
        outcome = settled(slot, answer.outcome, answer.leftovers, where)
        flight = self._taken(slot)
        if must_end(slot, outcome, answer.leftovers, self.spec.goals[0].name):
            slot.stop()
        return flight, outcome

    def _prepared(self, slot: Slot[Flight], answer: Prepared) -> None:
        flight, outcome = self._answered(slot, answer)
        if outcome.status is not Status.OK:
            self._finish(flight, outcome)
            return
        flight.preparation, flight.prepared = outcome, answer.prepared
        self._admit(flight, outcome)

    def _admit(self, flight: Flight, preparation: Outcome) -> None:
        """Let a prepared trial wait for its turn; or end, where its code was measured already."""
        known = self._waiting.admit(flight, preparation, self._ready.checks_ahead)
        if known is not None:
            self._end(flight, known)

    def _checked(self, slot: Slot[Flight], answer: Checked) -> None:
        flight, outcome = self._answered(slot, answer)
        if outcome.status is not Status.OK:
            self._finish(flight, outcome)
            return
        flight.check = outcome
        self._waiting.to_measure.append(flight)

    def _measured(self, slot: Slot[Flight], answer: Measured) -> None:
        self._finish(*self._answered(slot, answer))

    def _bury(self, slot: Slot[Flight], death: Death) -> None:
        name, was_ready = slot.name, slot.worker is not None and slot.worker.ready is not None
        slot.stop()
        if slot.job is not None:
            self._finish(self._taken(slot), replace(outcome_of(death, slot.role), worker=name))
        elif not was_ready:
            slot.failed_starts += 1
            if slot.failed_starts == MOST_FAILED_STARTS:
                raise AutotuneError(start_failure(death))
        # Else it died between two trials, and the next one gets another.

    def _finish(self, flight: Flight, outcome: Outcome) -> None:
        self._end(flight, flight.whole(outcome))
        if flight.same_code is not None:
            for other in flight.same_code.ended(flight.ticket.seed, flight.whole(outcome)):
                assert other.preparation is not None
                self._admit(other, other.preparation)

    def _end(self, flight: Flight, outcome: Outcome) -> None:
        self._events.append(Finished(flight.ticket.trial_id, flight.with_timeline(outcome)))

    def _taken(self, slot: Slot[Flight]) -> Flight:
        """Take the flight out of the slot, and note in it when and where the slot's worker had it."""
        flight = slot.take()
        lane = (self._preparers if slot.role == PREPARE else self._measurers).index(slot)
        flight.note(slot.role, slot.began, time.time(), lane)
        return flight

    def _lose(self, why: str, flights: Iterable[Flight]) -> None:
        lost = Outcome(Status.LOST, message=why)
        self._events += [Finished(flight.ticket.trial_id, lost) for flight in flights]

    def _wait(self, seconds: float) -> None:
        """Wait until a worker sends something or passes its deadline, for up to ``seconds``."""
        poll = select.poll()
        deadlines = [time.monotonic() + (LOOK_AGAIN_SECONDS if self._waits_for_turn else seconds)]
        for slot in self._slots:
            if slot.worker is not None:
                slot.worker.watch(poll)
                deadlines.append(slot.worker.deadline)
            if (due := slot.look()) is not None:
                deadlines.append(time.monotonic() + due)
        began = time.monotonic()
        wait = max(0.0, min(deadlines) - began)
        poll.poll(wait * 1000 + 1)
        late = time.monotonic() - began - wait
        if late > STOOD_STILL_SECONDS:
            for slot in self._slots:
                if slot.worker is not None:
                    slot.worker.forgive(late)
