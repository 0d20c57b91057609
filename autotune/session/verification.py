"""Does an answer still hold? Its configuration and the default measured again, here and now, interleaved.

What is compared is the speed-up over the default where there was one: both are read in the same rounds, so
that a machine that is slower today than it was then slows both. Two results agree where their difference is
explained by their intervals, taken as independent, and by the precision that the study asked for.
"""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from autotune.errors import InputError
from autotune.measure.compile_cache import cache_folder
from autotune.measure.outcome import Estimate, Outcome
from autotune.measure.significance import Ratio, speedup
from autotune.provenance.device import device_facts
from autotune.provenance.environment import Environment
from autotune.session.executor import Executor, make_executor
from autotune.session.finale import DEFAULT, Contender, Place, read_again, store_readings
from autotune.session.ledger import VERIFIED
from autotune.space.configuration import Configuration, FrozenMap, plain
from autotune.space.reader import parse_family, parse_spec
from autotune.space.spec import StudySpec
from autotune.status import Status
from autotune.store.records import SegmentRecord, StudyRecord
from autotune.store.store import Store

WINNER = "the recipe"

Verdict = Literal["agrees", "differs", "cannot be measured here"]
Interval = tuple[float, float, float]
"""Estimate, lower and upper end."""


@dataclass(frozen=True)
class Claim:
    """What was said of a configuration."""

    configuration: Configuration
    metric: Interval | None
    """Of the study's first goal; ``None``: nothing was said of it."""
    speedup: Interval | None
    """Over the default; ``None`` where there was no default to compare with, or it is the default."""


@dataclass(frozen=True)
class Verification:
    """What came of measuring again."""

    verdict: Verdict
    why: str
    """What agrees or differs, in words; or why it cannot be measured."""
    metric: str = ""
    unit: str = ""
    then: Mapping[str, Interval] = field(default_factory=dict)
    """``metric`` and ``speedup``, as far as they were said."""
    now: Mapping[str, Interval] = field(default_factory=dict)
    """``metric``, ``default`` (the same metric of the default) and ``speedup``, as far as they are known."""
    rounds: int = 0
    readings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Of the metric, by who was read."""

    def to_document(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "why": self.why,
            "metric": self.metric,
            "unit": self.unit,
            "then": {name: _document(interval) for name, interval in self.then.items()},
            "now": {name: _document(interval) for name, interval in self.now.items()},
            "rounds": self.rounds,
            "readings": {label: list(values) for label, values in self.readings.items()},
        }


Keep = Callable[[Sequence[Contender], Mapping[str, Outcome]], None]
"""Takes what was measured, to write it down."""


def verify(spec: StudySpec, claim: Claim, keep: Keep | None = None) -> Verification:
    """Measure the configuration of ``claim`` and the default of ``spec`` again, and compare.

    Raises nothing for what cannot be measured: that is an answer.
    """
    try:
        executor = make_executor(spec, compiled=cache_folder())
        with closing(executor), executor.aside():
            return measure_again(spec, claim, executor, keep)
    except InputError as error:
        return Verification("cannot be measured here", str(error))


def measure_again(
    spec: StudySpec, claim: Claim, executor: Executor, keep: Keep | None = None
) -> Verification:
    """The same with an executor that is there."""
    if claim.configuration not in spec.space:
        return Verification("cannot be measured here", "the space does not allow the configuration here")
    contenders = _contenders(spec, claim)
    rounds, outcomes = read_again(spec, executor, contenders)
    if keep is not None:
        keep(contenders, outcomes)
    outcome = outcomes[contenders[-1].label]
    goal = spec.goals[0]
    if outcome.status is not Status.OK or goal.name not in outcome.metrics:
        said = f": {outcome.message.splitlines()[0]}" if outcome.message else ""
        return Verification("cannot be measured here", f"it ends as {outcome.status} here{said}")
    then, now = _then(claim), _now(spec, contenders, outcomes)
    verdict, why = judge_again(then, now, spec.measure.precision, goal.goal or "minimize")
    readings = {c.label: tuple(c.values(goal.name)) for c in contenders}
    return Verification(verdict, why, goal.name, goal.unit, then, now, rounds, readings)


def _contenders(spec: StudySpec, claim: Claim) -> list[Contender]:
    """The default, where there is one, and last the configuration, which may be the default itself."""
    try:
        default = spec.space.default()
    except InputError:
        return [Contender(WINNER, claim.configuration)]
    if default == claim.configuration:
        return [Contender(DEFAULT, default)]
    return [Contender(DEFAULT, default), Contender(WINNER, claim.configuration)]


def _then(claim: Claim) -> dict[str, Interval]:
    said = {"metric": claim.metric, "speedup": claim.speedup}
    return {name: interval for name, interval in said.items() if interval is not None}


def _now(
    spec: StudySpec, contenders: Sequence[Contender], outcomes: Mapping[str, Outcome]
) -> dict[str, Interval]:
    goal = spec.goals[0]
    *others, own = contenders
    now = {"metric": _interval(outcomes[own.label].metrics[goal.name])}
    if others and outcomes[DEFAULT].status is Status.OK and goal.name in outcomes[DEFAULT].metrics:
        default = others[0]
        now["default"] = _interval(outcomes[DEFAULT].metrics[goal.name])
        try:
            ratio: Ratio = speedup(
                default.values(goal.name),
                own.values(goal.name),
                spec.measure.confidence,
                goal=goal.goal or "minimize",
            )
            now["speedup"] = (ratio.estimate, ratio.low, ratio.high)
        except ValueError:  # a metric that is not above 0 has no ratio
            pass
    return now


def _interval(estimate: Estimate) -> Interval:
    return estimate.value, estimate.low, estimate.high


# -- comparing ------------------------------------------------------------------------------------------


def judge_again(
    then: Mapping[str, Interval], now: Mapping[str, Interval], precision: float, goal: str
) -> tuple[Verdict, str]:
    """Whether what was said and what is measured agree, and in what not. Pure.

    ``precision``: the part by which two results may differ for whatever reason.
    """
    name = "speedup" if "speedup" in then and "speedup" in now else "metric"
    if name not in then:
        return "agrees", "nothing was said that could differ"
    what = "speed-up" if name == "speedup" else "measured value"
    if not apart(then[name], now[name], precision):
        return "agrees", f"the {what} is as it was"
    more = now[name][0] > then[name][0]
    better = more if name == "speedup" else more == (goal == "maximize")
    word = "better" if better else "worse"
    if name == "speedup" and now[name][1] <= 1.0:
        return "differs", "it is no better than the default any more"
    return "differs", f"the {what} is {word} than it was"


def apart(one: Interval, other: Interval, precision: float) -> bool:
    """Whether two results differ by more than their intervals and ``precision`` explain. Pure.

    The half-widths that face each other are added as those of independent errors are; on a logarithmic scale
    where all is above 0, since ratios and times scatter that way.
    """
    low, high = sorted((one, other), key=lambda interval: interval[0])
    if min(*low, *high) > 0:
        if not all(map(math.isfinite, (low[2], high[1]))):
            return False
        gap = math.log(high[0] / low[0])
        return gap > math.hypot(math.log(low[2] / low[0]), math.log(high[0] / high[1])) + precision
    scale = max(abs(low[0]), abs(high[0]))
    return high[0] - low[0] > math.hypot(low[2] - low[0], high[0] - high[1]) + precision * scale


# -- studies of a store ---------------------------------------------------------------------------------


def spec_for(text: str, path: Path, workload: Mapping[str, Any]) -> StudySpec:
    """What a space file searches for a workload, on this device. ``text`` is the file's, ``path`` its place.

    Raises :class:`InputError` where the text cannot be read, or knows no such workload.
    """
    facts = device_facts()
    for spec in parse_family(text, path, facts).specs:
        if plain(spec.workload) == plain(FrozenMap(workload)):
            return spec
    return parse_spec(text, path, facts, FrozenMap(workload))


def keeper(store: Store, study: StudyRecord, segment: SegmentRecord, environment: Environment) -> Keep:
    """Writes what was measured to the study, in a session of its own. Without a verdict: its answer stays."""

    def keep(contenders: Sequence[Contender], outcomes: Mapping[str, Outcome]) -> None:
        store.put_environment(environment.hash, environment.to_document())
        settings = {VERIFIED: [c.label for c in contenders]}
        session = store.open_session(study.id, settings, environment.hash, os.getpid(), socket.gethostname())
        try:
            store_readings(store, Place(study.id, session, segment.id), contenders, outcomes, 0)
        finally:
            store.close_session(session, "verified")

    return keep


def _document(interval: Interval) -> dict[str, float]:
    value, low, high = interval
    return {"value": value, "low": low, "high": high}
