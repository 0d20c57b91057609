"""What becomes of a trial when its worker has answered, or died."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from autotune.errors import AutotuneError
from autotune.measure.outcome import Outcome, Report
from autotune.measure.workers.messages import Answer, Decided, Measured, Prepared
from autotune.measure.workers.postmortem import Death, may_be_spoilt, outcome_of, start_failure
from autotune.session.execution.crew import Crew
from autotune.session.execution.executor import Event, Finished, Started
from autotune.session.execution.flight import Flight
from autotune.session.execution.slot import Slot
from autotune.session.execution.waiting import Waiting
from autotune.status import Status

MOST_FAILED_STARTS = 3
"""After so many in a row the search ends: a machine may be out of memory or processes for a moment, but an
objective that kills its process goes on doing so."""


class Settling:
    """Takes the answers of workers, and keeps the events that follow until :meth:`take` hands them out.

    What a worker says decides where its trial goes::

        Prepared, ok ─▶ admitted: to be checked or measured, or to wait for the trial with the same code
        Checked, ok  ─▶ to be measured
        Measured     ─▶ finished; so are those that failed, and those whose code was measured before
        Death        ─▶ finished, where the worker had one; the slot is empty, for another worker

    ``hear``: the listener of the executor that is asked at each report; ``goal``: the metric that is judged.
    """

    def __init__(
        self, crew: Crew, waiting: Waiting, goal: str, hear: Callable[[int, Report, bool], str]
    ) -> None:
        self._crew = crew
        self._waiting = waiting
        self._goal = goal
        self._hear = hear
        self._events: list[Event] = []

    @property
    def events(self) -> bool:
        """Whether there are any."""
        return bool(self._events)

    @property
    def ended(self) -> list[Outcome]:
        """The outcomes of the trials that have ended since the last :meth:`take`."""
        return [event.outcome for event in self._events if isinstance(event, Finished)]

    def take(self) -> list[Event]:
        """The events since the last call."""
        events, self._events = self._events, []
        return events

    def started(self, flight: Flight, slot: Slot[Flight]) -> None:
        """Note that a worker has begun with a trial that none had before."""
        self._events.append(Started(flight.ticket.trial_id, slot.name))

    def lose(self, why: str, flights: Iterable[Flight]) -> None:
        """Give trials up."""
        lost = Outcome(Status.LOST, message=why)
        self._events += [Finished(flight.ticket.trial_id, lost) for flight in flights]

    def attend(self, slot: Slot[Flight]) -> None:
        """Take what a worker has to say."""
        came = slot.attend()
        self._pass_on(slot)
        if isinstance(came, Death):
            self._bury(slot, came)
        elif isinstance(came, Answer):
            flight, outcome = self._landed(slot, came)
            if outcome.status is not Status.OK or isinstance(came, Measured):
                self._finish(flight, outcome)
            elif isinstance(came, Prepared):
                flight.preparation, flight.prepared = outcome, came.prepared
                self._admit(flight)
            else:
                flight.check = outcome
                self._waiting.to_measure.append(flight)

    def _pass_on(self, slot: Slot[Flight]) -> None:
        """Pass on what the trial has reported, and answer where it waits."""
        worker = slot.worker
        if worker is None or slot.job is None:
            return
        made, worker.reported = worker.reported, []
        for reported in made:
            why = self._hear(slot.job.ticket.trial_id, reported.report, reported.waits)
            if reported.waits:
                worker.answer(Decided(why))

    def _landed(self, slot: Slot[Flight], answer: Answer) -> tuple[Flight, Outcome]:
        """Take the flight from a worker that has done its part, and return it with how that part ended.

        Some workers are not fit for another trial, and end here.
        """
        outcome = _whole(slot, answer, self._crew.facts_of(slot))
        flight = self._taken_from(slot)
        if _must_end(slot, answer, self._goal):
            slot.stop()
        return flight, outcome

    def _taken_from(self, slot: Slot[Flight]) -> Flight:
        """The flight out of the slot, with a note of when and where the slot's worker had it."""
        flight = slot.take()
        flight.note(slot.post.role, slot.began, time.time(), self._crew.number_of(slot))
        return flight

    def _bury(self, slot: Slot[Flight], death: Death) -> None:
        name, was_ready = slot.name, slot.worker is not None and slot.worker.ready is not None
        slot.stop()
        if slot.job is not None:
            self._finish(self._taken_from(slot), replace(outcome_of(death, slot.post.role), worker=name))
        elif not was_ready:
            slot.failed_starts += 1
            if slot.failed_starts == MOST_FAILED_STARTS:
                raise AutotuneError(start_failure(death))
        # Else it died between two trials, and the next one gets another.

    def _admit(self, flight: Flight) -> None:
        """Let a prepared trial wait for its turn, or end it if its code was measured already."""
        known = self._waiting.admit(flight, self._crew.ready.checks_ahead)
        if known is not None:
            self._report(flight, known)

    def _finish(self, flight: Flight, outcome: Outcome) -> None:
        """End a trial, and admit those that waited for it because they have the same code."""
        whole = flight.whole(outcome)
        self._report(flight, whole)
        if flight.same_code is not None:
            for other in flight.same_code.ended(flight.ticket.seed, whole):
                self._admit(other)

    def _report(self, flight: Flight, outcome: Outcome) -> None:
        self._events.append(Finished(flight.ticket.trial_id, flight.with_timeline(outcome)))


def _whole(slot: Slot[Flight], answer: Answer, where: Mapping[str, object] | None) -> Outcome:
    """The outcome, completed with what only this side knows. ``where``: facts about the lane in which it was
    measured."""
    assert slot.worker is not None, "it has just answered"
    facts = dict(answer.outcome.facts)
    if answer.leftovers:
        facts["leftovers"] = answer.leftovers
    if slot.post.cores:
        facts["cores"] = list(slot.post.cores)
    if slot.ready_threads is not None:
        facts |= slot.ready_threads.facts
    facts |= where or {}
    return replace(slot.worker.completed(answer.outcome), facts=facts)


def _must_end(slot: Slot[Flight], answer: Answer, goal: str) -> bool:
    """Whether a worker that has given this answer must not be given another trial."""
    killed = slot.worker is not None and slot.worker.memory_kills() > 0
    return bool(answer.leftovers) or killed or slot.ends_when_idle or may_be_spoilt(answer.outcome, goal)
