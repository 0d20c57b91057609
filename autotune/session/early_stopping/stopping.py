"""Early stopping in a session: take the reports of trials, write them down, and decide which trials end.

The states of a trial, if the rule pauses trials::

    given ──▶ running ──▶ pausing ──▶ paused ──promoted──▶ running ──▶ complete, or paused again
                 │                      └──stopped──▶ pruned
                 └──stop──▶ pruned

If the time is nearly up before any trial is complete, the best of the paused ones runs to its end instead of
waiting for its bracket: a search without a complete trial has no winner.

Rules only see what is in the store, in the order in which it was written.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial

from autotune.measure.facts import CURVE, STEP, STEPS
from autotune.measure.outcome import Estimate, Outcome, Report, added
from autotune.measure.reports import Curve, Reporter
from autotune.session.early_stopping.curves import Curves
from autotune.session.early_stopping.pace import Pace
from autotune.session.early_stopping.rules import Rule, Verdict
from autotune.space.spec import EarlyStopping, MetricSpec, StudySpec
from autotune.status import Status
from autotune.store.records import TrialRecord
from autotune.store.store import Store


def make_stopping(spec: StudySpec, store: Store, study_id: int, session_id: int) -> Stopping | None:
    """The early stopping that ``spec`` asks for, restored from the store; ``None`` if it asks for none."""
    settings = spec.search.early_stopping
    if settings is None:
        return None
    metric = _judged(spec, settings)
    stopping = Stopping(settings, metric, make_rule(settings, metric), store, study_id)
    stopping.restore(store.trials(study_id, purpose="search"), session_id)
    return stopping


def pauses_trials(spec: StudySpec) -> bool:
    """Whether the early stopping that ``spec`` asks for pauses trials, so that they have to be resumed."""
    settings = spec.search.early_stopping
    return settings is not None and make_rule(settings, _judged(spec, settings)).pauses


def _judged(spec: StudySpec, settings: EarlyStopping) -> MetricSpec:
    return next(goal for goal in spec.goals if settings.metric in ("", goal.name))


def make_rule(settings: EarlyStopping, metric: MetricSpec) -> Rule:
    """The rule of the policy that ``settings`` name."""
    from autotune.session.early_stopping import halving

    match settings.policy:
        case "asha":
            return halving.Asha(settings)
        case "successive-halving":
            return halving.successive_halving(settings)
        case "hyperband":
            return halving.hyperband(settings)
        case "async-hyperband":
            return halving.AsyncHyperband(settings)
        case "none":
            return halving.Unstopped()
    from autotune.session.early_stopping.pruners import OptunaRule

    return OptunaRule(settings, metric)


class _Way(Enum):
    """The state of a trial that has not ended."""

    RUNNING = "running"
    PAUSING = "pausing"
    """It was told to pause, but its run has not ended yet."""
    PAUSED = "paused"


@dataclass(frozen=True)
class _InFlight:
    """A trial of this session that has not ended."""

    trial: TrialRecord
    way: _Way = _Way.RUNNING
    known: Outcome | None = None
    """Its outcome so far when it was paused the last time; ``None`` if it never was."""
    pace: Pace | None = None
    """How far its last run came in which time; ``None`` before its first report."""


MARGIN = 1.25
"""How much more time than foreseen is left to the trial that is to be complete when the time is up."""


class Stopping:
    """Connects a rule with the store and the session. Used by the session's thread only."""

    def __init__(
        self, settings: EarlyStopping, metric: MetricSpec, rule: Rule, store: Store, study_id: int
    ) -> None:
        self._settings = settings
        self._metric = metric
        self._sign = metric.sign
        self._rule = rule
        self._curves = Curves(store, study_id, metric.name, settings.rungs)
        self._in_flight: dict[int, _InFlight] = {}
        """By the trial's id."""
        self._complete = False
        """Whether any trial has used its whole resource."""
        self._finishing: int | None = None
        """The id of the trial that the rest of the time is left to."""

    def restore(self, trials: Sequence[TrialRecord], session_id: int) -> None:
        """Tell the rule the study so far, without the trials that another session is running."""
        for trial in trials:
            if trial.status.finished or trial.session_id == session_id:
                self._rule.joined(trial.number)
        self._catch_up()
        for trial in trials:
            if trial.status.finished:
                self._end(trial.number, trial.status, trial.metrics)

    # -- trials that run -----------------------------------------------------------------------

    def give(self, trial: TrialRecord) -> bool:
        """Take a trial that is to run. ``False`` if it was lost while it was paused: it stays paused."""
        self._in_flight[trial.id] = _InFlight(trial)
        self._rule.joined(trial.number)
        last = self._curves.last(trial.number)
        if not self._rule.pauses or last is None:
            return True
        rungs = self._rule.decide_at(trial.number) or ()
        if not any(rung <= last.step for rung in rungs):
            return True
        stood = {name: Estimate.of_one(value) for name, value in last.metrics.items()}
        known = Outcome(Status.PRUNED, stood, facts={STEP: last.step})
        self._in_flight[trial.id] = _InFlight(trial, _Way.PAUSED, known)
        return False

    def curve(self, trial: TrialRecord) -> Curve:
        """The steps of the trial's run, and those at which it waits for a decision."""
        known = self._in_flight[trial.id].known
        decide_at = () if trial.id == self._finishing else self._rule.decide_at(trial.number)
        done = 0 if known is None else _step(known)
        rungs = self._settings.rungs
        return Curve(self._settings.max, self._metric.name, decide_at, done, self._rule.pauses, rungs)

    def hear(self, trial_id: int, report: Report, waits: bool) -> str:
        """Take a report. If the run ``waits``, returns why it ends, or an empty text if it goes on."""
        one = self._in_flight.get(trial_id)
        if one is None:  # from a thread that an objective left behind
            return ""
        if one.pace is None or one.pace.last.step != report.step:  # otherwise the store had failed
            stood = 0 if one.known is None else _step(one.known)
            pace = Pace.begun(report, stood) if one.pace is None else one.pace.heard(report)
            self._in_flight[trial_id] = one = replace(one, pace=pace)
            self._curves.add(trial_id, report)
        if not waits:
            return ""
        self._catch_up()
        decision = self._rule.decide(one.trial.number, report.step)
        if decision.verdict is Verdict.GO:
            return ""
        if decision.verdict is Verdict.PAUSE:
            self._in_flight[trial_id] = replace(one, way=_Way.PAUSING)
        return self._why(report.step, decision.reason)

    def reporter(self, trial: TrialRecord) -> Reporter:
        """The reporter for a trial that runs in this process."""
        return Reporter(self.curve(trial), partial(self.hear, trial.id))

    def write(self) -> None:
        """Write down what was reported since the last time."""
        self._curves.write()

    def settle(self, trial_id: int, outcome: Outcome) -> Outcome | None:
        """The outcome to record for a run that has ended; ``None`` if the trial is only paused."""
        self.write()
        one = self._in_flight[trial_id]
        if one.known is not None:
            outcome = replace(outcome, phases=added(one.known.phases, outcome.phases))
        if one.way is _Way.PAUSING and outcome.status is Status.PRUNED:
            self._in_flight[trial_id] = replace(one, way=_Way.PAUSED, known=outcome)
            return None
        return self._finished(trial_id, outcome)

    # -- trials that are paused ----------------------------------------------------------------

    @property
    def paused(self) -> int:
        """How many trials are in flight without being run."""
        return len(self._paused())

    def standing(self, trial_id: int) -> tuple[int, Outcome]:
        """The step after which a paused trial stopped, and its outcome so far, with its curve."""
        outcome = self.completed(trial_id, self._paused()[trial_id])
        return _step(outcome), outcome

    def promoted(self, closed: bool) -> list[TrialRecord]:
        """The paused trials to resume. ``closed``: no trial will be proposed any more."""
        paused = self._paused()
        going = self._rule.moves(closed).promoted if paused else ()
        chosen = [trial for i in paused if (trial := self._in_flight[i].trial).number in going]
        for trial in chosen:
            self._resume(trial.id)
        return chosen

    @property
    def finishing(self) -> bool:
        """Whether the rest of the time is left to one trial."""
        return self._finishing is not None

    def finish(self, left: float, whole: float) -> TrialRecord | None:
        """The paused trial to run to its end now, whatever others of its bracket do; mostly ``None``.

        That is the best of those at the furthest rung, once it needs all of the ``left`` seconds of the
        ``whole``, and no trial is complete. At least half of the whole goes to the search.
        """
        if self._finishing is None:
            best = min(self._paused().items(), key=self._place, default=(None, None))[0]
            pace = None if best is None else self._in_flight[best].pace
            if self._complete or pace is None:
                return None
            if left > min(MARGIN * pace.seconds_to(self._settings.max), whole / 2):
                return None
            self._finishing = best
        if self._finishing not in self._paused():
            return None
        return self._resume(self._finishing)

    def _place(self, paused: tuple[int, Outcome]) -> tuple[float, float]:
        """What a paused trial is ranked by: the furthest first, and the best of these."""
        _, outcome = paused
        value = self._sign * outcome.metrics[self._metric.name].value
        return -_step(outcome), math.inf if math.isnan(value) else value

    def _resume(self, trial_id: int) -> TrialRecord:
        """A paused trial runs again."""
        one = self._in_flight[trial_id]
        self._in_flight[trial_id] = replace(one, way=_Way.RUNNING, pace=None)
        return one.trial

    def stopped(self, closed: bool) -> list[tuple[int, Outcome]]:
        """The paused trials to end, by id, with their outcomes. ``closed`` as for :meth:`promoted`."""
        paused = self._paused()
        reasons = self._rule.moves(closed).stopped if paused else {}
        return self._release(
            {i: reasons[n] for i in paused if (n := self._in_flight[i].trial.number) in reasons}
        )

    def abandon(self, reason: str) -> list[tuple[int, Outcome]]:
        """End all paused trials; returns them as :meth:`stopped` does."""
        return self._release(dict.fromkeys(self._paused(), reason))

    def outdated(self, segment_id: int) -> list[tuple[int, Outcome]]:
        """End the paused trials that were begun with another source than that of this segment."""
        began = {i: self._in_flight[i].trial.segment_id for i in self._paused()}
        why = "the objective's source has changed"
        return self._release({i: why for i, segment in began.items() if segment != segment_id})

    def _paused(self) -> dict[int, Outcome]:
        """The outcome so far of each paused trial, by id, in the order in which they were given."""
        return {
            trial_id: one.known
            for trial_id, one in self._in_flight.items()
            if one.way is _Way.PAUSED and one.known is not None
        }

    def _release(self, reasons: Mapping[int, str]) -> list[tuple[int, Outcome]]:
        known = self._paused()
        ended = []
        for trial_id, reason in reasons.items():
            outcome = replace(known[trial_id], message=self._why(_step(known[trial_id]), reason))
            ended.append((trial_id, self._finished(trial_id, outcome)))
        return ended

    # -- what is known -------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Tell the rule what is new in the store, from any session."""
        self.write()
        for number, step, value in self._curves.news():
            self._rule.heard(number, step, self._sign * value)

    def _finished(self, trial_id: int, outcome: Outcome) -> Outcome:
        outcome = self.completed(trial_id, outcome)
        self.over(trial_id, outcome)
        return outcome

    def completed(self, trial_id: int, outcome: Outcome) -> Outcome:
        """The outcome of a run that has ended, with the trial's curve; may be called repeatedly."""
        if outcome.status is Status.LOST:
            self.write()
            return outcome
        self._catch_up()
        number = self._in_flight[trial_id].trial.number
        curve = [list(point) for point in self._curves.of(number)]
        facts: dict[str, object] = {**outcome.facts, STEPS: self._settings.max, CURVE: curve}
        if (last := self._curves.last(number)) is not None:
            facts[STEP] = last.step
        return replace(outcome, facts=facts)

    def over(self, trial_id: int, outcome: Outcome) -> None:
        """A run of a trial has ended with ``outcome``; one that is lost may be given again."""
        trial = self._in_flight.pop(trial_id).trial
        if outcome.status is not Status.LOST:
            self._end(trial.number, outcome.status, outcome.metrics)

    def lost(self, trial: TrialRecord) -> None:
        """A trial was lost and is not tried again here: others of its bracket need not wait for it."""
        if self._rule.pauses:
            self._rule.ended(trial.number, None)

    def _end(self, number: int, status: Status, metrics: Mapping[str, Estimate]) -> None:
        result = metrics.get(self._metric.name) if status is Status.OK else None
        self._complete = self._complete or result is not None
        self._rule.ended(number, None if result is None else self._sign * result.value)

    def _why(self, step: int, reason: str) -> str:
        return f"stopped after {step} of {self._settings.max} {self._settings.resource}: {reason}"


def _step(outcome: Outcome) -> int:
    step = outcome.facts.get(STEP)
    return step if isinstance(step, int) else 0
