"""Early stopping as the session does it: hear what trials report, write it down, and say which of them end.

A trial's way, where its rule pauses trials::

    given ──▶ running ──pause──▶ held ──promoted──▶ running ──▶ complete, or held again
                 │                 └──stopped──▶ pruned
                 └──stop──▶ pruned

Rules see only what is in the store, in the order in which it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby

from autotune.measure.outcome import Estimate, Outcome, Report
from autotune.measure.reports import Curve, Reporter
from autotune.session.rules import Board, Rule, Verdict
from autotune.space.spec import EarlyStopping, MetricSpec, StudySpec
from autotune.status import Status
from autotune.store.records import TrialRecord
from autotune.store.store import Store


def make_stopping(spec: StudySpec, store: Store, study_id: int, session_id: int) -> Stopping | None:
    """What the space file asks for, standing where the store's record leaves off; ``None`` for nothing."""
    settings = spec.search.early_stopping
    if settings is None:
        return None
    metric = next(m for m in spec.goals if settings.metric in ("", m.name))
    stopping = Stopping(settings, metric, make_rule(settings, metric), store, study_id)
    stopping.restore(store.trials(study_id, purpose="search"), session_id)
    return stopping


def make_rule(settings: EarlyStopping, metric: MetricSpec) -> Rule:
    """The rule of that policy."""
    from autotune.session import halving

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
    from autotune.session.pruners import OptunaRule

    return OptunaRule(settings, metric)


class Stopping:
    """The effects around a rule. Used by one thread, the session's."""

    def __init__(
        self, settings: EarlyStopping, metric: MetricSpec, rule: Rule, store: Store, study_id: int
    ) -> None:
        self._settings = settings
        self._metric = metric
        self._sign = -1.0 if metric.goal == "maximize" else 1.0
        self._rule = rule
        self._store = store
        self._study_id = study_id
        self._seen = 0
        """The last report of the store that the rule was told."""
        self._unwritten: list[tuple[int, Report]] = []
        self._board = Board(settings.rungs)
        """In the metric's own direction, for whoever learns from curves."""
        self._last: dict[int, Report] = {}
        """By number."""
        self._given: dict[int, TrialRecord] = {}
        """Those that this session runs, by id, as all below."""
        self._pausing: set[int] = set()
        self._heard: dict[int, int] = {}
        """The last step that each said."""
        self._held: dict[int, Outcome] = {}
        self._before: dict[int, Outcome] = {}
        """What is known of trials that go on after a pause."""
        self._silent = False
        """Whether it was said that nothing is reported, or not all."""

    def restore(self, trials: Sequence[TrialRecord], session_id: int) -> None:
        """Tell the rule the study so far. What another session is running is not in this one's brackets."""
        for trial in trials:
            if trial.status.finished or trial.session_id == session_id:
                self._rule.joined(trial.number)
        self._catch_up()
        for trial in trials:
            if trial.status.finished:
                self._end(trial.number, trial.status, trial.metrics)

    # -- trials that run -----------------------------------------------------------------------

    def give(self, trial: TrialRecord) -> bool:
        """A trial is to be run. ``False`` where it was lost in a pause, in which it stays for now."""
        self._given[trial.id] = trial
        self._rule.joined(trial.number)
        last = self._last.get(trial.number)
        if not self._rule.pauses or last is None:
            return True
        rungs = self._rule.decide_at(trial.number) or ()
        if not any(rung <= last.step for rung in rungs):
            return True
        stood = {name: Estimate.of_one(value) for name, value in last.metrics.items()}
        self._held[trial.id] = Outcome(Status.PRUNED, stood, facts={"step": last.step})
        return False

    def curve(self, trial: TrialRecord) -> Curve:
        """How the trial's run is followed."""
        decide_at = self._rule.decide_at(trial.number)
        done = _step(self._before[trial.id]) if trial.id in self._before else 0
        return Curve(self._settings.max, self._metric.name, decide_at, done, self._rule.pauses)

    def hear(self, trial_id: int, report: Report, waits: bool) -> str:
        """Take a report; where the run waits, write it down and say why it is to end, if it is."""
        if self._heard.get(trial_id) != report.step:  # else it is said again, for the store had failed
            self._heard[trial_id] = report.step
            self._unwritten.append((trial_id, report))
        if not waits:
            return ""
        self.write()
        self._catch_up()
        decision = self._rule.decide(self._given[trial_id].number, report.step)
        if decision.verdict is Verdict.GO:
            return ""
        if decision.verdict is Verdict.PAUSE:
            self._pausing.add(trial_id)
        return self._why(report.step, decision.reason)

    def reporter(self, trial: TrialRecord) -> Reporter:
        """For whoever runs the trial in this very process."""
        return Reporter(self.curve(trial), partial(self.hear, trial.id))

    def write(self) -> None:
        """Write down what was reported since the last time."""
        for trial_id, own in groupby(list(self._unwritten), key=lambda pair: pair[0]):
            made = [report for _, report in own]
            self._store.report(trial_id, made)
            del self._unwritten[: len(made)]  # now they stand in the store, and not before

    def settle(self, trial_id: int, outcome: Outcome) -> Outcome | None:
        """The outcome to be recorded of a run that has ended; ``None`` where the trial is only paused."""
        self.write()
        self._heard.pop(trial_id, None)
        before = self._before.pop(trial_id, None)
        if before is not None:
            outcome = replace(outcome, phases=_added(before.phases, outcome.phases))
        pausing = trial_id in self._pausing
        self._pausing.discard(trial_id)
        if pausing and outcome.status is Status.PRUNED:
            self._held[trial_id] = outcome
            return None
        return self._finished(trial_id, outcome)

    def remark(self, outcome: Outcome) -> str:
        """What the user should know after that outcome; empty for nothing, or nothing new."""
        if self._silent or outcome.status is not Status.OK or "reports" not in outcome.facts:
            return ""
        self._silent = outcome.facts["reports"] == 0 or _step(outcome) < self._settings.max
        if not self._silent:
            return ""
        if outcome.facts["reports"]:
            most, resource = self._settings.max, self._settings.resource
            return (
                f"a trial ended by itself before it reported step {most}, and its value counts as that of a"
                f" complete one: a trial has {most} {resource}, counted from 1 (run.steps, report.steps or"
                " AUTOTUNE_STEPS says how many)"
            )
        return (
            "a trial ended without any report, so early stopping has nothing to go by: call"
            f" report(step, {self._metric.name}=...) after each of its {self._settings.resource}, or print"
            f' {{"step": 1, "{self._metric.name}": ...}} on a line, and flush it'
        )

    # -- trials that are paused ----------------------------------------------------------------

    @property
    def pauses(self) -> bool:
        """Whether trials may be paused, so that somebody has to run them on."""
        return self._rule.pauses

    @property
    def paused(self) -> int:
        """How many trials are in flight without being run."""
        return len(self._held)

    def standing(self, trial_id: int) -> tuple[int, Outcome]:
        """The step after which a trial was paused, and what is known of it, with its curve."""
        outcome = self.completed(trial_id, self._held[trial_id])
        return _step(outcome), outcome

    def promoted(self, closed: bool) -> list[TrialRecord]:
        """Paused trials that are to be run on; ``closed``: no trial will be proposed any more."""
        going = self._rule.moves(closed).promoted if self._held else ()
        chosen = [trial for trial in map(self._given.__getitem__, list(self._held)) if trial.number in going]
        for trial in chosen:
            self._before[trial.id] = self._held.pop(trial.id)
        return chosen

    def stopped(self, closed: bool) -> list[tuple[int, Outcome]]:
        """Paused trials that are over, by id, with their outcome."""
        reasons = self._rule.moves(closed).stopped if self._held else {}
        return self._release({i: reasons[n] for i in self._held if (n := self._given[i].number) in reasons})

    def abandon(self, reason: str) -> list[tuple[int, Outcome]]:
        """End all that are paused."""
        return self._release(dict.fromkeys(self._held, reason))

    def _release(self, reasons: Mapping[int, str]) -> list[tuple[int, Outcome]]:
        ended = []
        for trial_id, reason in reasons.items():
            held = self._held.pop(trial_id)
            outcome = replace(held, message=self._why(_step(held), reason))
            ended.append((trial_id, self._finished(trial_id, outcome)))
        return ended

    # -- what is known -------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Tell the rule what stands in the store, from whichever session."""
        for record in self._store.reports(self._study_id, self._seen):
            self._seen = record.id
            number, report = record.number, record.report
            if self._metric.name in report.metrics:
                value = report.metrics[self._metric.name]
                self._last[number] = report
                self._board.heard(number, report.step, value)
                self._rule.heard(number, report.step, self._sign * value)

    def _finished(self, trial_id: int, outcome: Outcome) -> Outcome:
        outcome = self.completed(trial_id, outcome)
        self.over(trial_id, outcome)
        return outcome

    def completed(self, trial_id: int, outcome: Outcome) -> Outcome:
        """The outcome of a run that has ended, with the trial's curve beside it; may be asked for again."""
        self.write()
        if outcome.status is Status.LOST:
            return outcome
        self._catch_up()
        number = self._given[trial_id].number
        curve = [[rung, there[number]] for rung, there in self._board.values.items() if number in there]
        facts: dict[str, object] = {**outcome.facts, "steps": self._settings.max, "curve": curve}
        if number in self._last:
            facts["step"] = self._last[number].step
        return replace(outcome, facts=facts)

    def over(self, trial_id: int, outcome: Outcome) -> None:
        """A trial has come to its outcome; a lost one will be tried again."""
        self._heard.pop(trial_id, None)
        if outcome.status is not Status.LOST:
            self._end(self._given.pop(trial_id).number, outcome.status, outcome.metrics)

    def _end(self, number: int, status: Status, metrics: Mapping[str, Estimate]) -> None:
        result = metrics.get(self._metric.name) if status is Status.OK else None
        self._rule.ended(number, None if result is None else self._sign * result.value)

    def _why(self, step: int, reason: str) -> str:
        return f"stopped after {step} of {self._settings.max} {self._settings.resource}: {reason}"


def _step(outcome: Outcome) -> int:
    step = outcome.facts.get("step")
    return step if isinstance(step, int) else 0


def _added(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in {**one, **other}}
