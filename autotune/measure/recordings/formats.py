"""What the two formats of recordings have in common: words for failures, units, numbers and knobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeGuard

from autotune.errors import InputError, Problem, shorten
from autotune.measure.recordings.recording import Entry, Recording, key_of
from autotune.space.configuration import Configuration, Value, freeze
from autotune.space.spec import TIMES
from autotune.status import Status

NO_TIME = 1e19
"""Times of this size or more stand for a failure: earlier versions of Kernel Tuner wrote 1e20, in any
unit."""

MOST_PROBLEMS = 10
"""How many broken entries are named; the rest are only counted."""

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
"""The status for each word for a failure in either format; any other word means ``crashed``."""

_UNITS: Mapping[str, float] = TIMES | {"milisecond": 1e-3, "miliseconds": 1e-3}
"""Seconds in each unit of time; Kernel Tuner's own T4 files have the last two."""


class Reader(ABC):
    """The base of the readers of both formats: knobs, numbers, and problems by entry."""

    form: Literal["kernel-tuner", "t4"]
    without_time: tuple[str, str]
    """What is said of an entry without a time or a word why there is none, and what was expected."""

    def __init__(self, path: Path, document: Mapping[str, Any]) -> None:
        self.path = path
        self.document = document
        self.problems: list[Problem] = []
        self.untimed: list[str] = []
        """The labels of entries that are left out for want of a time."""
        self.units: dict[str, str] = {}

    @abstractmethod
    def read(self, damage: str) -> Recording:
        """Read the whole document; ``damage`` says what is wrong with the file."""

    def bad(self, label: str, what: str, expected: str = "") -> None:
        """Note a problem with the entry called ``label``."""
        self.problems.append(Problem(f"{self.path}: {label} {what}", expected=expected))

    def configuration(self, label: str, given: Mapping[str, object], knobs: Knobs) -> Configuration | None:
        """The configuration of an entry; ``None``, with a problem noted, where it is broken."""
        try:
            return knobs.configuration(given)
        except TypeError as error:
            self.bad(label, f"cannot be read: {error}")
            return None

    def finish(self, knobs: Knobs, entries: Iterable[Entry | None], damage: str) -> Recording:
        """The recording; raises :class:`InputError` with the problems that were noted."""
        found: dict[tuple[object, ...], Entry] = {}
        replaced = 0
        complete = list(filter(None, entries))
        for label in self.untimed if not complete else ():
            self.bad(label, *self.without_time)
        for entry in complete:
            key = key_of(map(entry.configuration.get, knobs.names))
            replaced += key in found and found[key].time != entry.time
            found[key] = entry
        if self.problems:
            more = len(self.problems) - MOST_PROBLEMS
            rest = [Problem(f"{self.path}: {more} more entries are broken")] if more > 0 else []
            raise InputError(self.problems[:MOST_PROBLEMS] + rest)
        return Recording(
            path=self.path,
            form=self.form,
            kernel=text_of(self.document.get("kernel_name")),
            device=text_of(self.document.get("device_name")),
            knobs=knobs.ordered_values(),
            units=self.units,
            entries=tuple(found.values()),
            damage=damage,
            replaced=replaced,
            untimed=len(self.untimed),
        )


class Knobs:
    """The knobs of a recording with their values, each value in one canonical form.

    ``16`` and ``16.0`` are one value, ``1`` and ``True`` are two. Values that were not declared but
    occur in an entry are added. The declared order is kept; numbers without a declared order are sorted.
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
        """Without the knobs that ``given`` lacks; ``TypeError`` for what no knob can be set to."""
        return Configuration(
            {name: self.canonical(name, given[name]) for name in self._known if name in given}
        )

    def values(self) -> dict[str, tuple[Value, ...]]:
        return {name: tuple(known.values()) for name, known in self._known.items()}

    def ordered_values(self) -> dict[str, tuple[Value, ...]]:
        """As :meth:`values`, with numbers in rising order wherever the declared ones were."""
        return {name: _sorted(v) if self._rising[name] else v for name, v in self.values().items()}


def _sorted(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """``values`` in rising order where all are numbers, else as they are."""
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    return tuple(sorted(numbers)) if len(numbers) == len(values) else values


def judge(time: object) -> tuple[Status, float | None, str]:
    """``(status, time in its unit, word for the failure)`` from a recorded time, or the word in its place."""
    number = number_of(time)
    if number is not None and 0.0 <= number < NO_TIME:
        return Status.OK, number, ""
    if isinstance(time, str) and number is None:
        return STATUSES.get(time, Status.CRASHED), None, time
    return Status.CRASHED, None, f"its time is {shorten(repr(time))}"


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a finite number (an integer with hundreds of digits counts as infinite)."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -1e300 < value < 1e300


def number_of(value: object) -> float | None:
    """``value`` as a finite number, also if it is written as a text; ``None`` for anything else."""
    if type(value) is float and -1e300 < value < 1e300:  # as nearly all: half a million in a recording
        return value
    if is_number(value):
        return float(value)
    if not isinstance(value, str):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if is_number(number) else None


def usable_readings(values: object, factor: float) -> tuple[float, ...]:
    """The readings in a list, nested or not, times ``factor``, without those that stand for a failure."""
    found = (number_of(value) for value in _flattened(values))
    return tuple(value * factor for value in found if value is not None and 0.0 <= value < NO_TIME)


def _flattened(values: object) -> Iterator[object]:
    stack = [values] if isinstance(values, list) else []
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack.extend(reversed(value))
        else:
            yield value


def duration(value: object, factor: float) -> float:
    """A recorded duration in seconds; 0 where there is none."""
    number = number_of(value)
    return number * factor if number is not None and 0.0 < number < NO_TIME else 0.0


def text_of(value: object) -> str:
    return value if isinstance(value, str) else ""


def seconds_in(unit: str) -> float | None:
    """Seconds in a unit of time, by any of its usual names; ``None`` for something else."""
    return _UNITS.get(unit.strip().lower())
