"""The phases of one configuration: prepare, load, check, warm up, read. In whatever process it is called.

Everything that an objective can raise ends in an :class:`Outcome`. What it can do beyond raising (die,
hang, eat memory) is the business of :mod:`autotune.measure.process`.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from autotune.measure.bounds import beyond_bounds, beyond_doubt
from autotune.measure.clocks import monotonic
from autotune.measure.forked import forks_end_here
from autotune.measure.gathering import NoNotes, Notes, Trial
from autotune.measure.memory import PeakMemory
from autotune.measure.mistakes import MissingMetricError
from autotune.measure.objective import Baseline, Code, Objective
from autotune.measure.outcome import CODE, MISTAKE, RESOURCES, SURE, Estimate, Outcome, Reading
from autotune.measure.pace import Pace
from autotune.measure.raised import Failed
from autotune.measure.readings import Clock, Sample, named_values, plain_context, plain_facts
from autotune.measure.repetition import Decision, RepetitionRule, Verdict
from autotune.measure.reports import FOLDER, SILENT, Curve, Reporter, Stopped
from autotune.measure.statistics import suspicions
from autotune.space.configuration import Configuration
from autotune.space.spec import MeasureSettings, MetricSpec
from autotune.status import Status

SHORT_SECONDS = 0.1
"""A reading shorter than this begins with what was in the caches before; a longer one does not care."""


class Runner:
    """Takes configurations of one objective through their phases.

    ``metrics`` and ``settings`` are the space file's; readings stop by the
    :class:`~autotune.measure.repetition.RepetitionRule` of these settings. A ``KeyboardInterrupt`` is the
    user's and goes to the caller, but in a process of the objective's ``own`` that no user can reach.
    With a ``curve`` each reading is a whole run, which reports while it goes. After ``share`` seconds of
    readings a trial with the fewest that the settings ask for gets no more.
    """

    def __init__(
        self,
        objective: Objective,
        metrics: tuple[MetricSpec, ...],
        settings: MeasureSettings,
        notes: Notes | None = None,
        *,
        own_process: bool = False,
        curve: Curve | None = None,
        share: float = math.inf,
    ) -> None:
        self.objective = objective
        self.curve = curve
        self.share = share
        self.metrics = metrics
        self.settings = settings
        self.goal = next(metric for metric in metrics if metric.goal)
        self.rule = RepetitionRule(
            settings.precision,
            settings.confidence,
            settings.min_readings,
            settings.max_readings,
            settings.reject,
        )
        self.notes = notes or NoNotes()
        self.own_process = own_process
        self._entered: Any = None
        self._pace = Pace()
        self._entered_clock = Clock(self._pace)

    # -- the phases ----------------------------------------------------------------------------

    def prepare(
        self, configuration: Configuration, seal: Callable[[Any], Any] = lambda made: made
    ) -> tuple[Outcome, Any]:
        """``(outcome, prepared)``; ``seal`` (pickling, say) is part of the phase and may fail as well.

        The outcome is ``ok``, ``pruned`` where the objective says that running it is hopeless, or a failure.
        """
        trial = self._trial()
        prepared: list[Any] = []

        def prepare() -> Outcome:
            with trial.during("prepare"):
                made = self.objective.prepare(configuration)
                code = self.objective.code(made)
                trial.facts |= _facts_of(code)
                hopeless = str(code.hopeless or "")
                prepared.append(seal(made))
            if hopeless:
                return trial.outcome(Status.PRUNED, hopeless)
            return trial.outcome(Status.OK)

        outcome = self._typed(trial, prepare)
        return outcome, prepared[0] if prepared else None

    def check(self, unseal: Callable[[], Any], seed: int) -> Outcome:
        """Load what ``unseal`` gives and check it, ahead of :meth:`measure`, which is handed what it read."""
        self.objective.final = False
        trial = self._trial()

        def check() -> Outcome:
            with trial.during("load"):
                loaded = self.objective.load(unseal())
            self._check(trial, loaded, seed)
            return trial.outcome(Status.OK)

        return self._typed(trial, check)

    def measure(
        self,
        unseal: Callable[[], Any],
        seed: int,
        incumbent: Estimate | None = None,
        seconds: float = math.inf,
        reporter: Reporter | None = None,
        checked: Sequence[Reading] | None = None,
    ) -> Outcome:
        """Load what ``unseal`` gives, check it, warm it up and read it, in about ``seconds`` at most.

        With a counted reading in hand, no other is begun that would not end in time. With a ``reporter``
        it is read once and not warmed up: that one run is followed by its reports, and may be ended by them.
        ``checked``: what :meth:`check` has read of it already, elsewhere.
        """
        self.objective.final = False
        trial = self._trial()
        if checked is not None:
            trial.stand_by(checked)
        memory = PeakMemory()
        deadline = monotonic() + seconds
        to_check = checked is None
        outcome = self._typed(
            trial, lambda: self._measure(trial, unseal, seed, incumbent, deadline, reporter, to_check)
        )
        return replace(outcome, peak_memory=memory.read())

    def enter(self, what: Configuration | Baseline, unseal: Callable[[], Any], seed: int) -> Outcome:
        """Load (a baseline: as the objective says), check and warm up, and keep it for :meth:`read`."""
        self.objective.final = True
        trial = self._trial()

        def enter() -> Outcome:
            with trial.during("load"):
                if isinstance(what, Baseline):
                    self._entered = self.objective.load_baseline(what)
                else:
                    self._entered = self.objective.load(unseal())
            self._check(trial, self._entered, seed)
            if self.curve is None:
                with trial.during("warmup"):
                    self._warm_up(trial, self._entered, self._rng(seed, 1))
            return trial.outcome(Status.OK, metrics=dict(trial.checked))

        return self._typed(trial, enter)

    def read(self, seed: int) -> Outcome:
        """One counted reading of what was entered, on fresh inputs, after one that warms the caches again."""
        trial = self._trial()

        def read() -> Outcome:
            rng = self._rng(seed, 2)
            with trial.during("measure"):
                clock = self._entered_clock
                if self.settings.warmup and self.curve is None and clock.last_seconds < SHORT_SECONDS:
                    self._read_once(trial, self._entered, rng, clock, discarded="warm-up")
                while not self._read_once(trial, self._entered, rng, clock):
                    self._must_go_on(trial)
            metrics = trial.estimates(self.settings.confidence)
            status, message = beyond_bounds(self.metrics, metrics) or (Status.OK, "")
            return trial.outcome(status, message, metrics=metrics)

        return self._typed(trial, read)

    def _measure(
        self,
        trial: Trial,
        unseal: Callable[[], Any],
        seed: int,
        incumbent: Estimate | None,
        deadline: float,
        reporter: Reporter | None,
        to_check: bool,
    ) -> Outcome:
        with trial.during("load"):
            loaded = self.objective.load(unseal())
        if to_check:
            self._check(trial, loaded, seed)
        rng = self._rng(seed, 1)
        if reporter is not None:
            return self._follow(trial, loaded, rng, reporter)
        with trial.during("warmup"):
            clock = self._warm_up(trial, loaded, rng)
        with trial.during("measure"):
            decision = self._read(trial, loaded, rng, clock, incumbent, deadline)
        trial.facts |= {"stopped": f"{decision.verdict}: {decision.reason}"}
        if suspicious := suspicions(trial.values(self.goal.name)):
            trial.facts["suspicions"] = list(suspicious)
        metrics = trial.estimates(self.settings.confidence)
        status, message = beyond_bounds(self.metrics, metrics) or _judged(decision)
        return trial.outcome(status, message, metrics=metrics)

    def _follow(self, trial: Trial, loaded: Any, rng: np.random.Generator, reporter: Reporter) -> Outcome:
        """One run, as far as its reports let it come; where it returns nothing, the last of them counts."""
        clock = Clock(self._pace)
        with trial.during("measure"):
            values = self._run(trial, loaded, rng, reporter, clock)
        ended = reporter.ended
        trial.facts |= {"reports": reporter.count}
        if reporter.last is not None:
            trial.facts |= {"step": reporter.last.step}
        if ended is not None and ended.status is not Status.OK:
            stood = {name: Estimate(value, value, value, 1) for name, value in values.items()}
            return trial.outcome(ended.status, ended.message, metrics=trial.checked | stood)
        for name, value in values.items():
            trial.add(Reading(name, value, clock.at, "", clock.context))
        metrics = trial.estimates(self.settings.confidence)
        status, message = beyond_bounds(self.metrics, metrics) or (Status.OK, "")
        return trial.outcome(status, message, metrics=metrics)

    def _run(
        self, trial: Trial, loaded: Any, rng: np.random.Generator, reporter: Reporter, clock: Clock
    ) -> dict[str, float]:
        """The values at the end of one run, or where it was stopped."""
        returned: object = None
        self.objective.report = reporter
        try:
            with forks_end_here(), clock:
                returned = self.objective.measure(loaded, rng)
        except Stopped:
            pass  # the reporter knows why
        finally:
            self.objective.report = SILENT
        values = dict(reporter.last.metrics) if reporter.last is not None else {}
        if reporter.ended is None and not (returned is None and values):
            values |= self._values(returned)
        if isinstance(returned, Sample):
            trial.facts |= plain_facts(returned.facts)
        return values

    def _check(self, trial: Trial, loaded: Any, seed: int) -> None:
        with trial.during("check"):
            returned = self.objective.check(loaded, self._rng(seed, 0))
            if returned is not None and not isinstance(returned, Mapping):
                raise TypeError(
                    f"check() must return metrics by name, or nothing, not {returned!r:.80}:"
                    " where the answer is wrong it raises WrongAnswer"
                )
            values = named_values(returned or {}, self.goal.name)
            trial.stand_by([Reading(name, value) for name, value in values.items()])
            if unacceptable := beyond_bounds(self.metrics, trial.checked):
                raise Failed(*unacceptable)

    def _warm_up(self, trial: Trial, loaded: Any, rng: np.random.Generator) -> Clock:
        clock = Clock(self._pace)
        for _ in range(self.settings.warmup):
            self._read_once(trial, loaded, rng, clock, discarded="warm-up")
        return clock

    def _read(
        self,
        trial: Trial,
        loaded: Any,
        rng: np.random.Generator,
        clock: Clock,
        incumbent: Estimate | None,
        deadline: float,
    ) -> Decision:
        """Readings until the rule, a bound or the time limit says that it is enough."""
        goal = self.goal.goal or "minimize"
        enough = monotonic() + self.share
        while True:
            self._read_once(trial, loaded, rng, clock)
            values = trial.values(self.goal.name)
            late = monotonic() + 1.5 * clock.last_seconds > deadline
            if not values:
                self._must_go_on(trial, late)
                continue
            decision = self.rule.decide(values, incumbent, goal)
            if decision.stop:
                return decision
            if reason := beyond_doubt(self.metrics, trial.values):
                return Decision(Verdict.BOUNDED, reason)
            if spoilt := trial.stays_spoilt:
                return Decision(Verdict.CAPPED, spoilt)
            if late:
                return Decision(Verdict.CAPPED, f"the time limit allows {len(values)} readings")
            if len(values) >= self.settings.min_readings and monotonic() > enough:
                return Decision(
                    Verdict.CAPPED, f"{len(values)} readings have taken a trial's share of the time"
                )

    def _read_once(
        self, trial: Trial, loaded: Any, rng: np.random.Generator, clock: Clock, discarded: str = ""
    ) -> bool:
        """Whether the reading counts."""
        sample = Sample({})
        if self.curve is not None:
            with self._empty_folder() as folder:
                values = self._run(trial, loaded, rng, Reporter(self.curve, folder=folder), clock)
        else:
            with forks_end_here(), clock:
                returned = self.objective.measure(loaded, rng)
            if isinstance(returned, Sample):
                sample = returned
            values = self._values(returned)
        spoilt = str(sample.discarded or "")
        if spoilt and not discarded:
            trial.discard(spoilt)
        trial.facts |= plain_facts(sample.facts)
        discarded = discarded or spoilt
        context = {**clock.context, **plain_context(sample.context)}
        for name, value in values.items():
            trial.add(Reading(name, value, clock.at, discarded, context))
        return not discarded

    @contextmanager
    def _empty_folder(self) -> Iterator[Path]:
        """For the checkpoints of one run that is to go on from none; removed when it is over."""
        name = f"{os.getpid()}-{id(self)}"
        folder = self.objective.context.cache / FOLDER / name
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _must_go_on(self, trial: Trial, late: bool = False) -> None:
        """A device that lets nothing count is no fault of the configuration, which is tried again later."""
        if spoilt := trial.stays_spoilt:
            raise Failed(Status.LOST, f"nothing of it counts: {spoilt}")
        if late and (spoilt := trial.spoilt):
            raise Failed(Status.LOST, f"nothing of it counts: {spoilt}; the time limit allows no more")

    def _values(self, returned: object) -> dict[str, float]:
        plain = returned.values if isinstance(returned, Sample) else returned
        values = named_values(plain, self.goal.name)
        if self.goal.name not in values:
            known = ", ".join(values) or "nothing"
            message = f"measure() must return the metric {self.goal.name!r}; it returned {known}"
            raise MissingMetricError(message) if values else TypeError(message)
        return values

    def _trial(self) -> Trial:
        return Trial(self.notes, self.own_process)

    def _rng(self, seed: int, purpose: int) -> np.random.Generator:
        """Fresh random numbers: others for each trial, and others for its check than for its readings."""
        return np.random.default_rng((abs(self.objective.context.seed), abs(seed), purpose))

    def _typed(self, trial: Trial, run: Callable[[], Outcome]) -> Outcome:
        try:
            return run()
        except Failed as failure:
            stood = {name: Estimate(value, value, value, 1) for name, value in failure.metrics.items()}
            metrics = trial.checked | stood if failure.status is Status.WRONG else {}
            if failure.mistake:
                trial.facts[MISTAKE] = failure.mistake
                trial.facts |= {SURE: True} if failure.sure else {}
            return trial.outcome(
                failure.status,
                failure.message,
                metrics=metrics,
                stderr=failure.stderr,
                exit_code=failure.exit_code,
                signal=failure.signal,
            )


def _facts_of(code: Code) -> dict[str, object]:
    """What a trial keeps of what its compiler said."""
    if not isinstance(code, Code):
        raise TypeError(f"code() must return an autotune.Code; it returned a {type(code).__name__}")
    facts = plain_facts(code.facts)
    if code.fingerprint:
        facts[CODE] = str(code.fingerprint)
    if code.resources:
        facts[RESOURCES] = {str(name): float(value) for name, value in code.resources.items()}
    return facts


def _judged(decision: Decision) -> tuple[Status, str]:
    match decision.verdict:
        case Verdict.DIVERGED:
            return Status.DIVERGED, decision.reason
        case Verdict.REJECTED:
            return Status.PRUNED, decision.reason
        case _:
            return Status.OK, ""
