"""Recorded spaces: what another tuner measured, read from its files.

Two formats are known. A *Kernel Tuner cache file* has one entry a configuration under ``cache``, times
in milliseconds, and a text such as ``RuntimeFailedConfig`` in the place of a time where it failed. A
*T4 file*, the exchange format of auto-tuners, has a list of ``results`` that name their units. Either
may be gzipped, and cut short by a crash: all complete entries count, and :attr:`Recording.damage` says
that there were more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeGuard

from autotune.errors import InputError, Problem, nearest
from autotune.measure.salvage import salvage
from autotune.space.configuration import Configuration, Value, freeze
from autotune.status import Status

NO_TIME = 1e19
"""A time from here on is what an earlier Kernel Tuner wrote down for a failure (1e20), in any unit."""

MOST_PROBLEMS = 10
"""How many broken entries are named before the rest is counted."""

STATUSES: Mapping[str, Status] = {
    # Kernel Tuner's failure classes. Its InvalidConfig is one that the device cannot launch.
    "InvalidConfig": Status.INFEASIBLE,
    "CompilationFailedConfig": Status.INFEASIBLE,
    "RuntimeFailedConfig": Status.CRASHED,
    "CorrectnessFailedConfig": Status.WRONG,
    "VerificationFailedConfig": Status.WRONG,
    "TimeoutFailedConfig": Status.TIMEOUT,
    "TimeoutConfig": Status.TIMEOUT,
    "OutOfMemoryConfig": Status.OUT_OF_MEMORY,
    # The values of T4's ``invalidity``.
    "correct": Status.OK,
    "constraints": Status.INFEASIBLE,
    "compile": Status.INFEASIBLE,
    "runtime": Status.CRASHED,
    "correctness": Status.WRONG,
    "timeout": Status.TIMEOUT,
}
"""What the words for a failure in either format mean here; any other word means ``crashed``."""

UNITS: Mapping[str, float] = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    # 'miliseconds' is what Kernel Tuner's own T4 files say.
    **dict.fromkeys(("ms", "msec", "millisecond", "milliseconds", "milisecond", "miliseconds"), 1e-3),
    **dict.fromkeys(("us", "µs", "μs", "usec", "microsecond", "microseconds"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nanosecond", "nanoseconds"), 1e-9),
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
}
"""Seconds in each unit of time, by its name in lower case."""

FINISHED = frozenset(str(status) for status in Status if status.finished)

_DURATIONS = ("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time")
_OF_THE_ENTRY = frozenset({"time", "times", "timestamp", "__error__", *_DURATIONS})
"""What an entry of a Kernel Tuner cache holds besides its knobs; all other numbers are metrics."""


@dataclass(frozen=True)
class Entry:
    """One recorded configuration. All times are in seconds; a failure has no ``time``."""

    configuration: Configuration
    status: Status
    time: float | None = None
    """The time that the recording states, usually the mean of the readings; also ``None`` in a T4 file
    that is about something else."""
    readings: tuple[float, ...] = ()
    """The raw readings in the order taken; empty where only their mean was kept."""
    compile_seconds: float = 0.0
    verification_seconds: float = 0.0
    benchmark_seconds: float = 0.0
    framework_seconds: float = 0.0
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Other recorded numbers (``GFLOP/s``, energy), in the recording's own units."""
    error: str = ""
    """The recording's word for the failure."""


@dataclass(frozen=True)
class Recording:
    """A recorded space: the only configurations that exist, and what came of each."""

    path: Path
    form: Literal["kernel-tuner", "t4"]
    kernel: str
    device: str
    """The recorded device's name; empty where the recording does not say."""
    knobs: Mapping[str, tuple[Value, ...]]
    """The values of each knob, in the recording's order; also those of knobs with a single value."""
    units: Mapping[str, str]
    """The unit of each metric in the file: ``time`` (converted to seconds here), and others."""
    entries: tuple[Entry, ...]
    """In the order recorded; of a configuration that is there twice, the later one."""
    damage: str = ""
    """What is wrong with the file, where it was cut short; empty where it is whole."""

    @cached_property
    def _by_key(self) -> dict[tuple[object, ...], Entry]:
        return {self._key(entry.configuration): entry for entry in self.entries}

    def _key(self, configuration: Mapping[str, Value]) -> tuple[object, ...]:
        only = {name: values[0] for name, values in self.knobs.items() if len(values) == 1}
        chosen = [configuration.get(name, only.get(name)) for name in self.knobs]
        return _key(chosen)

    def find(self, configuration: Mapping[str, Value]) -> Entry | None:
        """The entry of a configuration; ``None`` where it was not recorded.

        Knobs with a single value may be left out, and ``16.0`` finds what was recorded for ``16``.
        """
        return self._by_key.get(self._key(configuration))


def read_recording(path: str | Path) -> Recording:
    """Read a Kernel Tuner cache file or a T4 file, gzipped or not, whole or cut short.

    Raises :class:`InputError` saying what the file lacks where it is neither, or holds no complete entry.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(Problem(f"cannot read the recording {path}: {error.strerror or error}")) from error
    salvaged = salvage(data, frozenset({"cache", "results"}))
    document = salvaged.document
    if isinstance(document.get("cache"), dict):
        reader: _Reader = _KernelTuner(path, document)
    elif isinstance(document.get("results"), list):
        reader = _T4(path, document)
    else:
        raise _unknown_form(path, document, salvaged.damage)
    recording = reader.read(salvaged.damage)
    if not recording.entries:
        after = f": {salvaged.damage}" if salvaged.damage else ""
        raise InputError(Problem(f"the recording {path} holds no complete configuration{after}"))
    return recording


def _key(values: Iterable[object]) -> tuple[object, ...]:
    """What makes the values of two configurations the same: 16 is 16.0, 1 is not True."""
    return tuple((isinstance(value, bool), value) for value in values)


def seconds_in(unit: str) -> float | None:
    """Seconds in a unit of time, by any of its usual names; ``None`` for something else."""
    return UNITS.get(unit.strip().lower())


def _unknown_form(path: Path, document: Mapping[str, object], damage: str) -> InputError:
    known = ("cache", "results")
    hints = [nearest(name, known) for name in document]
    return InputError(
        Problem(
            f"{path} is no recording that can be read" + (f": {damage}" if damage else ""),
            expected="a Kernel Tuner cache file (a JSON object with 'tune_params' and 'cache')"
            " or a T4 file (one with 'results')",
            hint=next((hint for hint in hints if hint), ""),
        )
    )


class _Reader:
    """What reading either format has in common: knobs, numbers, and problems named by entry."""

    form: Literal["kernel-tuner", "t4"]

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        self.path = path
        self.document = document
        self.problems: list[Problem] = []
        self.units: dict[str, str] = {}

    def read(self, damage: str) -> Recording:
        raise NotImplementedError

    def bad(self, label: str, what: str, expected: str = "") -> None:
        self.problems.append(Problem(f"{self.path}: {label} {what}", expected=expected))

    def finish(self, knobs: Knobs, entries: Iterable[Entry | None], damage: str) -> Recording:
        """The recording; raises :class:`InputError` for what was found on the way."""
        found = {_key(entry.configuration.values()): entry for entry in entries if entry is not None}
        if self.problems:
            more = len(self.problems) - MOST_PROBLEMS
            rest = [Problem(f"{self.path}: {more} more entries are broken")] if more > 0 else []
            raise InputError(self.problems[:MOST_PROBLEMS] + rest)
        return Recording(
            path=self.path,
            form=self.form,
            kernel=_text(self.document.get("kernel_name")),
            device=_text(self.document.get("device_name")),
            knobs=knobs.ordered_values(),
            units=self.units,
            entries=tuple(found.values()),
            damage=damage,
        )


class Knobs:
    """The knobs of a recording with their values, each value in one canonical form.

    ``16`` and ``16.0`` are one value, ``1`` and ``True`` are two. Values that were not declared but
    occur in an entry are added. The declared order stands; numbers that nobody ordered are sorted.
    """

    def __init__(self, declared: Mapping[str, Sequence[object]]) -> None:
        self._known: dict[str, dict[tuple[bool, Value], Value]] = {name: {} for name in declared}
        for name, values in declared.items():
            for value in values:
                self.canonical(name, value)
        self._rising = {name: values == _sorted(values) for name, values in self.values().items()}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._known)

    def canonical(self, name: str, value: object) -> Value:
        frozen = freeze(value)
        return self._known[name].setdefault((isinstance(frozen, bool), frozen), frozen)

    def configuration(self, given: Mapping[str, object]) -> Configuration:
        """``KeyError`` for a missing knob, ``TypeError`` for what no knob can be set to."""
        return Configuration({name: self.canonical(name, given[name]) for name in self._known})

    def values(self) -> dict[str, tuple[Value, ...]]:
        return {name: tuple(known.values()) for name, known in self._known.items()}

    def ordered_values(self) -> dict[str, tuple[Value, ...]]:
        """As :meth:`values`, with numbers in rising order wherever the declared ones were."""
        return {name: _sorted(v) if self._rising[name] else v for name, v in self.values().items()}


def _sorted(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """``values`` in rising order where all are numbers, else as they are."""
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    return tuple(sorted(numbers)) if len(numbers) == len(values) else values


class _KernelTuner(_Reader):
    """A cache file of Kernel Tuner, of any version so far. Its times are in milliseconds."""

    form = "kernel-tuner"

    def read(self, damage: str) -> Recording:
        self.units["time"] = "ms"
        knobs = Knobs(self._declared())
        entries = [self._entry(key, entry, knobs) for key, entry in self.document["cache"].items()]
        return self.finish(knobs, entries, damage)

    def _declared(self) -> dict[str, list[object]]:
        keys = self.document.get("tune_params_keys")
        values = self.document.get("tune_params")
        if not isinstance(values, dict):
            values = {}
        if not isinstance(keys, list):
            keys = list(values)
        if not keys or not all(isinstance(key, str) for key in keys):
            raise InputError(
                Problem(
                    f"{self.path} does not say what its knobs are",
                    expected="'tune_params_keys', the names of the knobs, and 'tune_params', their values",
                )
            )
        declared = {key: values[key] if isinstance(values.get(key), list) else [] for key in keys}
        for key, listed in declared.items():
            try:
                freeze(listed)
            except TypeError as error:
                raise InputError(Problem(f"{self.path}: 'tune_params' of {key!r}: {error}")) from None
        return declared

    def _entry(self, key: str, entry: object, knobs: Knobs) -> Entry | None:
        label = f"the entry {key!r}"
        if not isinstance(entry, dict):
            self.bad(label, f"is {entry!r}", "an object with the values of the knobs and a time")
            return None
        configuration = _configuration(self, label, entry, knobs)
        if configuration is None:
            return None
        if "time" not in entry and "__error__" not in entry:
            self.bad(label, "has no 'time'", "milliseconds, or the name of a failure")
            return None
        status, time, error = _judge(entry.get("__error__") or entry.get("time"))
        return Entry(
            configuration=configuration,
            status=status,
            time=None if time is None else time / 1e3,
            readings=_usable(entry.get("times"), 1e-3),
            compile_seconds=_duration(entry.get("compile_time"), 1e-3),
            verification_seconds=_duration(entry.get("verification_time"), 1e-3),
            benchmark_seconds=_duration(entry.get("benchmark_time"), 1e-3),
            framework_seconds=_duration(entry.get("framework_time"), 1e-3),
            metrics={
                name: float(value)
                for name, value in entry.items()
                if name not in _OF_THE_ENTRY and name not in configuration and _is_number(value)
            },
            error=error,
        )


class _T4(_Reader):
    """A T4 results file. Durations are in ``metadata.timeunit``, measurements in their own unit."""

    form = "t4"

    def read(self, damage: str) -> Recording:
        metadata = self.document.get("metadata")
        unit = metadata.get("timeunit", "ms") if isinstance(metadata, dict) else "ms"
        self.timeunit = self._unit("metadata.timeunit", unit)
        results = self.document["results"]
        given = [r.get("configuration") if isinstance(r, dict) else None for r in results]
        names = dict.fromkeys(name for c in given if isinstance(c, dict) for name in c)
        knobs = Knobs(dict.fromkeys(names, ()))
        entries = [self._entry(f"result {i + 1}", result, knobs) for i, result in enumerate(results)]
        return self.finish(knobs, entries, damage)

    def _unit(self, where: str, unit: object) -> float:
        factor = seconds_in(unit) if isinstance(unit, str) else None
        if factor is None:
            raise InputError(
                Problem(
                    f"{self.path}: {where} is {unit!r}", expected="a unit of time, such as 'milliseconds'"
                )
            )
        return factor

    def _entry(self, label: str, result: object, knobs: Knobs) -> Entry | None:
        if not isinstance(result, dict) or not isinstance(result.get("configuration"), dict):
            self.bad(label, "has no 'configuration'", "an object with the values of the knobs")
            return None
        configuration = _configuration(self, label, result["configuration"], knobs)
        if configuration is None:
            return None
        times = result["times"] if isinstance(result.get("times"), dict) else {}
        readings = _usable(times.get("runtimes"), self.timeunit)
        measured, time = self._measurements(label, result, readings)
        status, time, error = self._status(result, time)
        if status is Status.OK and time is None and not measured:
            self.bad(label, "is correct, but was not measured", "measurements, or times.runtimes")
            return None
        compilation = times.get("compilation", times.get("compilation_time"))
        return Entry(
            configuration=configuration,
            status=status,
            time=None if status.failed else time,
            readings=readings,
            compile_seconds=_duration(compilation, self.timeunit),
            verification_seconds=_duration(times.get("validation"), self.timeunit),
            benchmark_seconds=_duration(times.get("benchmark"), self.timeunit) or math.fsum(readings),
            framework_seconds=_duration(times.get("framework"), self.timeunit),
            metrics=measured,
            error=_text(result.get("message")) or error,
        )

    def _measurements(
        self, label: str, result: Mapping[str, Any], readings: Sequence[float]
    ) -> tuple[dict[str, float], object]:
        """The other metrics, and the time: in seconds, as stated or the readings' mean, or a failure."""
        time: object = math.fsum(readings) / len(readings) if readings else None
        others: dict[str, float] = {}
        listed = result.get("measurements")
        for measurement in listed if isinstance(listed, list) else ():
            if not isinstance(measurement, dict) or not isinstance(measurement.get("name"), str):
                self.bad(label, "has a measurement without a name", "an object with name, value and unit")
                continue
            name, value = measurement["name"], measurement.get("value")
            unit = measurement.get("unit", "")
            if name == "time":
                factor = self._unit(f"the unit of 'time' of {label}", unit) if unit else self.timeunit
                time = value * factor if _is_number(value) and value < NO_TIME else value
            elif _is_number(value):
                others[name] = float(value)
            self.units.setdefault(name, _text(unit))
        return others, time

    def _status(self, result: Mapping[str, Any], time: object) -> tuple[Status, float | None, str]:
        """Status, time and the word for a failure; ``status`` is what autotune itself adds to T4."""
        own, word = result.get("status"), result.get("invalidity")
        stated, number, error = _judge(time) if time is not None else (Status.OK, None, "")
        if isinstance(own, str) and own in FINISHED:
            return Status(own), number, error
        if isinstance(word, str) and word != "correct":
            return STATUSES.get(word, Status.CRASHED), number, word
        if stated is Status.OK and result.get("correctness") == 0:
            return Status.WRONG, number, "correctness 0"
        return stated, number, error


def _configuration(
    reader: _Reader, label: str, given: Mapping[str, object], knobs: Knobs
) -> Configuration | None:
    missing = [name for name in knobs.names if name not in given]
    if missing:
        expected = "a value for each knob: a recording says of none when it exists"
        reader.bad(label, f"lacks the knob {', '.join(map(repr, missing))}", expected)
        return None
    try:
        return knobs.configuration(given)
    except TypeError as error:
        reader.bad(label, f"cannot be read: {error}")
        return None


def _judge(time: object) -> tuple[Status, float | None, str]:
    """``(status, time as given, word for the failure)`` from the place of a time."""
    if isinstance(time, str):
        return STATUSES.get(time, Status.CRASHED), None, time
    if _is_number(time) and abs(time) < NO_TIME:
        return Status.OK, float(time), ""
    return Status.CRASHED, None, f"its time is {time!r}"


def _is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a finite number (an integer with hundreds of digits counts as infinite)."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e300 < value < 1e300


def _usable(values: object, factor: float) -> tuple[float, ...]:
    """Readings in seconds, without those that stand for a failure."""
    listed = values if isinstance(values, list) else ()
    return tuple(value * factor for value in listed if _is_number(value) and abs(value) < NO_TIME)


def _duration(value: object, factor: float) -> float:
    """A recorded duration in seconds; 0 where there is none."""
    return value * factor if _is_number(value) and 0 < value < NO_TIME else 0.0


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
