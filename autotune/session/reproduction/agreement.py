"""Does a new measurement agree with the recorded result? What is compared with what, and the verdict.

Two results agree if their intervals, the spread of runs (:mod:`autotune.session.reproduction.replicates`)
and the precision that the study asked for explain their difference. Of a recipe, the speed-up over the
default is compared, which does not change if the machine is slower today; of a trial, the measured value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from autotune.measure.outcome import Outcome, Reading
from autotune.measure.rules.repetition import Goal
from autotune.measure.rules.significance import Ratio, over_runs, speedup
from autotune.measure.rules.statistics import estimate
from autotune.session.finale.contender import DEFAULT, Contender
from autotune.session.reproduction.causes import State, busier, state_of
from autotune.session.reproduction.paced import Past, SamePace, Series, at_same_pace, series_of
from autotune.session.reproduction.replicates import (
    Interval,
    Spread,
    apart,
    expected_spread,
    interval_of,
    resolution,
    widened,
)
from autotune.space.configuration import Configuration
from autotune.space.spec import MetricSpec, StudySpec, is_speed, ratio_title
from autotune.status import Status

WINNER = "the recipe"

Verdict = Literal["agrees", "differs", "cannot be told", "cannot be measured here"]
UNMEASURABLE: Verdict = "cannot be measured here"

Number = Literal["speedup", "metric"]
"""The number that decides: the ratio to the default, or the value of the first goal."""

WEAK = 0.25
"""If only a relative change larger than this would be noticed, agreement means nothing."""


@dataclass(frozen=True)
class Claim:
    """The recorded result of a configuration, which is measured again."""

    configuration: Configuration
    metric: Interval | None = None
    """The value of the study's first goal; ``None`` if it was not recorded."""
    speedup: Interval | None = None
    """Over the default; ``None`` if there was no default to compare with, or it is the default."""
    label: str = WINNER
    by: Number = "speedup"
    """Which of the two decides, if both are known."""
    status: Status = Status.OK
    """How it ended; a failure has none of the other results."""
    default: Interval | None = None
    """The value of the default in the same metric; it decides nothing."""
    replicates: Sequence[Sequence[float]] = ()
    """For each configuration that had several runs in the study, the metric in each run."""
    past: Past | None = None
    """The readings of the result; ``None`` if the pace of the machine is unknown or not comparable."""
    state: State | None = None
    """The state of the machine during the measurement; ``None`` if unknown."""


@dataclass(frozen=True)
class Run:
    """One run of a verification: the contenders that were read in it, and their outcomes by label."""

    contenders: Sequence[Contender]
    outcomes: Mapping[str, Outcome]
    rounds: int


@dataclass(frozen=True)
class Verification:
    """The result of measuring again."""

    verdict: Verdict
    why: str
    """What agrees or differs, in words; or why it cannot be measured."""
    metric: str = ""
    unit: str = ""
    goal: str = ""
    """``minimize`` or ``maximize``."""
    then: Mapping[str, Interval] = field(default_factory=dict)
    """``metric``, ``default`` and ``speedup``, as far as they were recorded."""
    now: Mapping[str, Interval] = field(default_factory=dict)
    """``metric``, ``default`` (the same metric of the default) and ``speedup``, as far as they are known, and
    ``at_pace``: what the metric would be at the pace that the machine had then."""
    noticeable: float | None = None
    """The smallest relative change that would have been noticed; ``None`` if unknown."""
    slower: float | None = None
    """The time that a core takes now for a fixed piece of work, relative to then; ``None`` if unknown."""
    runs: int = 0
    rounds: int = 0
    """The number of rounds in all runs together."""
    readings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """The values of the metric, by the contender's label."""
    taken: tuple[Reading, ...] = ()
    """Every reading of the configuration, with its context."""
    remark: str = ""
    """What to tell the user about the cores and GPUs that were used: with whom they are shared."""

    def to_document(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "why": self.why,
            "metric": self.metric,
            "unit": self.unit,
            "then": {name: _document(interval) for name, interval in self.then.items()},
            "now": {name: _document(interval) for name, interval in self.now.items()},
            "noticeable": self.noticeable,
            "slower": self.slower,
            "runs": self.runs,
            "rounds": self.rounds,
            "readings": {label: list(values) for label, values in self.readings.items()},
            "remark": self.remark,
        }


# -- comparing ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sides:
    """The number that decides, as it was recorded then and as it is measured now."""

    of: Number
    then: Interval
    now: Interval
    same_pace: bool = False
    """Whether both are converted to the same pace of the machine."""

    def noticeable(self, precision: float) -> float | None:
        """The smallest relative change that would have been noticed; ``None`` if unknown."""
        return resolution(self.then, self.now, precision)

    def widened(self, spread: Spread | None, confidence: float) -> Sides:
        """The same with both intervals at least as wide as runs of the same thing differ."""
        if spread is None:
            return self
        reach = spread.reach(confidence)
        then, now = (widened(side, reach, spread.logarithmic) for side in (self.then, self.now))
        return replace(self, then=then, now=now)


def compared(spec: StudySpec, claim: Claim, runs: Sequence[Run]) -> Verification:
    """Compare the runs with the claim.

    The number that decides is chosen, its intervals are widened to the spread of runs or converted to one
    pace of the machine, and the two sides are compared. If something speaks against the answer, it cannot
    be told.
    """
    goal, last = spec.goals[0], runs[-1].outcomes[claim.label]
    if claim.status.failed:
        return _same_failure(claim.status, last, len(runs))
    if last.status is not Status.OK or goal.name not in last.metrics:
        return Verification(UNMEASURABLE, f"it ends as {last.status} here{_message(last)}", runs=len(runs))
    default, own = (_read(runs, label, goal.name) for label in (DEFAULT, claim.label))
    taken = tuple(r for run in runs for c in run.contenders if c.label == claim.label for r in c.readings)
    then, now = _said(claim), _measured(spec, own, default)
    sides, paced = decisive(then, now, claim.by), _at_same_pace(spec, claim, runs)
    if paced is not None:
        sides = Sides("metric", paced.then, paced.now, same_pace=True)
        now["at_pace"] = paced.read
    elif sides is not None:
        sides = sides.widened(_spread(sides.of, claim, own, default), spec.measure.confidence)
    verdict, why = _answer(spec, claim, sides, now, state_of(taken))
    return Verification(
        verdict,
        why,
        goal.name,
        goal.unit,
        goal.direction,
        then,
        now,
        noticeable=sides.noticeable(spec.measure.precision) if sides else None,
        slower=paced.slower if paced else None,
        runs=len(runs),
        rounds=sum(run.rounds for run in runs),
        readings={
            label: tuple(value for run in read for value in run)
            for label, read in ((DEFAULT, default), (claim.label, own))
            if read
        },
        taken=taken,
    )


def _same_failure(then: Status, last: Outcome, runs: int) -> Verification:
    now, said = last.status, _message(last)
    if now is then:
        return Verification("agrees", f"it ends as {now}, as it did{said}", runs=runs)
    return Verification("differs", f"it ended as {then}, and ends as {now} now{said}", runs=runs)


def _message(outcome: Outcome) -> str:
    return f": {outcome.message.splitlines()[0]}" if outcome.message else ""


# -- what was said, and what is measured


def _said(claim: Claim) -> dict[str, Interval]:
    said = {"metric": claim.metric, "default": claim.default, "speedup": claim.speedup}
    return {name: interval for name, interval in said.items() if interval is not None}


def _read(runs: Sequence[Run], label: str, metric: str) -> list[list[float]]:
    """The values of ``label`` in each run; none at all if it failed in a run or was not in it."""
    found = []
    for run in runs:
        own = next((c for c in run.contenders if c.label == label), None)
        if own is None or run.outcomes[label].status is not Status.OK or not own.values(metric):
            return []
        found.append(own.values(metric))
    return found


def _measured(
    spec: StudySpec, own: Sequence[Sequence[float]], default: Sequence[Sequence[float]]
) -> dict[str, Interval]:
    """The numbers of a claim, by the readings of the runs now."""
    confidence = spec.measure.confidence
    now = {"metric": interval_of([v for run in own for v in run], confidence)}
    if default:
        now["default"] = interval_of([v for run in default for v in run], confidence)
        ratio = _ratio(default, own, confidence, spec.goals[0].direction)
        if ratio is not None:
            now["speedup"] = (ratio.estimate, ratio.low, ratio.high)
    return now


def _ratio(
    default: Sequence[Sequence[float]], own: Sequence[Sequence[float]], confidence: float, goal: Goal
) -> Ratio | None:
    """How much better ``own`` is, with each run counting once; ``None`` if a value is not above 0."""
    if len(own) > 1:
        found = over_runs(default, own, confidence, goal=goal)
        return found if isinstance(found, Ratio) else None
    try:
        return speedup(default[0], own[0], confidence, goal=goal)
    except ValueError:
        return None


# -- what is held against what


def decisive(
    then: Mapping[str, Interval], now: Mapping[str, Interval], by: Number = "speedup"
) -> Sides | None:
    """What decides: ``by``, or the other number if ``by`` is not known on both sides; else ``None``."""
    other: Number = "metric" if by == "speedup" else "speedup"
    return next((Sides(of, then[of], now[of]) for of in (by, other) if of in then and of in now), None)


def _spread(
    of: Number, claim: Claim, own: Sequence[Sequence[float]], default: Sequence[Sequence[float]]
) -> Spread | None:
    """By how much runs of the same thing differ.

    This is the spread of single runs. However many processes a replay had, it is as uncertain as one run,
    since they all ran at the same time.
    """
    middles = [estimate(values).value for values in own]
    if of == "metric":
        return expected_spread(claim.replicates, middles)
    return expected_spread((), [estimate(a).value / b for a, b in zip(default, middles, strict=True)])


def _at_same_pace(spec: StudySpec, claim: Claim, runs: Sequence[Run]) -> SamePace | None:
    """The two results at one pace of the machine; ``None`` unless every reading has the pace beside it."""
    if claim.past is None or claim.metric is None or claim.by != "metric":
        return None
    if not math.isclose(claim.past.then.middle, claim.metric[0], rel_tol=1e-6):
        return None  # the recorded value is not the median of its readings, so it cannot be converted
    own, default = (_series(runs, label, spec.goals[0].name) for label in (claim.label, DEFAULT))
    return at_same_pace(claim.past, own, [default], spec.measure.confidence) if own else None


def _series(runs: Sequence[Run], label: str, metric: str) -> list[Series]:
    """The readings of ``label`` in each run; none at all if one lacks the pace of the machine."""
    contenders = [contender for run in runs for contender in run.contenders if contender.label == label]
    found = [series_of(contender.readings, metric) for contender in contenders]
    known = [series for series in found if series is not None]
    return known if len(known) == len(found) else []


# -- the answer, and what speaks against it


def _answer(
    spec: StudySpec, claim: Claim, sides: Sides | None, now: Mapping[str, Interval], state: State
) -> tuple[Verdict, str]:
    """The verdict and why. ``now`` has all that is measured; ``state`` is that of the machine meanwhile."""
    if sides is None:
        return "agrees", "nothing was recorded that could differ"
    verdict, why = judge_again(sides, spec.measure.precision, spec.goals[0])
    if verdict == "agrees":
        doubt = _against_agreement(spec, claim, sides, now, why)
    else:
        doubt = _against_difference(spec, claim, sides, state, why)
    return ("cannot be told", doubt) if doubt else (verdict, why)


def judge_again(sides: Sides, precision: float, goal: MetricSpec) -> tuple[Verdict, str]:
    """Whether the two sides agree, or how they differ. Pure.

    ``precision`` is the relative difference that is always accepted.
    """
    ratio = sides.of == "speedup"
    what = ratio_title(goal.goal, goal.unit) if ratio else "measured value"
    pace = ", at the same pace of the machine" if sides.same_pace else ""
    if not apart(sides.then, sides.now, precision):
        return "agrees", f"the {what} is as it was{pace}"
    if ratio and sides.now[1] <= 1.0:
        return "differs", "it is no better than the default any more"
    more = sides.now[0] > sides.then[0]
    better = more if ratio else more == (goal.direction == "maximize")
    return "differs", f"the {what} is {'better' if better else 'worse'} than it was{pace}"


def _against_agreement(
    spec: StudySpec, claim: Claim, sides: Sides, now: Mapping[str, Interval], why: str
) -> str:
    """Why agreement cannot be told, since runs differ too much; empty if it can."""
    noticeable = sides.noticeable(spec.measure.precision)
    if noticeable is not None and noticeable > WEAK:
        return "runs of the same thing differ too much here, or did then"
    a_gain_was_said = claim.by == "speedup" and claim.speedup is not None and claim.speedup[1] > 1.0
    if a_gain_was_said and "speedup" in now and now["speedup"][1] <= 1.0:
        return f"{why}, but no gain over the default is shown now"
    return ""


def _against_difference(spec: StudySpec, claim: Claim, sides: Sides, state: State, why: str) -> str:
    """Why a difference cannot be told, since a busier machine may explain it; empty if it can."""
    goal = spec.goals[0]
    if not is_speed(goal.goal, goal.unit):
        return ""
    share, shows = busier(claim.state, state)
    longer = (sides.now[0] > sides.then[0]) == (goal.goal == "minimize")
    may_be = share > 0.0 and (sides.of == "speedup" or longer)
    if may_be and not apart(sides.then, sides.now, spec.measure.precision - math.log1p(-share)):
        return f"{why}, but the machine was busier: {shows}"
    return ""


def _document(interval: Interval) -> dict[str, float]:
    value, low, high = interval
    return {"value": value, "low": low, "high": high}
