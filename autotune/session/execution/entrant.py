"""An entrant of the finale in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from autotune.measure.objective import Baseline
from autotune.measure.outcome import Outcome, Reading
from autotune.measure.workers.messages import Enter, Measured, Prepare, Prepared, Read, Ready
from autotune.measure.workers.postmortem import Death, outcome_of, start_failure
from autotune.measure.workers.process import Worker, wait_for_any
from autotune.session.execution.executor import Entrant
from autotune.session.execution.lane import Lane
from autotune.session.execution.slot import FINALE, Post, WorkerFactory
from autotune.space.configuration import Configuration
from autotune.space.spec import MeasureSettings
from autotune.status import Status

SEED = 0
"""The seed of preparing and of the check; readings have one of each round."""


class WorkerEntrant(Entrant):
    """A worker that has loaded and checked one thing, and waits to be read.

    Its life::

        start ─▶ wait ─▶ stand_by ─▶ [begin: prepares beside others] ─▶ enter ─▶ read, read ... ─▶ close
                                     └──────────── enter_together: all of it beside others ─┘

    Several entrants may take each of the first steps side by side. Each has a process of its own: some vendor
    libraries can only be set up through environment variables before they are loaded; and what ran before
    (heap, caches, threads) must make no difference to an entrant.
    """

    def __init__(
        self,
        factory: WorkerFactory,
        lane: Lane,
        settings: MeasureSettings,
        what: Configuration | Baseline,
        *,
        stands_by: bool,
        hash_seed: int,
    ) -> None:
        self.beside = 1
        """How many enter at the same time, this one included."""
        self._settings = settings
        self._turn = lane.turn
        self._what = what
        self._stands_by = stands_by
        own = what.environment if isinstance(what, Baseline) else {}
        post = Post(FINALE, lane.place.cores.measuring, {**lane.environment, **own})
        self._make = partial(factory.start, post, hash_seed=hash_seed)
        self._made: Worker | None = None
        self._prepares = False
        self._payload: bytes | None = None
        self._at: Prepare | Enter | None = None
        """What its process is doing, until it has entered."""
        self._entered = False

    @property
    def worker(self) -> Worker:
        assert self._made is not None, "it was not started"
        return self._made

    def start(self) -> None:
        """Begin to start its process, and wait for nothing."""
        self._made = self._make(stands_by=self._stands_by)

    def wait(self) -> None:
        """Wait until its process has loaded the objective; a failure is in :attr:`failure`."""
        started = self.worker.wait()
        if isinstance(started, Death):
            message = start_failure(started)
            self.failure = Outcome(Status.CRASHED, message=message, stderr=started.output, phase="start")
        elif isinstance(started, Ready):
            self._prepares = started.prepares

    def stand_by(self) -> None:
        """Wait until its process stands by. If it dies of that, start another one that does not stand by."""
        if self.worker.standing_by and isinstance(self.worker.wait(), Death):
            self._start_again()

    def begin(self) -> None:
        """Begin to prepare, if there is anything to prepare, and wait for nothing."""
        on_its_way = self._entered or self._at is not None or self.failure is not None
        if self._prepares and isinstance(self._what, Configuration) and not on_its_way:
            self._at = Prepare(self._what)
            self.worker.ask(self._at, self._settings.prepare_timeout)

    @property
    def outside(self) -> bool:
        """Whether it has not entered yet, and can be asked to."""
        return self._crowded_out or not (self._entered or self.failure is not None)

    @property
    def _crowded_out(self) -> bool:
        failure = self.failure
        return self.beside > 1 and failure is not None and failure.status is Status.OUT_OF_MEMORY

    def enter(self) -> None:
        """Prepare, load and check; once more, if it ran out of memory while others entered beside it."""
        if self._crowded_out:
            self.beside, self.failure, self._payload, self._entered = 1, None, None, False
            self._start_again()
        self.begin()
        while self.goes_on():
            wait_for_any([self.worker])

    def goes_on(self) -> bool:
        """Take the answer of its process, if there is one, and ask for the next step.

        Returns whether it is still on its way in.
        """
        if self._at is not None:
            came = self.worker.attend()
            if came is None:
                return True
            self._entered = isinstance(self._at, Enter)
            outcome = self._take(came, "measure" if self._entered else "prepare")
            if self._entered and outcome is not None:
                self.checked = outcome.metrics
            self._at = None
        if self._entered or self.failure is not None:
            return False
        self._at = Enter(self._what, self._payload, SEED, warm_up=self.beside == 1)
        self.worker.ask(self._at, self.beside * self._settings.timeout)
        return True

    def read(self, seed: int) -> tuple[Reading, ...]:
        if self.failure is not None:
            return ()
        with self._turn.taken():
            self.worker.ask(Read(seed), self._settings.timeout)
            outcome = self._take(self.worker.wait(), "measure")
        return outcome.readings if outcome is not None else ()

    def close(self) -> None:
        if self._made is not None:
            self._made.close()

    def _start_again(self) -> None:
        self._stands_by = False
        self.start()
        self.wait()

    def _take(self, came: object, phase: str) -> Outcome | None:
        """The outcome of a request; ``None`` if it failed, in which case :attr:`failure` has the outcome."""
        worker = self.worker
        if isinstance(came, Death):
            self.failure = replace(outcome_of(came, phase), worker=worker.name)
            return None
        assert isinstance(came, Prepared | Measured)
        if isinstance(came, Prepared):
            self._payload = came.prepared
        if came.outcome.status is Status.OK:
            return came.outcome
        self.failure = worker.completed(came.outcome)
        worker.close()
        return None


def enter_together(entrants: Sequence[WorkerEntrant]) -> None:
    """Let all of them prepare, load and check at once.

    They are not warmed up, since a reading beside others would be misleading. The time limit of each is
    multiplied by their number. Those that run out of memory beside the others may
    :meth:`~WorkerEntrant.enter` again, alone.
    """
    for entrant in entrants:
        entrant.beside = len(entrants)
        entrant.begin()
    entering = list(entrants)
    while entering := [entrant for entrant in entering if entrant.goes_on()]:
        wait_for_any([entrant.worker for entrant in entering])
