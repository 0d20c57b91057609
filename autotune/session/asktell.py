"""Ask and tell: the session for callers who run the trials themselves.

::

    with autotune.ask_tell("space.yaml", store="results.db") as session:
        for trial in session.ask(4):
            session.tell(trial, time=run_it(**trial.configuration))
        print(session.result().best)

Everything that holds for a search holds here: each trial is on disk before it is handed out and
after it is told, nothing is proposed twice, and opening the same study again goes on with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from autotune.errors import InputError, Problem, nearest
from autotune.measure.bounds import beyond_bounds
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.measure.reports import Reporter, Stopped
from autotune.measure.statistics import estimate
from autotune.provenance.environment import Environment
from autotune.session.ledger import Ledger
from autotune.session.opening import open_study
from autotune.session.result import Result, load_result
from autotune.session.stopping import make_stopping
from autotune.space.configuration import Configuration
from autotune.space.spec import StudySpec
from autotune.status import Status
from autotune.store.store import Store

Measured = float | list[float]
"""One value of a metric, or several readings of it."""


@dataclass(frozen=True)
class AskedTrial:
    """A configuration to try. ``number`` counts from 0 in the study; ``reason`` says why it was chosen."""

    id: int
    number: int
    configuration: Configuration
    reason: Mapping[str, object]


class AskTell:
    """A session whose trials the caller runs. Close it, or use ``with``: open trials are given back."""

    def __init__(
        self, spec: StudySpec, store: Store, environment: Environment, *, fresh: bool = False
    ) -> None:
        self._spec = spec
        self._store = store
        self._study = open_study(spec, store, environment, fresh=fresh)
        self._ledger = Ledger(spec, store, self._study, environment)
        self._closed = False
        self._reporters: dict[int, Reporter] = {}
        self._stopping = make_stopping(spec, store, self._study.record.id, self._ledger.session_id)
        if self._stopping is not None and self._stopping.pauses:
            self.close()
            message = "this policy of early_stopping pauses trials, which ask and tell cannot run on"
            raise InputError(Problem(message, expected="asha, none, or one of Optuna's pruners"))

    def ask(self, n: int = 1) -> list[AskedTrial]:
        """Up to ``n`` trials; fewer where the space is exhausted. They are ``running`` from now on."""
        trials = self._ledger.propose(n, worker="ask-tell")
        if self._stopping is not None:
            for trial in trials:
                self._stopping.give(trial)
                self._reporters[trial.id] = self._stopping.reporter(trial)
        return [AskedTrial(t.id, t.number, t.configuration, t.reason) for t in trials]

    def report(
        self, trial: AskedTrial, step: int, metrics: Mapping[str, float] | None = None, **named: float
    ) -> Stopped | None:
        """How far ``trial`` has come, for early stopping; what ends it, or ``None`` where it goes on.

        ::

            if stop := session.report(trial, epoch, loss=loss):
                session.tell(trial, loss=loss, status=stop.status, message=stop.message)
        """
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
        **named: Measured,
    ) -> Outcome:
        """Record what came of ``trial``: metrics by name, or the status in which it failed.

        A list holds several readings of a metric. A value past its bound makes the outcome
        ``wrong``, a NaN ``diverged``, as in any other search.
        """
        given = {**(metrics or {}), **named}
        outcome = self._outcome(given, Status(status), message, seconds, peak_memory)
        if self._stopping is not None:
            outcome = self._stopping.settle(trial.id, outcome) or outcome
            self._reporters.pop(trial.id, None)
        self._ledger.finish(trial.id, outcome)
        return outcome

    def result(self) -> Result:
        """The result as it stands. The winner is not measured again: the caller runs the trials."""
        return load_result(self._store, self._study.record)

    def close(self) -> None:
        """End the session; trials that were asked for and not told become lost, to be tried again."""
        if not self._closed:
            self._closed = True
            self._ledger.close("closed")
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _outcome(
        self,
        given: Mapping[str, Measured],
        status: Status,
        message: str,
        seconds: float,
        peak_memory: int | None,
    ) -> Outcome:
        known = [metric.name for metric in self._spec.metrics]
        if unknown := [name for name in given if name not in known]:
            raise InputError(
                [
                    Problem(f"unknown metric {n!r}", expected=", ".join(known), hint=nearest(n, known))
                    for n in unknown
                ]
            )
        readings = tuple(
            Reading(name, float(value))
            for name, values in given.items()
            for value in (values if isinstance(values, list) else [values])
        )
        metrics: dict[str, Estimate] = {}
        for name in given:
            own = [r.value for r in readings if r.metric == name]
            metrics[name] = estimate(own, self._spec.measure.confidence)
        if status is Status.OK:
            missing = [g.name for g in self._spec.goals if g.name not in metrics]
            if missing:
                raise InputError(f"a trial that is ok needs its metrics: {', '.join(missing)} missing")
            status, message = beyond_bounds(self._spec.metrics, metrics) or (status, message)
        return Outcome(
            status=status,
            metrics=metrics,
            readings=readings,
            phases={"measure": seconds},
            message=message,
            peak_memory=peak_memory,
        )
