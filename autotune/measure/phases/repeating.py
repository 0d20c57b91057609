"""Reading after reading of one configuration, until what is known of it is enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autotune.measure.clocks import monotonic
from autotune.measure.objective import Objective
from autotune.measure.outcome import Estimate
from autotune.measure.phases.gathering import Trial
from autotune.measure.phases.meter import Meter
from autotune.measure.rules.bounds import beyond_doubt
from autotune.measure.rules.repetition import Decision, RepetitionRule, Verdict
from autotune.measure.rules.statistics import estimate
from autotune.measure.rules.steadiness import Steadiness
from autotune.measure.rules.worth import Worth
from autotune.space.spec import MeasureSettings, MetricSpec, Share

UNSETTLED = "unsettled"
"""Why a reading does not count before which the device had not run for long enough to stay as it was."""

FIRST_LOOK = 9
"""Readings of a first look at most: as many as it takes to reject what is worse by less than a half."""

OFF_TOGETHER = 2.0
"""Standard deviations that what a configuration's readings have in common may take it too far. That of the
incumbent is in its interval."""

COMMON = 2.0
"""How many times a standard deviation in common the half-width of an interval of 95 % is to be at most."""

OVERLONG = 3.0
"""A run that takes so many times as long as the best so far is ended. With 2 or 5 in its place simulated
searches end as well, as far as five seeds tell (benchmark ``slow_programs``)."""

_KNOWN = frozenset({Verdict.PRECISE, Verdict.STEADY, Verdict.SETTLED})
"""Verdicts on a configuration that is as well known as it can be before it has settled."""


class Repetition:
    """Reads what was loaded of one ``objective``, until the rule of the ``settings`` says stop.

    Of the search's time a trial gets the ``share`` that :class:`~autotune.measure.rules.worth.Worth` allows.
    """

    def __init__(
        self, objective: Objective, metrics: tuple[MetricSpec, ...], settings: MeasureSettings, share: Share
    ) -> None:
        self._objective = objective
        self._metrics = metrics
        self._goal = next(metric for metric in metrics if metric.goal)
        self._settings = settings
        # Who wants each configuration read to the end wants no slow one read less.
        fewest = settings.min_readings if settings.reject else settings.fewest
        self._worth = Worth(share, fewest)
        self._steadiness = Steadiness()
        self._rule = RepetitionRule(
            settings.precision,
            settings.confidence,
            settings.fewest,
            settings.max_readings,
            settings.reject,
        )

    @property
    def noiseless(self) -> bool:
        """Whether a single reading says all, by what was read so far; not where the user asked for more."""
        return self._steadiness.noiseless and self._settings.min_readings is None

    def is_slow(self, seconds: float, paid: float) -> bool:
        """Whether a reading of so many ``seconds`` is, as a rule, all that a configuration is worth."""
        return bool(self._worth.enough(1, seconds, seconds, paid, beaten=True))

    def rehearse(self) -> None:
        """Decide once on made-up readings."""
        self._rule.decide((1.0, 1.1))

    def read(
        self,
        trial: Trial,
        meter: Meter,
        loaded: Any,
        rng: np.random.Generator,
        incumbent: Estimate | None,
        deadline: float,
        paid: float = 0.0,
    ) -> Decision:
        """Keep readings in ``trial``, none that would not end by ``deadline``; why they were enough.

        ``paid``: seconds that the trial has cost before.
        """
        began, first, averaged = monotonic(), self._first_that_counts(trial), False
        decision: Decision | None = None
        if trial.values(self._goal.name):  # a warm-up that counts
            began -= meter.clock.last_seconds

        def known_enough(incumbent: Estimate | None) -> Decision | None:
            spent, last = monotonic() - began, meter.clock.last_seconds
            return self._decide(trial, incumbent, meter.is_late(deadline)) or self._share_of_time(
                trial, incumbent, spent, last, paid
            )

        def take_one(incumbent: Estimate | None) -> Decision | None:
            nonlocal averaged
            before = len(trial.readings)
            self._objective.worth_seconds = self._worth_seconds(incumbent)
            try:
                sample = meter.take(loaded, rng)
            finally:
                self._objective.worth_seconds = math.inf
            trial.keep(sample, meter.clock.at)
            if self._objective.averaged and not averaged:
                averaged = True
                trial.set_aside(first, UNSETTLED, before)  # of before it came to where readings are averaged
            return _overlong(sample.values[self._goal.name]) if sample.cut_off else known_enough(incumbent)

        if self._objective.unsettled:
            # Where its readings count, they may be enough now that it has settled.
            decision = self._first_look(trial, loaded, first, incumbent, take_one) or known_enough(incumbent)
        elif trial.values(self._goal.name):
            decision = known_enough(incumbent)
        while decision is None:
            decision = take_one(incumbent) or self._out_of_reach(trial, incumbent)
        noisy = self._is_noisy(trial)
        if noisy or decision.verdict is Verdict.STEADY:
            self._steadiness.note(len(trial.values(self._goal.name)), noisy)
        return decision

    def _first_that_counts(self, trial: Trial) -> int:
        """A warm-up that does, or the one that is next. What the check has read is another matter."""
        own = (i for i, r in enumerate(trial.readings) if r.metric not in trial.checked and not r.discarded)
        return next(own, len(trial.readings))

    def _is_noisy(self, trial: Trial) -> bool:
        """Whether its readings differ, in any metric."""
        return any(len(set(trial.values(metric.name))) > 1 for metric in self._metrics)

    def _worth_seconds(self, incumbent: Estimate | None) -> float:
        """How long a run may take that is measured by that; any time where nothing is to be rejected."""
        if incumbent is None or not self._rule.reject or self._goal.goal == "maximize":
            return math.inf
        return OVERLONG * incumbent.high

    def _out_of_reach(self, trial: Trial, incumbent: Estimate | None) -> Decision | None:
        """That it is worse than the incumbent by more than both may be off; asked where they may be."""
        shared = self._objective.shared_error
        if not (shared and self._rule.reject) or incumbent is None:
            return None
        if len(trial.values(self._goal.name)) < self._settings.fewest:
            return None
        if not self._is_clearly_worse(trial, incumbent.off_by(OFF_TOGETHER * shared)):
            return None
        return Decision(Verdict.REJECTED, "worse than the best so far by more than its readings may be off")

    def _first_look(
        self,
        trial: Trial,
        loaded: Any,
        first: int,
        incumbent: Estimate | None,
        read: Callable[[Estimate | None], Decision | None],
    ) -> Decision | None:
        """Why it is not to be settled: far worse than the incumbent, say. ``None``: it was.

        Its readings from the ``first`` on do not count then.
        """
        decision: Decision | None = None
        asked = incumbent if self._rule.reject else None
        doubtful = asked.off_by(self._objective.unsettled) if asked is not None else None
        for _ in range(min(FIRST_LOOK, self._settings.max_readings) if doubtful is not None else 0):
            decision = read(doubtful)
            if decision is not None:
                break
        count = len(trial.values(self._goal.name))
        full = count >= self._settings.max_readings
        if decision is not None and decision.verdict not in _KNOWN and not full:
            return decision
        known = decision is not None or count >= self._settings.fewest
        if doubtful is not None and known and self._is_clearly_worse(trial, doubtful):
            return Decision(
                Verdict.REJECTED, "worse than the best so far by more than a first look may be off"
            )
        if self._objective.settle(loaded):
            trial.set_aside(first, UNSETTLED)
        return None

    def _is_worse(self, values: Sequence[float], than: Estimate) -> bool:
        """Whether the middle of ``values`` is."""
        found = estimate(values, self._settings.confidence).value
        return found < than.value if self._goal.goal == "maximize" else found > than.value

    def _is_clearly_worse(self, trial: Trial, than: Estimate) -> bool:
        """Whether the intervals of what was read and of ``than`` lie apart."""
        found = estimate(trial.values(self._goal.name), self._settings.confidence)
        return found.high < than.low if self._goal.goal == "maximize" else found.low > than.high

    def _decide(self, trial: Trial, incumbent: Estimate | None, late: bool) -> Decision | None:
        """Why the readings so far are enough: by the rule, a bound, its end; ``None`` where they are not."""
        values = trial.values(self._goal.name)
        if not values:
            trial.must_go_on(late)
            return None
        if self._objective.averaged and len(values) >= (self._settings.min_readings or 1):
            return Decision(
                Verdict.PRECISE, f"known to {COMMON * self._objective.shared_error:.2%} as it was read"
            )
        rule = self._rule
        if (enough := COMMON * self._objective.shared_error) > rule.precision:
            # Beside what all readings have in common, to know their middle better hardly helps.
            rule = replace(rule, precision=enough)
        decision = rule.decide(values, incumbent, self._goal.goal or "minimize")
        if decision.stop:
            return decision
        if self.noiseless and self._steadiness.enough(len(values)) and not self._is_noisy(trial):
            count = "a single reading" if len(values) == 1 else f"{len(values)} readings"
            return Decision(Verdict.STEADY, f"{count}, as those before were without any noise")
        if reason := beyond_doubt(self._metrics, trial.values):
            return Decision(Verdict.BOUNDED, reason)
        if spoilt := trial.stays_spoilt:
            return Decision(Verdict.CAPPED, spoilt)
        if late:
            return Decision(Verdict.CAPPED, f"the time limit allows {len(values)} readings")
        return None

    def _share_of_time(
        self, trial: Trial, incumbent: Estimate | None, spent: float, last: float, paid: float
    ) -> Decision | None:
        """That it has had its share of the time; ``None`` where it has not."""
        values = trial.values(self._goal.name)
        if not values:
            return None
        beaten = incumbent is not None and self._is_worse(values, incumbent)
        reason = self._worth.enough(len(values), spent, last, paid, beaten=beaten)
        return Decision(Verdict.CAPPED, reason) if reason else None


def _overlong(seconds: float) -> Decision:
    reason = f"ended after {seconds:.3g} s, {OVERLONG:g} times as long as the best so far takes"
    return Decision(Verdict.REJECTED, reason)
