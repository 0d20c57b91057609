"""The trials that no worker is busy with, by what they wait for.

::

    put ─▶ to prepare      admit ─▶ to check ─▶ to measure
                                 └─ the trial with the same code ─▶ its result, or to measure
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from autotune.measure.outcome import Outcome
from autotune.session.execution.flight import Flight
from autotune.session.same_code import Known, SameCode


class Waiting:
    """Queues, in the order in which trials came to each."""

    def __init__(self) -> None:
        self.to_prepare: deque[Flight] = deque()
        self.to_check: deque[Flight] = deque()
        self.to_measure: deque[Flight] = deque()
        self._same_code: SameCode[Flight] = SameCode()

    def __bool__(self) -> bool:
        """Whether a worker could take one. Those that wait for another trial's result are not counted."""
        return bool(self.to_prepare or self.to_check or self.to_measure)

    @property
    def for_preparers(self) -> bool:
        return bool(self.to_prepare or self.to_check)

    def remember(self, known: Mapping[str, Known]) -> None:
        """Learn which code was measured before; nothing else counts as measured from now on."""
        self._same_code = SameCode(known)

    def admit(self, flight: Flight, checks_ahead: bool) -> Outcome | None:
        """Let a prepared trial wait to be checked or measured, or for the trial that has the same code.

        If that code was measured already, nothing waits, and the outcome is returned.
        """
        preparation = flight.preparation
        assert preparation is not None
        if flight.ticket.curve is None:
            flight.same_code = self._same_code
            if known := self._same_code.known(preparation):
                return known.shared(preparation)
            if self._same_code.waits(preparation, flight):
                return None
        ahead = checks_ahead and flight.ticket.curve is None and flight.check is None
        (self.to_check if ahead else self.to_measure).append(flight)
        return None

    def take_all(self) -> list[Flight]:
        """Take all trials that wait out of the queues, and return them."""
        queues = (self.to_prepare, self.to_check, self.to_measure)
        taken = [*(flight for queue in queues for flight in queue), *self._same_code.release()]
        for queue in queues:
            queue.clear()
        return taken
