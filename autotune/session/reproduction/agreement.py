"""Does what is measured now agree with what was said then? What is held against what, and why.

Two results agree where their intervals, the spread of runs (:mod:`autotune.session.reproduction.replicates`)
and the precision that the study asked for explain their difference. A recipe is held against the speed-up
that it promised, which a machine that is slower today does not change; a trial against the value that was
measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    apart,
    expected_spread,
    interval_of,
    resolution,
    widened,
)
from autotune.space.configuration import Configuration
from autotune.space.spec import StudySpec, is_speed, ratio_title
from autotune.status import Status

WINNER = "the recipe"

Verdict = Literal["agrees", "differs", "cannot be told", "cannot be measured here"]
UNMEASURABLE: Verdict = "cannot be measured here"

WEAK = 0.25
"""Where only a larger change than this part would be noticed, to find none says nothing."""


@dataclass(frozen=True)
class Claim:
    """What was said of a configuration."""

    configuration: Configuration
    metric: Interval | None = None
    """Of the study's first goal; ``None``: nothing was said of it."""
    speedup: Interval | None = None
    """Over the default; ``None`` where there was no default to compare with, or it is the default."""
    label: str = WINNER
    by: Literal["speedup", "metric"] = "speedup"
    """Which of the two decides, where both were said."""
    status: Status = Status.OK
    """How it ended; of a failure nothing else is said."""
    default: Interval | None = None
    """What the default came to in the same metric; decides nothing."""
    replicates: Sequence[Sequence[float]] = ()
    """The metric in earlier runs of the study, for each configuration that had several."""
    past: Past | None = None
    """The readings behind it; ``None``: the pace of the machine is not known, or not comparable."""
    state: State | None = None
    """What the machine did while it was measured; ``None``: not known."""


@dataclass(frozen=True)
class Run:
    """One run of a verification: who was read in it, and what came of each by its label."""

    contenders: Sequence[Contender]
    outcomes: Mapping[str, Outcome]
    rounds: int


@dataclass(frozen=True)
class Verification:
    """What came of measuring again."""

    verdict: Verdict
    why: str
    """What agrees or differs, in words; or why it cannot be measured."""
    metric: str = ""
    unit: str = ""
    goal: str = ""
    """``minimize`` or ``maximize``."""
    then: Mapping[str, Interval] = field(default_factory=dict)
    """``metric``, ``default`` and ``speedup``, as far as they were said."""
    now: Mapping[str, Interval] = field(default_factory=dict)
    """``metric``, ``default`` (the same metric of the default) and ``speedup``, as far as they are known, and
    ``at_pace``: what the metric would be at the pace that the machine had then."""
    noticeable: float | None = None
    """The smallest change that would have been noticed, as a part of the value; ``None``: not known."""
    slower: float | None = None
    """How often as long as then a core takes now for the same piece of work; ``None``: not known."""
    runs: int = 0
    rounds: int = 0
    """Of all runs."""
    readings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Of the metric, by who was read."""
    taken: tuple[Reading, ...] = ()
    """Every reading of the configuration, with its context."""
    remark: str = ""
    """What the reader should know of the cores and GPUs it was measured on: whom they are shared with."""

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


def compared(spec: StudySpec, claim: Claim, runs: Sequence[Run]) -> Verification:
    """What the runs say of the claim."""
    last = runs[-1].outcomes[claim.label]
    goal = spec.goals[0]
    said = f": {last.message.splitlines()[0]}" if last.message else ""
    if claim.status.failed:
        return _same_failure(claim.status, last.status, said, len(runs))
    if last.status is not Status.OK or goal.name not in last.metrics:
        return Verification(UNMEASURABLE, f"it ends as {last.status} here{said}", runs=len(runs))
    read = {label: _read(runs, label, goal.name) for label in (DEFAULT, claim.label)}
    then, now = _then(claim), _now(spec, claim, runs)
    paced = _at_same_pace(spec, claim, runs)
    wide = _as_runs_differ(spec, claim, runs, then, now)
    taken = tuple(r for run in runs for c in run.contenders if c.label == claim.label for r in c.readings)
    verdict, why, noticeable = _judged(spec, claim, *wide, paced, state_of(taken))
    if verdict == "agrees" and _gain_is_not_shown(claim, now):
        verdict, why = "cannot be told", f"{why}, but no gain over the default is shown now"
    if paced is not None:
        now["at_pace"] = paced.read
    return Verification(
        verdict,
        why,
        goal.name,
        goal.unit,
        goal.goal or "minimize",
        then,
        now,
        noticeable=noticeable,
        slower=None if paced is None else paced.slower,
        runs=len(runs),
        rounds=sum(run.rounds for run in runs),
        readings={label: tuple(v for run in values for v in run) for label, values in read.items() if values},
        taken=taken,
    )


def _gain_is_not_shown(claim: Claim, now: Mapping[str, Interval]) -> bool:
    """Whether a gain was said, and what is measured now may be none: runs differ too much to confirm it."""
    if claim.by != "speedup" or claim.speedup is None or "speedup" not in now:
        return False
    return claim.speedup[1] > 1.0 >= now["speedup"][1]


def _same_failure(then: Status, now: Status, said: str, runs: int) -> Verification:
    if now is then:
        return Verification("agrees", f"it ends as {now}, as it did{said}", runs=runs)
    return Verification("differs", f"it ended as {then}, and ends as {now} now{said}", runs=runs)


def _read(runs: Sequence[Run], label: str, metric: str) -> list[list[float]]:
    """The readings of ``label`` in each run; nothing where it failed in one, or was not there."""
    found = []
    for run in runs:
        own = next((c for c in run.contenders if c.label == label), None)
        if own is None or run.outcomes[label].status is not Status.OK or not own.values(metric):
            return []
        found.append(own.values(metric))
    return found


def _then(claim: Claim) -> dict[str, Interval]:
    said = {"metric": claim.metric, "default": claim.default, "speedup": claim.speedup}
    return {name: interval for name, interval in said.items() if interval is not None}


def _now(spec: StudySpec, claim: Claim, runs: Sequence[Run]) -> dict[str, Interval]:
    goal, confidence = spec.goals[0], spec.measure.confidence
    own, default = (_read(runs, label, goal.name) for label in (claim.label, DEFAULT))
    now = {"metric": interval_of([v for run in own for v in run], confidence)}
    if default:
        now["default"] = interval_of([v for run in default for v in run], confidence)
        ratio = _ratio(default, own, confidence, goal.goal or "minimize")
        if ratio is not None:
            now["speedup"] = (ratio.estimate, ratio.low, ratio.high)
    return now


def _ratio(
    default: Sequence[Sequence[float]], own: Sequence[Sequence[float]], confidence: float, goal: Goal
) -> Ratio | None:
    """How much better ``own`` is, each run counting once; ``None``: what is not above 0 has no ratio."""
    if len(own) > 1:
        found = over_runs(default, own, confidence, goal=goal)
        return found if isinstance(found, Ratio) else None
    try:
        return speedup(default[0], own[0], confidence, goal=goal)
    except ValueError:
        return None


def _at_same_pace(spec: StudySpec, claim: Claim, runs: Sequence[Run]) -> SamePace | None:
    """The two results at one pace of the machine, where it is known beside every reading."""
    if claim.past is None or claim.metric is None or claim.by != "metric":
        return None
    if not math.isclose(claim.past.then.middle, claim.metric[0], rel_tol=1e-6):
        return None  # the value that is said is not that of its readings, so it is held against as it is
    own, default = (_series(runs, label, spec.goals[0].name) for label in (claim.label, DEFAULT))
    return at_same_pace(claim.past, own, [default], spec.measure.confidence) if own else None


def _series(runs: Sequence[Run], label: str, metric: str) -> list[Series]:
    """The readings of ``label`` in each run; nothing where the pace is not known beside each."""
    contenders = [contender for run in runs for contender in run.contenders if contender.label == label]
    found = [series_of(contender.readings, metric) for contender in contenders]
    known = [series for series in found if series is not None]
    return known if len(known) == len(found) else []


def _as_runs_differ(
    spec: StudySpec,
    claim: Claim,
    runs: Sequence[Run],
    then: Mapping[str, Interval],
    now: Mapping[str, Interval],
) -> tuple[dict[str, Interval], dict[str, Interval]]:
    """Both at least as wide as runs of the same thing differ.

    A replay counts as one more run, however many processes it had: they had one moment in common.
    """
    goal, confidence = spec.goals[0], spec.measure.confidence
    own, default = (_medians(_read(runs, label, goal.name)) for label in (claim.label, DEFAULT))
    spreads = {"metric": expected_spread(claim.replicates, own)}
    if "speedup" in now:
        spreads["speedup"] = expected_spread((), [a / b for a, b in zip(default, own, strict=True)])
    wide_then, wide_now = dict(then), dict(now)
    for name, spread in spreads.items():
        if spread is not None:
            reach = spread.reach(confidence)
            for intervals in (wide_then, wide_now):
                if name in intervals:
                    intervals[name] = widened(intervals[name], reach, spread.logarithmic)
    return wide_then, wide_now


def _judged(
    spec: StudySpec,
    claim: Claim,
    then: Mapping[str, Interval],
    now: Mapping[str, Interval],
    paced: SamePace | None,
    state: State,
) -> tuple[Verdict, str, float | None]:
    """The verdict, why, and the smallest change that would have been noticed.

    A trial's value is held against another at the same pace of the machine, where that is known. ``state``:
    what the machine did meanwhile.
    """
    goal, precision = spec.goals[0], spec.measure.precision
    order = (claim.by, "metric" if claim.by == "speedup" else "speedup")
    if paced is not None:
        then, now = {"metric": paced.then}, {"metric": paced.now}
    title = ratio_title(goal.goal, goal.unit)
    verdict, why = judge_again(then, now, precision, goal.goal or "minimize", order, title)
    if paced is not None:
        why += ", at the same pace of the machine"
    name = next((name for name in order if name in then and name in now), None)
    noticeable = resolution(then[name], now[name], precision) if name else None
    if verdict == "agrees" and noticeable is not None and noticeable > WEAK:
        verdict, why = "cannot be told", "runs of the same thing differ too much here, or did then"
    if verdict == "differs" and name and is_speed(goal.goal, goal.unit):
        share, shows = busier(claim.state, state)
        slower = name == "speedup" or (now[name][0] > then[name][0]) == (goal.goal == "minimize")
        if share and slower and not apart(then[name], now[name], precision - math.log1p(-share)):
            verdict, why = "cannot be told", f"{why}, but the machine was busier: {shows}"
    return verdict, why, noticeable


def _medians(runs: Sequence[Sequence[float]]) -> list[float]:
    return [estimate(values).value for values in runs]


def judge_again(
    then: Mapping[str, Interval],
    now: Mapping[str, Interval],
    precision: float,
    goal: str,
    order: Sequence[str] = ("speedup", "metric"),
    title: str = "speed-up",
) -> tuple[Verdict, str]:
    """Whether what was said and what is measured agree, and in what not. Pure.

    ``precision``: the part by which two results may differ for whatever reason. ``order``: what decides; the
    second only where the first is not known on both sides. ``title``: the name of the ratio
    to the default.
    """
    name = next((name for name in order if name in then and name in now), None)
    if name is None:
        return "agrees", "nothing was said that could differ"
    what = title if name == "speedup" else "measured value"
    if not apart(then[name], now[name], precision):
        return "agrees", f"the {what} is as it was"
    more = now[name][0] > then[name][0]
    better = more if name == "speedup" else more == (goal == "maximize")
    word = "better" if better else "worse"
    if name == "speedup" and now[name][1] <= 1.0:
        return "differs", "it is no better than the default any more"
    return "differs", f"the {what} is {word} than it was"


def _document(interval: Interval) -> dict[str, float]:
    value, low, high = interval
    return {"value": value, "low": low, "high": high}
