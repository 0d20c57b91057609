"""What becomes of a trial when its worker has spoken, or died.

::

    Prepared ─▶ to be checked or measured      Checked ─▶ to be measured      Measured ─▶ Finished
         └─ not ok, or the code is known ─▶ Finished                 Death ─▶ Finished, and another worker
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from autotune.errors import AutotuneError
from autotune.measure.capture import tail_text
from autotune.measure.outcome import Outcome, Report
from autotune.measure.workers.messages import Answer, Checked, Decided, Measured, Prepared
from autotune.measure.workers.postmortem import (
    Death,
    after_memory_kill,
    may_be_spoilt,
    outcome_of,
    start_failure,
)
from autotune.session.execution.crew import Crew
from autotune.session.execution.executor import Event, Finished, Started
from autotune.session.execution.flight import Flight
from autotune.session.execution.slot import Slot
from autotune.session.execution.waiting import Waiting
from autotune.status import Status

MOST_FAILED_STARTS = 3
"""A machine may be out of memory or processes for a moment; an objective that kills its process stays so."""


class Settling:
    """Takes what workers say, and keeps the events that come of it until :meth:`take` hands them out.

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
        """How the trials have ended that nobody has been told of."""
        return [event.outcome for event in self._events if isinstance(event, Finished)]

    def take(self) -> list[Event]:
        """The events since the last call."""
        events, self._events = self._events, []
        return events

    def started(self, flight: Flight, slot: Slot[Flight]) -> None:
        """A worker has begun with a trial that none had before."""
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
        elif isinstance(came, Prepared):
            self._prepared(slot, came)
        elif isinstance(came, Checked):
            self._checked(slot, came)
        elif isinstance(came, Measured):
            self._finish(*self._answered(slot, came))

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

    def _answered(self, slot: Slot[Flight], answer: Answer) -> tuple[Flight, Outcome]:
        """The flight that a worker has done its part of, and how that ended."""
        outcome = _whole(slot, answer.outcome, answer.leftovers, self._crew.facts_of(slot))
        flight = self._landed(slot)
        if _must_end(slot, outcome, answer.leftovers, self._goal):
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
        known = self._waiting.admit(flight, preparation, self._crew.ready.checks_ahead)
        if known is not None:
            self._end(flight, known)

    def _checked(self, slot: Slot[Flight], answer: Checked) -> None:
        flight, outcome = self._answered(slot, answer)
        if outcome.status is not Status.OK:
            self._finish(flight, outcome)
            return
        flight.check = outcome
        self._waiting.to_measure.append(flight)

    def _bury(self, slot: Slot[Flight], death: Death) -> None:
        name, was_ready = slot.name, slot.worker is not None and slot.worker.ready is not None
        slot.stop()
        if slot.job is not None:
            self._finish(self._landed(slot), replace(outcome_of(death, slot.role), worker=name))
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

    def _landed(self, slot: Slot[Flight]) -> Flight:
        """Take the flight out of the slot, and note in it when and where the slot's worker had it."""
        flight = slot.take()
        flight.note(slot.role, slot.began, time.time(), self._crew.number_of(slot))
        return flight


def _whole(
    slot: Slot[Flight], outcome: Outcome, leftovers: str, where: Mapping[str, object] | None
) -> Outcome:
    """The outcome with what only this side knows: output, cores, a child killed for memory.

    ``where``: facts of the lane that it was measured in.
    """
    facts = dict(outcome.facts)
    if leftovers:
        facts["leftovers"] = leftovers
    if slot.cores:
        facts["cores"] = list(slot.cores)
    if slot.ready_threads is not None:
        facts |= slot.ready_threads.facts
    facts |= where or {}
    cap = slot.worker.setup.cap if slot.worker is not None else None
    if slot.worker is not None and cap is not None and outcome.status.failed and slot.worker.memory_kills():
        outcome = after_memory_kill(outcome, cap.bytes)
    # A program's last words are in what its worker printed, too.
    said = "" if outcome.stderr.strip() in slot.output else outcome.stderr
    stderr = tail_text("\n".join(filter(None, [slot.output, said])).encode())
    return replace(outcome, facts=facts, stderr=stderr, worker=slot.name)


def _must_end(slot: Slot[Flight], outcome: Outcome, leftovers: str, goal: str) -> bool:
    """Whether the worker that has answered so is not to be given another trial."""
    killed = slot.worker is not None and slot.worker.memory_kills() > 0
    return bool(leftovers) or killed or slot.ends_when_idle or may_be_spoilt(outcome, goal)
