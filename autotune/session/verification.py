"""Does a result still hold? Its configuration and the default measured again, here and now, interleaved.

It is measured in several *runs*, each with processes of its own, in which the two are read in rounds: so what
differs from process to process is seen and not taken for a change. Two results agree where their intervals,
the spread of runs (:mod:`autotune.session.replicates`) and the precision that the study asked for explain
their difference.

A recipe is held against the speed-up that it promised, which a machine that is slower today does not change;
a trial against the value that was measured of it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from autotune.errors import AutotuneError, InputError
from autotune.measure.compile_cache import cache_folder
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.measure.significance import Ratio, speedup
from autotune.measure.statistics import estimate
from autotune.provenance.device import device_facts
from autotune.provenance.environment import Environment
from autotune.session.executor import Executor, make_executor
from autotune.session.finale import DEFAULT, Contender, Place, Rounds, read_again, store_readings
from autotune.session.ledger import VERIFIED
from autotune.session.replicates import Interval, apart, expected_spread, resolution, widened
from autotune.space.configuration import Configuration, FrozenMap, plain
from autotune.space.reader import parse_family, parse_spec
from autotune.space.spec import StudySpec
from autotune.status import Status
from autotune.store.records import SegmentRecord, StudyRecord
from autotune.store.store import Store

WINNER = "the recipe"

RUNS, TRAINING_RUNS = 5, 3
"""In how many processes each is read; the second where a reading is a whole training."""

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
    then: Mapping[str, Interval] = field(default_factory=dict)
    """``metric``, ``default`` and ``speedup``, as far as they were said."""
    now: Mapping[str, Interval] = field(default_factory=dict)
    """``metric``, ``default`` (the same metric of the default) and ``speedup``, as far as they are known."""
    noticeable: float | None = None
    """The smallest change that would have been noticed, as a part of the value; ``None``: not known."""
    runs: int = 0
    rounds: int = 0
    """Of all runs."""
    readings: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Of the metric, by who was read."""
    taken: tuple[Reading, ...] = ()
    """Every reading of the configuration, with its context."""

    def to_document(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "why": self.why,
            "metric": self.metric,
            "unit": self.unit,
            "then": {name: _document(interval) for name, interval in self.then.items()},
            "now": {name: _document(interval) for name, interval in self.now.items()},
            "noticeable": self.noticeable,
            "runs": self.runs,
            "rounds": self.rounds,
            "readings": {label: list(values) for label, values in self.readings.items()},
        }


Keep = Callable[[Run], None]
"""Takes what a run measured, to write it down."""


def verify(spec: StudySpec, claim: Claim, keep: Keep | None = None, runs: int | None = None) -> Verification:
    """Measure the configuration of ``claim`` and the default of ``spec`` again, and compare.

    ``runs``: in how many processes; ``None``: as many as suit the objective. Raises nothing for what cannot
    be measured: that is an answer.
    """
    try:
        executor = make_executor(spec, compiled=cache_folder())
        with closing(executor), executor.aside():
            return measure_again(spec, claim, executor, keep, runs)
    except InputError as error:
        return Verification(UNMEASURABLE, str(error))


def measure_again(
    spec: StudySpec, claim: Claim, executor: Executor, keep: Keep | None = None, runs: int | None = None
) -> Verification:
    """The same with an executor that is there."""
    if claim.configuration not in spec.space:
        return Verification(UNMEASURABLE, "the space does not allow the configuration here")
    made: list[Run] = []
    wanted = _suitable(spec) if runs is None else runs
    while len(made) < (1 if claim.status.failed else wanted):
        contenders = _contenders(spec, claim)
        rounds, outcomes = read_again(spec, executor, contenders, Rounds.of(spec).split(wanted))
        made.append(Run(contenders, outcomes, rounds))
        if keep is not None:
            keep(made[-1])
        if outcomes[claim.label].status is not Status.OK:
            break
    return _compared(spec, claim, made)


def _suitable(spec: StudySpec) -> int:
    return RUNS if spec.search.early_stopping is None else TRAINING_RUNS


def _contenders(spec: StudySpec, claim: Claim) -> list[Contender]:
    """The default, where there is one, and last the configuration, which may be the default itself."""
    own = Contender(claim.label, claim.configuration)
    try:
        default = spec.space.default()
    except InputError:
        return [own]
    if default == claim.configuration or claim.status.failed:
        return [own]
    return [Contender(DEFAULT, default), own]


# -- comparing ------------------------------------------------------------------------------------------


def _compared(spec: StudySpec, claim: Claim, runs: Sequence[Run]) -> Verification:
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
    wide_then, wide_now = _as_runs_differ(spec, claim, runs, then, now)
    order = (claim.by, "metric" if claim.by == "speedup" else "speedup")
    verdict, why = judge_again(wide_then, wide_now, spec.measure.precision, goal.goal or "minimize", order)
    name = next((name for name in order if name in then and name in now), None)
    noticeable = resolution(wide_then[name], wide_now[name], spec.measure.precision) if name else None
    if verdict == "agrees" and noticeable is not None and noticeable > WEAK:
        verdict, why = "cannot be told", "runs of the same thing differ too much here, or did then"
    return Verification(
        verdict,
        why,
        goal.name,
        goal.unit,
        then,
        now,
        noticeable=noticeable,
        runs=len(runs),
        rounds=sum(run.rounds for run in runs),
        readings={label: tuple(v for run in values for v in run) for label, values in read.items() if values},
        taken=tuple(r for run in runs for c in run.contenders if c.label == claim.label for r in c.readings),
    )


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
    now = {"metric": _interval(estimate([v for run in own for v in run], confidence))}
    if default:
        now["default"] = _interval(estimate([v for run in default for v in run], confidence))
        try:
            ratio: Ratio = speedup(
                [v for run in default for v in run],
                [v for run in own for v in run],
                confidence,
                goal=goal.goal or "minimize",
            )
            now["speedup"] = (ratio.estimate, ratio.low, ratio.high)
        except ValueError:  # a metric that is not above 0 has no ratio
            pass
    return now


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


def _medians(runs: Sequence[Sequence[float]]) -> list[float]:
    return [estimate(values).value for values in runs]


def judge_again(
    then: Mapping[str, Interval],
    now: Mapping[str, Interval],
    precision: float,
    goal: str,
    order: Sequence[str] = ("speedup", "metric"),
) -> tuple[Verdict, str]:
    """Whether what was said and what is measured agree, and in what not. Pure.

    ``precision``: the part by which two results may differ for whatever reason. ``order``: what decides; the
    second only where the first is not known on both sides.
    """
    name = next((name for name in order if name in then and name in now), None)
    if name is None:
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


def _interval(estimate: Estimate) -> Interval:
    return estimate.value, estimate.low, estimate.high


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


class Keeper:
    """Writes runs to a study, in a session of their own. Without a verdict: the study's answer stays.

    ``said`` stands beside the label in the reason of each trial that it writes. A store that fails costs the
    keeping, not the answer: :attr:`kept` says which it was. Close it in the end.
    """

    def __init__(
        self,
        url: str | None,
        study: StudyRecord,
        segment: SegmentRecord,
        environment: Environment,
        said: Mapping[str, object] | None = None,
    ) -> None:
        self._url, self._study, self._segment = url, study, segment
        self._environment = environment
        self._said = {} if said is None else said
        self._store: Store | None = None
        self._session = 0
        self._runs = 0
        self._failure = ""

    @property
    def kept(self) -> str:
        """Where the readings are, or why they are nowhere."""
        if self._failure:
            return f"not kept: {self._failure}"
        return f"kept as trials of {self._study.label}" if self._runs else "none were taken"

    def __call__(self, run: Run) -> None:
        if self._failure:
            return
        try:
            if self._store is None:
                self._store = self._begin(run)
            place = Place(self._study.id, self._session, self._segment.id)
            said = {**self._said, "run": self._runs}
            environment = self._environment.hash
            store_readings(self._store, place, run.contenders, run.outcomes, 0, said, environment)
            self._runs += 1
        except AutotuneError as error:
            self._failure = str(error)

    def _begin(self, run: Run) -> Store:
        store = Store.open(self._url)
        try:
            store.put_environment(self._environment.hash, self._environment.to_document())
            settings = {VERIFIED: [c.label for c in run.contenders]}
            own = (self._environment.hash, os.getpid(), socket.gethostname())
            self._session = store.open_session(self._study.id, settings, *own)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        if self._store is None:
            return
        try:
            self._store.close_session(self._session, "verified")
        except AutotuneError as error:
            self._failure = self._failure or str(error)
        finally:
            self._store.close()


def _document(interval: Interval) -> dict[str, float]:
    value, low, high = interval
    return {"value": value, "low": low, "high": high}
