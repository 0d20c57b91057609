"""An entrant of the finale in a process of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from autotune.measure.objective import Baseline
from autotune.measure.outcome import Outcome, Reading
from autotune.measure.turns import Turn
from autotune.measure.workers.messages import Enter, Measured, Prepare, Prepared, Read, Ready, Request
from autotune.measure.workers.postmortem import Death, after_memory_kill, outcome_of, start_failure
from autotune.session.execution.executor import Entrant
from autotune.session.execution.slot import FINALE, WorkerFactory
from autotune.space.configuration import Configuration
from autotune.space.spec import MeasureSettings
from autotune.status import Status

SEED = 0
"""Of the check; readings are seeded by the round."""


class WorkerEntrant(Entrant):
    """A worker that has loaded and checked one thing, and waits to be read.

    Made, it begins to start; :meth:`wait` until it has, then let it :meth:`enter`. It prepares then, or from
    :meth:`begin` on, beside others.

    A process of its own, since a vendor library can be set up only through its environment before it is
    loaded, and so that nothing of one entrant (heap, caches, threads) differs by what ran before it.
    """

    def __init__(
        self,
        factory: WorkerFactory,
        cores: tuple[int, ...],
        turn: Turn,
        settings: MeasureSettings,
        what: Configuration | Baseline,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._settings = settings
        self._turn = turn
        self._payload: bytes | None = None
        self._what = what
        self._prepares = False
        self._preparing = False
        own = what.environment if isinstance(what, Baseline) else {}
        self._worker = factory.start(cores, FINALE, {**(environment or {}), **own})

    def wait(self) -> None:
        """Wait until its process has loaded the objective; a failure is in :attr:`failure`."""
        started = self._worker.wait()
        if isinstance(started, Death):
            message = start_failure(started)
            self.failure = Outcome(Status.CRASHED, message=message, stderr=started.output, phase="start")
        elif isinstance(started, Ready):
            self._prepares = started.prepares

    def begin(self) -> None:
        """Begin to prepare, if there is anything to, and wait for nothing."""
        if self.failure is None and self._prepares and isinstance(self._what, Configuration):
            self._worker.ask(Prepare(self._what, SEED), self._settings.prepare_timeout)
            self._preparing = True

    def enter(self) -> None:
        """Prepare, load and check."""
        if not self._preparing:
            self.begin()
        if self._preparing:
            self._answer("prepare")
        if self.failure is None:
            self._ask(Enter(self._what, self._payload, SEED), self._settings.timeout)

    def read(self, seed: int) -> tuple[Reading, ...]:
        if self.failure is not None:
            return ()
        with self._turn.taken():
            outcome = self._ask(Read(seed), self._settings.timeout)
        return outcome.readings if outcome is not None else ()

    def close(self) -> None:
        self._worker.close()

    def _ask(self, request: Request, seconds: float) -> Outcome | None:
        """The outcome of a request; ``None`` where it failed, and then :attr:`failure` has it."""
        self._worker.ask(request, seconds)
        return self._answer("measure")

    def _answer(self, phase: str) -> Outcome | None:
        answer = self._worker.wait()
        if isinstance(answer, Death):
            self.failure = replace(outcome_of(answer, phase), worker=self._worker.name)
            return None
        assert isinstance(answer, Prepared | Measured)
        if isinstance(answer, Prepared):
            self._payload = answer.prepared
        if answer.outcome.status is Status.OK:
            return answer.outcome
        outcome, cap = answer.outcome, self._worker.setup.cap
        if cap is not None and self._worker.memory_kills():
            outcome = after_memory_kill(outcome, cap.bytes)
        self.failure = replace(
            outcome, stderr=outcome.stderr or self._worker.output, worker=self._worker.name
        )
        self._worker.close()
        return None
