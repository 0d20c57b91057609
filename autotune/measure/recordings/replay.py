"""Replays a recorded space: recorded readings and durations take the place of measurements.

Nothing is run and nothing sleeps. Every outcome has the fact ``replayed``, so that it cannot be taken for a
measurement on this machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from autotune.errors import InputError, Problem, nearest
from autotune.measure.objective import SIGNALS, Context, Infeasible, Objective, Signal
from autotune.measure.outcome import Outcome, Reading
from autotune.measure.recordings.formats import seconds_in
from autotune.measure.recordings.read import read_recording
from autotune.measure.recordings.recording import TIME, Entry, Recording
from autotune.measure.rules.bounds import beyond_bounds
from autotune.measure.rules.statistics import estimates
from autotune.provenance.code.files import is_file, is_folder
from autotune.space.configuration import Configuration, FrozenMap, Value, plain
from autotune.space.spec import MetricSpec, ReplayObjective, StudySpec
from autotune.status import Status

if TYPE_CHECKING:
    from autotune.space.space import Space


class RecordedCrash(Signal):
    """The recording says that the configuration crashed."""

    status = Status.CRASHED


class RecordedTimeout(Signal):
    """The recording says that the configuration was stopped at its time limit."""

    status = Status.TIMEOUT


_SIGNALS: Mapping[str, type[Signal]] = {
    **SIGNALS,
    RecordedCrash.status: RecordedCrash,
    RecordedTimeout.status: RecordedTimeout,
}

_PHASE_OF_FAILURE = {Status.INFEASIBLE: "prepare", Status.WRONG: "check"}


class ReplayedObjective(Objective):
    """Serves a recording.

    :meth:`outcome`, which the executor of replays calls, gives everything that is known of a configuration at
    once, with its recorded durations. As an ordinary objective it gives one recorded reading after another
    and starts over after the last, so more readings than were recorded say nothing new.

    ``metrics`` are those of the space file. The one named ``time`` is served from the raw readings, in
    its declared unit (seconds where it has none); any other from the single number that was recorded.
    Raises :class:`InputError` where a goal was not recorded.
    """

    def __init__(
        self,
        recording: Recording,
        metrics: tuple[MetricSpec, ...] = (MetricSpec(TIME, "minimize", "s"),),
        confidence: float = 0.95,
        context: Context | None = None,
    ) -> None:
        super().__init__(context or Context(FrozenMap({}), FrozenMap({}), Path()))
        self.recording = recording
        self.metrics = metrics
        self.confidence = confidence
        self._seconds = {
            metric.name: _unit_of_time(metric, recording) for metric in metrics if metric.name == TIME
        }
        recorded = {name for entry in recording.entries for name in entry.metrics}
        recorded |= {TIME for entry in recording.entries if entry.time is not None}
        problems = [_not_recorded(metric, recorded, recording) for metric in metrics if metric.goal]
        if any(problems):
            raise InputError([problem for problem in problems if problem])

    @classmethod
    def of(cls, spec: StudySpec, context: Context | None = None) -> ReplayedObjective:
        """The objective of a study that replays; :class:`InputError` where its file cannot be read."""
        recording = read_once(spec).recording
        return cls(recording, spec.metrics, spec.measure.confidence, context)

    def outcome(self, configuration: Mapping[str, Value]) -> Outcome:
        """What was recorded for a configuration: status, all readings, durations as phases."""
        facts: dict[str, object] = {"replayed": True, "recording": self.recording.path.name}
        entry = self.recording.find(configuration)
        if entry is None:
            message = _not_found(configuration, self.recording)
            return Outcome(Status.INFEASIBLE, message=message, phase="prepare", facts=facts)
        facts["recorded_framework_seconds"] = entry.framework_seconds
        phases = {
            "prepare": entry.compile_seconds,
            "check": entry.verification_seconds,
            "measure": entry.benchmark_seconds,
        }
        if entry.status.failed:
            phase = _PHASE_OF_FAILURE.get(entry.status, "measure")
            return Outcome(entry.status, phases=phases, message=_as_recorded(entry), phase=phase, facts=facts)
        readings = tuple(self._readings(entry))
        metrics = estimates(readings, self.confidence)
        otherwise = "" if entry.status is Status.OK else _as_recorded(entry)
        status, message = beyond_bounds(self.metrics, metrics) or (entry.status, otherwise)
        return Outcome(status, metrics, readings, phases, message=message, facts=facts)

    def recorded_readings(self, configuration: Mapping[str, Value]) -> int:
        """How many readings of the first goal there are before :meth:`measure` repeats itself.

        An interval from more readings than these would be too narrow, since repeated ones are no new
        evidence. For any metric but ``time`` there is one, however often the time was read.
        """
        entry = self.recording.find(configuration)
        if entry is None or entry.status.failed:
            return 0
        goal = next((metric.name for metric in self.metrics if metric.goal), TIME)
        return max(len(entry.readings), 1) if goal == TIME else 1

    # -- as an ordinary objective --------------------------------------------------------------

    @property
    def is_warm(self) -> bool:
        """True: a warm-up would use up a recorded reading, but each has to count before any is repeated."""
        return True

    warms_up = is_warm

    def prepare(self, configuration: Configuration) -> Configuration:
        entry = self.recording.find(configuration)
        if entry is None:
            raise Infeasible(_not_found(configuration, self.recording))
        if entry.status.failed:
            raise _SIGNALS[entry.status](_as_recorded(entry))
        return configuration

    def load(self, prepared: Any) -> Tape:
        entry = self.recording.find(prepared)
        if entry is None:
            raise Infeasible(_not_found(prepared, self.recording))
        return Tape(tuple(self._readings(entry)))

    def measure(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float]:
        assert isinstance(loaded, Tape)
        return loaded.next()

    def _readings(self, entry: Entry) -> Iterator[Reading]:
        """The readings of each metric of the study; ``at`` as if they had been taken back to back."""
        for metric in self.metrics:
            if metric.name == TIME and entry.time is not None:
                values = entry.readings or (entry.time,)
                for value, end in zip(values, accumulate(values), strict=True):
                    yield Reading(TIME, value / self._seconds[TIME], at=end - value)
            elif metric.name in entry.metrics:
                yield Reading(metric.name, entry.metrics[metric.name])


class Tape:
    """The recorded readings of one configuration, played from the start and over again."""

    def __init__(self, readings: tuple[Reading, ...]) -> None:
        self._values: dict[str, list[float]] = {}
        for reading in readings:
            self._values.setdefault(reading.metric, []).append(reading.value)
        self._place = 0

    def next(self) -> dict[str, float]:
        """The next reading of each metric."""
        found = {name: values[self._place % len(values)] for name, values in self._values.items()}
        self._place += 1
        return found


@dataclass(frozen=True)
class ReadReplay(ReplayObjective):
    """A replay whose file has been read, so that it need not be read again."""

    recording: Recording = field(kw_only=True, compare=False, repr=False)
    stamp: tuple[int, int] = field(kw_only=True, compare=False, repr=False)
    """The :func:`_stamp` of the file when it was read."""


def read_once(spec: StudySpec) -> ReadReplay:
    """The recording that a study replays; read only if it was not yet, or the file has changed since.

    Raises :class:`InputError` where its file cannot be read.
    """
    objective, file = spec.objective, _recorded_file(spec)
    assert isinstance(objective, ReplayObjective)  # _recorded_file refuses any other
    stamp = _stamp(file)
    if isinstance(objective, ReadReplay) and objective.stamp == stamp:
        return objective
    return ReadReplay(objective.file, objective.where, recording=read_recording(file), stamp=stamp)


def _stamp(file: Path) -> tuple[int, int]:
    """The time and size of ``file``, which change when somebody writes to it."""
    found = file.stat()
    return found.st_mtime_ns, found.st_size


def limit_to_recording(spec: StudySpec) -> StudySpec:
    """``spec`` with its space limited to the configurations that were recorded, and the recording in it.

    A success that lacks the number of a goal cannot be replayed, and is left out as well. The space may leave
    out knobs that have a single recorded value, and may be narrower than the recording. Raises
    :class:`InputError` where it has a knob that was not recorded, leaves out one that was varied, or holds
    no recorded configuration at all.
    """
    read = read_once(spec)
    recording = read.recording
    problems = _knob_problems(spec, recording)
    if problems:
        raise InputError(problems)
    goals = [metric.name for metric in spec.metrics if metric.goal]
    rows = list(_rows(spec.space, recording, goals))
    if not rows:
        raise InputError(
            Problem(
                f"the space {spec.name!r} holds none of the {len(recording.entries):,} configurations"
                f" of {recording.path}",
                hint="compare its values with the recorded ones: autotune import writes a space that fits",
            )
        )
    return replace(spec, space=spec.space.limited_to(rows), objective=read)


def _rows(space: Space, recording: Recording, goals: Sequence[str]) -> Iterator[Configuration]:
    """The recorded configurations that ``space`` allows, with values in its canonical form."""
    conditional = any(knob.when is not None for knob in space.knobs)
    forms: dict[tuple[str, bool, Value], Value | None] = {}
    for entry in recording.entries:
        if not entry.is_complete(goals):
            continue
        values: dict[str, Value] = {}
        for knob in space.knobs:
            if (given := entry.configuration.get(knob.name)) is None:
                continue
            key = (knob.name, isinstance(given, bool), given)
            if key not in forms:
                forms[key] = knob.canonical(given) if given in knob else None
            form = forms[key]
            if form is None:
                break
            values[knob.name] = form
        else:
            active = space.active(values) if conditional else [knob.name for knob in space.knobs]
            if not values.keys() >= set(active):  # a knob that is active here was not recorded
                continue
            configuration = Configuration({name: values[name] for name in active})
            if space.allows(configuration):
                yield configuration


def _knob_problems(spec: StudySpec, recording: Recording) -> list[Problem]:
    problems = []
    own = [knob.name for knob in spec.space.knobs]
    for name in own:
        if name not in recording.knobs:
            recorded = ", ".join(recording.knobs)
            message = f"the knob {name!r} was not recorded in {recording.path}"
            problems.append(Problem(message, expected=recorded, hint=nearest(name, recording.knobs)))
    for name, values in recording.knobs.items():
        if name not in own and len(values) > 1:
            problems.append(
                Problem(
                    f"the space lacks the knob {name!r}, which has {len(values)} values in {recording.path}",
                    hint="add it, if only with the one value that is wanted",
                )
            )
    return problems


def _recorded_file(spec: StudySpec) -> Path:
    if not isinstance(spec.objective, ReplayObjective):
        raise InputError(f"the study {spec.name!r} does not replay a recording")
    file, where = spec.objective.file, spec.objective.where
    if not (is_file(file) or is_folder(file)):
        beside = [path.name for path in file.parent.glob("*.json*")] if is_folder(file.parent) else []
        hint = nearest(file.name, beside) or "a path in a space file is relative to that file"
        raise InputError(Problem(f"there is no recording {file}", where, hint=hint))
    return file


def _unit_of_time(metric: MetricSpec, recording: Recording) -> float:
    seconds = seconds_in(metric.unit or "s")
    if seconds is None:
        message = f"the recorded time of {recording.path} cannot be given in {metric.unit!r}"
        raise InputError(Problem(message, expected="a unit of time: s, ms, us or ns"))
    return seconds


def _not_recorded(metric: MetricSpec, recorded: set[str], recording: Recording) -> Problem | None:
    if metric.name in recorded:
        return None
    names = sorted(recorded)
    return Problem(
        f"the metric {metric.name!r} was not recorded in {recording.path}",
        expected=", ".join(names),
        hint=nearest(metric.name, names),
    )


def _as_recorded(entry: Entry) -> str:
    return f"recorded as {entry.error or entry.status}"


def _not_found(configuration: Mapping[str, Value], recording: Recording) -> str:
    shown = ", ".join(f"{name}={plain(value)}" for name, value in configuration.items())
    return f"not in the recording {recording.path.name}: {shown}"
