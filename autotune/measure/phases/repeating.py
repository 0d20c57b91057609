"""Reading after reading of one configuration, until what is known of it is enough."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from autotune.measure.rules.worth import SHORT_SECONDS, Worth
from autotune.space.spec import MeasureSettings, MetricSpec, Share

UNSETTLED = "unsettled"
"""The reason given with a reading that does not count because the device had not run long enough to be
steady."""

FIRST_LOOK = 9
"""The most readings of a first look: as many as it takes to reject what is worse by less than a half."""

OFF_TOGETHER = 2.0
"""All readings of a configuration together may be off by so many of the standard deviations that they share.
(That of the incumbent is part of its interval.)"""

COMMON = 2.0
"""There is no use in a narrower interval than this half-width, in standard deviations that all readings
share."""

OVERLONG = 3.0
"""A first run that takes so many times as long as the best so far is ended. Simulated searches end equally
well with 2 or 5, as far as five seeds tell (benchmark ``slow_programs``)."""

_KNOWN = frozenset({Verdict.PRECISE, Verdict.STEADY, Verdict.SETTLED})
"""Verdicts that a configuration is known as well as it can be before the device is steady."""


@dataclass
class UnderTest:
    """A configuration that is being read, and what it is compared with."""

    goal: str
    trial: Trial
    meter: Meter
    loaded: Any
    rng: np.random.Generator
    incumbent: Estimate | None
    deadline: float
    paid: float
    """How many seconds it has cost before its first reading."""
    averaged: bool = False
    """Whether one of its readings was already an average of many."""

    def __post_init__(self) -> None:
        self.began = monotonic()
        if self.values:  # a warm-up that counts
            self.began -= self.meter.clock.last_seconds
        # What the check has read is not among the readings to repeat.
        checked, readings = self.trial.checked, self.trial.readings
        own = (i for i, r in enumerate(readings) if r.metric not in checked and not r.discarded)
        self.first = next(own, len(readings))
        """The place of the first reading that counts: a warm-up that does, or else the next one."""

    @property
    def values(self) -> list[float]:
        """The readings of the goal that count."""
        return self.trial.values(self.goal)


class Repetition:
    """Reads what one ``objective`` has loaded, until the rule of the ``settings`` says stop.

    A trial gets the ``share`` of the search's time that :class:`~autotune.measure.rules.worth.Worth` allows.
    """

    def __init__(
        self, objective: Objective, metrics: tuple[MetricSpec, ...], settings: MeasureSettings, share: Share
    ) -> None:
        self._objective = objective
        self._metrics = metrics
        self._goal = next(metric for metric in metrics if metric.goal)
        self._settings = settings
        # A user who wants every configuration read to the end does not want slow ones to be read less.
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
        """Whether one reading is enough, by what was read so far; never if the user asked for more."""
        return self._steadiness.noiseless and self._settings.min_readings is None

    def is_slow(self, seconds: float, paid: float) -> bool:
        """Whether one reading of so many ``seconds`` is, as a rule, all that a configuration is worth."""
        return bool(self._worth.enough(1, seconds, seconds, paid, beaten=True))

    def rehearse(self) -> None:
        """Decide once on made-up readings."""
        self._rule.decide((1.0, 1.1))

    def read(self, tested: UnderTest) -> Decision:
        """Add readings to its trial until they are enough, and return why they are.

        No reading is begun that would not end by the deadline.
        """
        decision: Decision | None = None
        if self._objective.unsettled:
            # If its readings still count after it has settled, they may be enough.
            decision = self._first_look(tested) or self._known_enough(tested, tested.incumbent)
        elif tested.values:  # of a warm-up
            decision = self._known_enough(tested, tested.incumbent)
        while decision is None:
            decision = self._take_one(tested, tested.incumbent) or self._out_of_reach(tested)
        noisy = self._is_noisy(tested.trial)
        if noisy or decision.verdict is Verdict.STEADY:
            self._steadiness.note(len(tested.values), noisy)
        return decision

    def _take_one(self, tested: UnderTest, incumbent: Estimate | None) -> Decision | None:
        """Take a reading and keep it; returns why it was the last one, or ``None``."""
        trial, before = tested.trial, len(tested.trial.readings)
        self._objective.worth_seconds = self._worth_seconds(tested, incumbent)
        try:
            sample = tested.meter.take(tested.loaded, tested.rng)
        finally:
            self._objective.worth_seconds = math.inf
        trial.keep(sample, tested.meter.clock.at)
        if self._objective.averaged and not tested.averaged:
            tested.averaged = True
            # Readings from before the objective began to average are single ones, and no longer count.
            trial.set_aside(tested.first, UNSETTLED, before)
        return (
            _overlong(sample.values[tested.goal]) if sample.cut_off else self._known_enough(tested, incumbent)
        )

    def _first_look(self, tested: UnderTest) -> Decision | None:
        """Look whether it is far worse than the incumbent; if not, let the device become steady.

        Returns why it was rejected; ``None`` if it was not. If the device had to be run for that, the
        readings so far no longer count.
        """
        if self._rule.reject and tested.incumbent is not None:
            rejected = self._held_against(tested, tested.incumbent.off_by(self._objective.unsettled))
            if rejected is not None:
                return rejected
        if self._objective.settle(tested.loaded):
            tested.trial.set_aside(tested.first, UNSETTLED)
        return None

    def _held_against(self, tested: UnderTest, incumbent: Estimate) -> Decision | None:
        """Why a few readings are enough, against an ``incumbent`` taken to be as doubtful as they are."""
        decision: Decision | None = None
        for _ in range(min(FIRST_LOOK, self._settings.max_readings)):
            decision = self._take_one(tested, incumbent)
            if decision is not None:
                break
        count = len(tested.values)
        full = count >= self._settings.max_readings
        if decision is not None and decision.verdict not in _KNOWN and not full:
            return decision
        known = decision is not None or count >= self._settings.fewest
        if known and self._is_clearly_worse(tested, incumbent):
            return Decision(
                Verdict.REJECTED, "worse than the best so far by more than a first look may be off"
            )
        return None

    # -- when it is enough ---------------------------------------------------------------------

    def _known_enough(self, tested: UnderTest, incumbent: Estimate | None) -> Decision | None:
        """Why the readings so far are enough: by the rule, a bound, the deadline or its share of the time."""
        values, late = tested.values, tested.meter.is_late(tested.deadline)
        if not values:
            tested.trial.must_go_on(late)
            return None
        if self._objective.averaged and len(values) >= (self._settings.min_readings or 1):
            return Decision(
                Verdict.PRECISE, f"known to {COMMON * self._objective.shared_error:.2%} as it was read"
            )
        rule = self._rule
        if (enough := COMMON * self._objective.shared_error) > rule.precision:
            # While all readings may be off together, knowing their middle better hardly helps.
            rule = replace(rule, precision=enough)
        decision = rule.decide(values, incumbent, self._goal.direction)
        if decision.stop:
            return decision
        if self.noiseless and self._steadiness.enough(len(values)) and not self._is_noisy(tested.trial):
            count = "a single reading" if len(values) == 1 else f"{len(values)} readings"
            return Decision(Verdict.STEADY, f"{count}, as those before were without any noise")
        if reason := beyond_doubt(self._metrics, tested.trial.values):
            return Decision(Verdict.BOUNDED, reason)
        if spoilt := tested.trial.stays_spoilt:
            return Decision(Verdict.CAPPED, spoilt)
        if late:
            return Decision(Verdict.CAPPED, f"the time limit allows {len(values)} readings")
        beaten = incumbent is not None and self._is_worse(values, incumbent)
        last = tested.meter.clock.last_seconds
        reason = self._worth.enough(len(values), monotonic() - tested.began, last, tested.paid, beaten=beaten)
        return Decision(Verdict.CAPPED, reason) if reason else None

    def _out_of_reach(self, tested: UnderTest) -> Decision | None:
        """Why it is rejected: it is worse than the incumbent by more than the readings of both may be off.

        ``None`` if it is not, or if readings have nothing in common that may be off.
        """
        shared = self._objective.shared_error
        if not (shared and self._rule.reject) or tested.incumbent is None:
            return None
        if len(tested.values) < self._settings.fewest:
            return None
        if not self._is_clearly_worse(tested, tested.incumbent.off_by(OFF_TOGETHER * shared)):
            return None
        return Decision(Verdict.REJECTED, "worse than the best so far by more than its readings may be off")

    def _worth_seconds(self, tested: UnderTest, incumbent: Estimate | None) -> float:
        """How long a run may take if its time is the goal; infinite if nothing is to be rejected.

        Only a first run is rejected by itself: if one comes after a shorter one and takes three times as
        long, it was disturbed, as short ones often are. What several runs mean is for the rule to decide.
        """
        if incumbent is None or not self._rule.reject or self._goal.goal == "maximize" or tested.values:
            return math.inf
        most = OVERLONG * incumbent.high
        return most if most > SHORT_SECONDS else math.inf

    def _is_noisy(self, trial: Trial) -> bool:
        """Whether its readings differ in any metric."""
        return any(len(set(trial.values(metric.name))) > 1 for metric in self._metrics)

    def _is_worse(self, values: Sequence[float], than: Estimate) -> bool:
        """Whether the estimate of ``values`` is worse."""
        found = estimate(values, self._settings.confidence).value
        return found < than.value if self._goal.goal == "maximize" else found > than.value

    def _is_clearly_worse(self, tested: UnderTest, than: Estimate) -> bool:
        """Whether the intervals of what was read and of ``than`` lie apart."""
        found = estimate(tested.values, self._settings.confidence)
        return found.high < than.low if self._goal.goal == "maximize" else found.low > than.high


def _overlong(seconds: float) -> Decision:
    reason = f"ended after {seconds:.3g} s, {OVERLONG:g} times as long as the best so far takes"
    return Decision(Verdict.REJECTED, reason)
