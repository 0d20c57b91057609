"""Reports of an objective while it runs: the reporter that it is given, and how its run is ended early.

An objective calls ``report(step, loss=...)`` after ``step`` steps of its resource. Where the trial is to
end, the call raises :class:`Stopped`, which unwinds the objective's own code::

    running ──report──▶ heard ──▶ running                 between rungs nobody waits
                          │  ▲
                          ▼  │ go on
                       decided ──▶ Stopped                 at a rung: stopped or paused

A loop that reports every few microseconds would make the session write down more than anybody looks at. So a
reporter may be *thinned*: after the first hundred reports of a run, only one is heard every tenth of a
second. The last one is always heard, and so are those that are judged or learned from. The hook in a program
(:mod:`autotune.hook.runs.reports`) sends even fewer.
"""

from __future__ import annotations

import math
import operator
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import SupportsIndex

from autotune.arguments import by_name, no_step
from autotune.measure.clocks import monotonic
from autotune.measure.outcome import Report
from autotune.measure.readings import named_values
from autotune.measure.stopped import Stopped as Stopped
from autotune.space.spec import StudySpec
from autotune.status import Status

ALL_HEARD = 100
"""The first so many reports of a run are all heard, so that the curve of a short training is kept whole."""

SECONDS_BETWEEN = 0.1
"""The least time between two later reports, unless one is judged or learned from."""


@dataclass(frozen=True)
class Curve:
    """How the run of a trial is followed."""

    steps: int
    """The whole resource: the run is complete after so many."""
    metric: str
    """The metric that every report must have."""
    decide_at: tuple[int, ...] | None
    """The steps at which the run waits for the decision whether it goes on; ``None``: at each report."""
    done: int = 0
    """The step at which the trial was paused before; up to it nothing is decided again."""
    pauses: bool = False
    """Whether a run that waits may be paused there, to go on later."""
    rungs: tuple[int, ...] = ()
    """The steps at which the value of every trial is kept, whether or not anything is decided there."""

    def waits(self, before: int, step: int) -> bool:
        """Whether a report of ``step`` that follows one of ``before`` waits for a decision."""
        before = max(before, self.done)
        if not before < step < self.steps:
            return False
        return self.decide_at is None or any(before < rung <= step for rung in self.decide_at)

    def counts(self, before: int, step: int) -> bool:
        """Whether a report of ``step`` that follows one of ``before`` is the first at a rung, or the last."""
        return step >= self.steps or any(before < rung <= step for rung in self.rungs)


def whole_run(spec: StudySpec) -> Curve | None:
    """How a run is followed that is never stopped; ``None`` for a study without early stopping."""
    early = spec.search.early_stopping
    if early is None:
        return None
    metric = early.metric or spec.goals[0].name
    return Curve(early.max, metric, ())


Hear = Callable[[Report, bool], str]
"""Takes a report, and whether the run waits for it; returns why the run must end, or ``""`` to go on."""


def _unheard(report: Report, waits: bool) -> str:
    return ""


class Reporter:
    """``report(step, loss=...)``: says how far the run has come. Does nothing where nobody listens.

    ``steps`` is the whole resource, ``None`` where none is set.

    In a forked child it does nothing, so that of several processes the first one reports.
    """

    def __init__(
        self,
        curve: Curve | None = None,
        hear: Hear = _unheard,
        folder: Path | None = None,
        *,
        thinned: bool = False,
    ) -> None:
        """One that is ``thinned`` must be closed: then its last report is heard."""
        self.curve = curve
        self.last: Report | None = None
        self.count = 0
        self.ended: Stopped | None = None
        """Set once the run must end, whether or not the objective lets the exception pass."""
        self._over = False
        self._folder = folder
        self._hear = hear
        self._pid = os.getpid()
        self._began = monotonic()
        self._lock = threading.Lock()
        self._seconds_between = SECONDS_BETWEEN if thinned else 0.0
        self._unheard: Report | None = None
        """The last report, where it was not heard, with the metrics of those before it that were not
        either."""
        self._heard_at = 0.0

    @property
    def steps(self) -> int | None:
        return self.curve.steps if self.curve is not None else None

    @property
    def folder(self) -> Path | None:
        """A folder of this configuration's own, made when first asked for; ``None`` where nobody listens.

        It is kept while the session lasts: a trial that is paused and goes on finds its checkpoint there.
        """
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        return self._folder

    def may_pause(self, step: SupportsIndex) -> bool:
        """Whether the run may be paused at the report of ``step``, to go on from there later.

        If so, save a checkpoint before that report. It is never so under a policy that decides at once, where
        saving would take time for nothing.
        """
        before = self.last.step if self.last is not None else -1
        return self.curve is not None and self.curve.pauses and self.curve.waits(before, _whole(step))

    def __call__(
        self, step: SupportsIndex, metrics: Mapping[str, float] | None = None, /, **named: float
    ) -> None:
        """Report that ``step`` steps are done, and the metrics by now.

        Raises :class:`Stopped` where the run must end; ``TypeError`` or ``ValueError`` for a report that
        cannot be used: its step is not above the last one, or a metric is missing or not a number.
        """
        if self.curve is None or os.getpid() != self._pid:
            return
        with self._lock:
            if self.ended is not None:
                raise self.ended
            if self._over:
                return
            try:
                self._report(self.curve, _whole(step), by_name(metrics, named))
            except Stopped as stopped:
                self.ended = stopped
                raise

    def close(self) -> None:
        """The run is over; later reports, of a thread that it left running, are ignored."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._over = True
            unheard, self._unheard = self._unheard, None
            if unheard is not None:
                self._hear(unheard, False)

    def _report(self, curve: Curve, step: int, metrics: Mapping[str, float]) -> None:
        before = self.last.step if self.last is not None else -1
        values = named_values(metrics, curve.metric)
        if step <= before:
            after = "" if self.last is None else f" after one of step {before}"
            raise ValueError(f"a report of step {step}{after}: steps only go up, from 0")
        if curve.metric not in values:
            known = ", ".join(values) or "nothing"
            raise TypeError(
                f"every report must bring the metric {curve.metric!r}; that of step {step} has {known}"
            )
        if step > curve.steps and before < 0 and not curve.done:
            raise Stopped(Status.CRASHED, _says_nothing(step, curve.steps))
        if step > curve.steps:
            raise Stopped(Status.OK, f"all {curve.steps} steps are done")
        usable = math.isfinite(values[curve.metric])
        report = Report(step, values, monotonic() - self._began)
        waits = usable and curve.waits(before, step)
        needed = waits or not usable or curve.counts(before, step)
        why = self._tell(report, waits, at_once=needed or self.count < ALL_HEARD)
        self.last, self.count = report, self.count + 1  # it was heard; one that was not can be made again
        if not usable:
            raise Stopped(Status.DIVERGED, f"{curve.metric} is {values[curve.metric]} at step {step}")
        if why:
            raise Stopped(Status.PRUNED, why)

    def _tell(self, report: Report, waits: bool, at_once: bool) -> str:
        """Let it be heard if it is time, with the metrics of the reports that were not heard before it."""
        before = self._unheard.metrics if self._unheard is not None else {}
        report = replace(report, metrics={**before, **report.metrics})
        if not at_once and report.at - self._heard_at < self._seconds_between:
            self._unheard = report
            return ""
        why = self._hear(report, waits)
        self._unheard, self._heard_at = None, report.at
        return why


def _says_nothing(step: int, steps: int) -> str:
    return (
        f"the first report is of step {step}, and a complete trial has {steps}, so nothing says what it is"
        " worth: report in the steps of early_stopping (run.steps, report.steps or AUTOTUNE_STEPS says how"
        " many), or set its max to what is reported"
    )


SILENT = Reporter()
"""The reporter of an objective that nobody listens to."""


def _whole(step: SupportsIndex) -> int:
    try:
        return operator.index(step)
    except TypeError:
        raise no_step(step) from None
