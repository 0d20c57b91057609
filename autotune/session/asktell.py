"""Ask and tell: the session for callers who run the trials themselves.

::

    with autotune.ask_tell("space.yaml", store="results.db") as session:
        for trial in session.ask(4):
            session.tell(trial, time=run_it(**trial.configuration))
        print(session.result().best)

Everything that holds for a search holds here: each trial is on disk before it is handed out and
after it is told, nothing is proposed twice, and opening the same study again goes on with it.

A trial may take any time while this process lives, which other processes on the same machine can see.
Processes on other machines only see the calls of ``ask``, ``report`` and ``tell``: one that opens the study
a minute after the last of these takes the trials running here for lost and tries them again. The result
that is told first counts.

Several threads may share a session; their calls are executed one after another.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from autotune.arguments import by_name
from autotune.errors import InputError, Problem
from autotune.measure.outcome import Outcome
from autotune.measure.reports import Reporter, Stopped
from autotune.provenance.environment import Environment
from autotune.session.answers import load_result
from autotune.session.early_stopping.stopping import make_stopping, pauses_trials
from autotune.session.ledger import MAX_ATTEMPTS, Ledger
from autotune.session.opening.opening import check_feasible, open_study
from autotune.session.result import Result
from autotune.session.told import Measured, count_of, outcome_of
from autotune.space.configuration import Configuration
from autotune.space.spec import StudySpec
from autotune.status import Status
from autotune.store.store import Store


@dataclass(frozen=True)
class AskedTrial:
    """A configuration to try. ``number`` counts from 0 in the study; ``reason`` says why it was chosen."""

    id: int
    number: int
    configuration: Configuration
    reason: Mapping[str, object]


class AskTell:
    """A session whose trials the caller runs. Close it, or use ``with``; open trials then become lost.

    It owns ``store``, and closes it even if the session cannot begin.
    """

    def __init__(
        self, spec: StudySpec, store: Store, environment: Environment, *, fresh: bool = False
    ) -> None:
        self._lock = threading.RLock()
        """Held by every call: a strategy must not be told anything while it is asked."""
        self._spec = spec
        self._reporters: dict[int, Reporter] = {}
        with ExitStack() as opened:
            opened.callback(store.close)
            self._store = store
            check_feasible(spec)
            if pauses_trials(spec):
                message = "this policy of early_stopping pauses trials, which ask and tell cannot resume"
                others = "asha, async-hyperband, none, or one of Optuna's pruners"
                raise InputError(Problem(message, expected=others))
            self._study = open_study(spec, store, environment, fresh=fresh)
            self._ledger = Ledger(spec, store, self._study, environment)
            opened.callback(self._ledger.close, "closed")
            self._stopping = make_stopping(spec, store, self._study.record.id, self._ledger.session_id)
            self._opened = opened.pop_all()

    def __repr__(self) -> str:
        return f"AskTell({self._study.record.label!r})"

    def ask(self, n: int = 1) -> list[AskedTrial]:
        """Up to ``n`` trials, fewer if the space is exhausted. They are ``running`` from now on."""
        with self._lock:
            self._ledger.renew()
            wanted = count_of(n)
            trials = self._ledger.propose(wanted, worker="ask-tell")
            if wanted and not trials and self._ledger.take_over():
                trials = self._ledger.propose(wanted, worker="ask-tell")
            if self._stopping is not None:
                for trial in trials:
                    self._stopping.give(trial)
                    self._reporters[trial.id] = self._stopping.reporter(trial)
            return [AskedTrial(t.id, t.number, t.configuration, t.reason) for t in trials]

    def enqueue(self, values: Mapping[str, Any] | None = None, **named: Any) -> bool:
        """Let the next :meth:`ask` begin with this configuration; a knob that is left out has its default.

        Of several the first comes first. Each is on disk at once, so that a later session tries what this one
        did not come to. Returns false, and does nothing, if the study has tried, or is trying, it already.

        Raises :class:`InputError` for a knob or a value that the space does not have, and for what the
        constraints forbid.
        """
        with self._lock:
            self._ledger.renew()
            space = self._spec.space
            configuration = space.configuration({**(values or {}), **named})
            if problems := space.refusals(configuration, "the configuration"):
                raise InputError(problems)
            return self._ledger.enqueue(configuration)

    def report(
        self, trial: AskedTrial, step: int, metrics: Mapping[str, float] | None = None, **named: float
    ) -> Stopped | None:
        """Report the metrics of ``trial`` after ``step`` steps, for early stopping.

        Returns why the trial ends, or ``None`` if it goes on::

            if stop := session.report(trial, epoch, loss=loss):
                session.tell(trial, loss=loss, status=stop.status, message=stop.message)
        """
        with self._lock:
            self._in_flight(trial)
            self._ledger.renew()
            if self._stopping is None:
                return None
            try:
                self._reporters[trial.id](step, metrics, **named)
            except Stopped as stopped:
                return stopped
            return None

    def tell(
        self,
        trial: AskedTrial,
        metrics: Mapping[str, Measured] | None = None,
        *,
        status: Status | str = Status.OK,
        message: str = "",
        seconds: float = 0.0,
        peak_memory: int | None = None,
        facts: Mapping[str, object] | None = None,
        **named: Measured,
    ) -> Outcome:
        """Record what came of ``trial``: metrics by name, or the status in which it failed.

        A list or an array holds several readings of a metric. A value past its bound makes the outcome
        ``wrong``, a NaN ``diverged``, as in any other search. ``seconds`` is how long the trial took, and
        ``peak_memory`` its memory in bytes. ``facts`` is JSON to keep with the trial: where its checkpoint
        lies, say. A metric with the name of one of these arguments is given in ``metrics``. A trial that was
        ``lost``, since something else failed, is among the next that :meth:`ask` returns, up to twice.

        Raises :class:`InputError` for values that cannot be recorded, and :class:`autotune.errors.StoreError`
        if the store fails. The trial can be told again after either.
        """
        with self._lock:
            self._in_flight(trial)
            self._ledger.renew()
            try:
                given = by_name(metrics, named)
            except TypeError as error:
                raise InputError(str(error)) from None
            outcome = outcome_of(self._spec, given, status, message, seconds, peak_memory, facts)
            if self._stopping is not None:
                outcome = self._stopping.completed(trial.id, outcome)
            attempt = self._ledger.finish(trial.id, outcome).attempt
            if self._stopping is not None:
                self._stopping.over(trial.id, outcome)
            if outcome.status is Status.LOST and attempt < MAX_ATTEMPTS:
                self._ledger.retry(trial.id)
            self._reporters.pop(trial.id, None)
            return outcome

    def _in_flight(self, trial: AskedTrial) -> None:
        if not isinstance(trial, AskedTrial) or not self._ledger.runs(trial.id):
            what = f"trial {trial.number}" if isinstance(trial, AskedTrial) else f"{trial!r:.60}"
            message = f"{what} is not in flight in this session: not asked for here, or told already"
            raise InputError(Problem(message, expected="a trial that ask() returned, once"))

    def result(self) -> Result:
        """The result so far. The winner is not measured again, since only the caller can run trials."""
        return load_result(self._store, self._study.record)

    def close(self) -> None:
        """End the session; trials that were asked for and not told become lost, and are tried again later."""
        with self._lock:
            self._opened.close()  # harmless when repeated

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
