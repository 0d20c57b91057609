"""When to stop reading one configuration. Pure: a rule is a function of the readings so far.

A :class:`RepetitionRule` composes small criteria, each of which looks at the same
:class:`Progress` and either has a reason to stop or has none. They are asked in this order:

==============  ==============================================================================
verdict         meaning
==============  ==============================================================================
``DIVERGED``      a reading is NaN or infinite: more of them cannot mend it
``PRECISE``       the interval is narrow enough
``STEADY``        the first readings are all the same number: there is no noise to average out
``REJECTED``      worse than the incumbent beyond doubt
``SETTLED``       the noise is known and too large for the precision ever to be reached
``CAPPED``        as many readings as are allowed
``BOUNDED``       a metric is past its bound beyond doubt (:mod:`autotune.measure.rules.bounds`)
==============  ==============================================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Literal, Protocol

from autotune.measure.outcome import Estimate
from autotune.measure.rules.statistics import check_confidence, estimate, exponential, relative_half_width

Goal = Literal["minimize", "maximize"]


class Verdict(StrEnum):
    """Whether to read on, and if not, why not."""

    CONTINUE = "continue"
    DIVERGED = "diverged"
    PRECISE = "precise"
    STEADY = "steady"
    REJECTED = "rejected"
    SETTLED = "settled"
    CAPPED = "capped"
    BOUNDED = "bounded"


@dataclass(frozen=True)
class Decision:
    """The verdict on the readings so far, and the reason for it in a sentence."""

    verdict: Verdict
    reason: str = ""

    @property
    def stop(self) -> bool:
        return self.verdict is not Verdict.CONTINUE


@dataclass(frozen=True)
class Progress:
    """What a criterion sees: the readings in the order taken, and what they are held against."""

    values: tuple[float, ...]
    confidence: float
    incumbent: Estimate | None
    goal: Goal

    @property
    def n(self) -> int:
        return len(self.values)

    @cached_property
    def relative_half_width(self) -> float:
        return self.relative_half_width_after(self.n)

    def relative_half_width_after(self, n: int) -> float:
        """As it was when only the first ``n`` readings had been taken."""
        return relative_half_width(estimate(self.values[:n], self.confidence)) if n else math.inf


class Criterion(Protocol):
    """One reason to stop."""

    @property
    def verdict(self) -> Verdict: ...

    def reason(self, progress: Progress) -> str:
        """Why to stop now, in a sentence; empty to read on."""


@dataclass(frozen=True)
class Unusable:
    """A reading that is no number."""

    verdict = Verdict.DIVERGED

    def reason(self, progress: Progress) -> str:
        bad = [value for value in progress.values if not math.isfinite(value)]
        return f"a reading is {bad[0]}" if bad else ""


@dataclass(frozen=True)
class NarrowEnough:
    """The half-width of the interval is within ``precision`` of the value.

    As one looks after every reading, the first narrow interval is at times a lucky one: in simulations, those
    of a nominal 95 % hold in 90 to 97 % of the cases; and in three of four, where the noise is such that only
    one trial in six becomes so narrow at all. For that reason the winner is read again, in rounds.
    """

    precision: float
    least: int
    verdict = Verdict.PRECISE

    def reason(self, progress: Progress) -> str:
        width = progress.relative_half_width
        if progress.n < self.least or width > self.precision:
            return ""
        return f"known to {width:.2%} after {progress.n} readings"


@dataclass(frozen=True)
class NoNoise:
    """The first readings are one and the same number, as a count or a simulated time is."""

    least: int = 3
    verdict = Verdict.STEADY

    def reason(self, progress: Progress) -> str:
        if progress.n < self.least or len(set(progress.values)) > 1:
            return ""
        return f"{progress.n} readings without any noise"


@dataclass(frozen=True)
class BeyondDoubt:
    """Worse than the incumbent, with at most ``doubt`` chance that it is in truth as good or better.

    The question is asked anew after every reading, so an ordinary test would err far more often than
    its level says. This is a test by betting (J. Ville 1939; I. Waudby-Smith and A. Ramdas,
    *Estimating means of bounded random variables by betting*, JRSS B 86, 2024). A player starts with
    1 and bets on each reading, at odds that are fair or worse if the configuration is as good as the
    incumbent. Then the probability that the purse *ever* reaches 1/doubt is at most ``doubt``, however
    often one looks.

    The player splits the purse over ``levels``. A pair ``(factor, share)`` is a bet that a reading
    is worse than the incumbent by more than ``factor``, which happens to a configuration that is as
    good in at most ``share`` of its readings. For the factor 1 that is the definition of the median and
    holds for any noise; the others assume that at most one reading in five is too slow by a half, and at
    most one in ten takes three times as long. With them a hopeless configuration is rejected after three
    or four readings, where the first alone needs nine.

    The incumbent counts as the far end of its own interval. Factors only mean something if that is
    positive; else the first level bets alone.
    """

    doubt: float = 0.01
    stake: float = 0.9
    """The part of a purse that is risked on each reading."""
    levels: tuple[tuple[float, float], ...] = ((1.0, 1 / 2), (1.5, 1 / 5), (3.0, 1 / 10))
    verdict = Verdict.REJECTED

    def reason(self, progress: Progress) -> str:
        if progress.incumbent is None or not progress.n:
            return ""
        wealth = sum(self._purse(progress, progress.incumbent, *level) for level in self.levels)
        if wealth / len(self.levels) < 1 / self.doubt:
            return ""
        return f"worse than the best so far beyond doubt after {progress.n} readings"

    def _purse(self, progress: Progress, incumbent: Estimate, factor: float, share: float) -> float:
        """What 1 has become by betting on every reading in turn."""
        lower_is_better = progress.goal == "minimize"
        bound = incumbent.high if lower_is_better else incumbent.low
        if factor > 1 and bound <= 0:
            return 1.0
        limit = bound * factor if lower_is_better else bound / factor
        won = sum(value > limit if lower_is_better else value < limit for value in progress.values)
        gain = 1 + self.stake * (1 / share - 1)
        # By logarithms: either power alone may be larger or smaller than a float can be.
        grown = won * math.log(gain) + (progress.n - won) * math.log1p(-self.stake)
        return exponential(grown)


@dataclass(frozen=True)
class NoiseSettled:
    """More readings will not reach the precision: the noise is known, and too large.

    The half-width shrinks as 1/sqrt(n). Once ``half-width * sqrt(n)`` has varied by no more than
    ``tolerance`` over the last ``window`` readings, it predicts the half-width at the cap; if that
    misses the precision, reading on is of little use. The idea is that of nvbench's stopping
    criterion, which also ends when its estimate of the noise no longer changes.
    """

    precision: float
    most: int
    window: int = 8
    tolerance: float = 0.1
    verdict = Verdict.SETTLED

    def reason(self, progress: Progress) -> str:
        n = progress.n
        if n < 3 * self.window:
            return ""
        noise = [progress.relative_half_width_after(k) * math.sqrt(k) for k in range(n - self.window, n + 1)]
        if not all(map(math.isfinite, noise)) or max(noise) > (1 + self.tolerance) * min(noise):
            return ""
        if min(noise) / math.sqrt(self.most) <= self.precision:
            return ""
        return f"the noise has settled: known to {progress.relative_half_width:.2%} after {n} readings"


@dataclass(frozen=True)
class Cap:
    """As many readings as are allowed."""

    most: int
    verdict = Verdict.CAPPED

    def reason(self, progress: Progress) -> str:
        return f"the cap of {self.most} readings" if progress.n >= self.most else ""


@dataclass(frozen=True)
class RepetitionRule:
    """When to stop reading a configuration; see the table at the top of the module.

    ``precision`` is the half-width of the confidence interval over the value at which to stop.
    ``reject=False`` reads every configuration to the end, however slow. Raises ``ValueError`` for
    numbers that make no sense.
    """

    precision: float = 0.01
    confidence: float = 0.95
    min_readings: int = 5
    max_readings: int = 100
    reject: bool = True

    def __post_init__(self) -> None:
        check_confidence(self.confidence)
        if not self.precision >= 0:
            raise ValueError(f"precision must be 0 or more, but it is {self.precision!r}")
        if not 1 <= self.min_readings <= self.max_readings:
            raise ValueError(
                "expected 1 <= min_readings <= max_readings,"
                f" but they are {self.min_readings} and {self.max_readings}"
            )

    @cached_property
    def criteria(self) -> tuple[Criterion, ...]:
        """What is asked after each reading, the first reason to stop deciding."""
        rejection: tuple[Criterion, ...] = (BeyondDoubt(),) if self.reject else ()
        return (
            Unusable(),
            NarrowEnough(self.precision, self.min_readings),
            NoNoise(),
            *rejection,
            NoiseSettled(self.precision, self.max_readings),
            Cap(self.max_readings),
        )

    def decide(
        self, values: Sequence[float], incumbent: Estimate | None = None, goal: Goal = "minimize"
    ) -> Decision:
        """Whether to read on after ``values``, the readings of the goal in the order taken."""
        progress = Progress(tuple(values), self.confidence, incumbent, goal)
        for criterion in self.criteria:
            reason = criterion.reason(progress)
            if reason:
                return Decision(criterion.verdict, reason)
        return Decision(Verdict.CONTINUE)
