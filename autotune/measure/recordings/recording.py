"""Recorded spaces: what another tuner measured. :mod:`autotune.measure.recordings.read` reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

from autotune.space.configuration import Configuration, Value
from autotune.status import Status

TIME = "time"
"""The one metric of which a recording has raw readings."""


@dataclass(frozen=True)
class Entry:
    """One recorded configuration. All times are in seconds; a failure has no ``time``."""

    configuration: Configuration
    """Its knobs; a T4 file may leave out those that do not exist in it."""
    status: Status
    time: float | None = None
    """The time in the recording, usually the mean of the readings. ``None`` for a failure, and in a T4 file
    that has other metrics only."""
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

    def is_complete(self, goals: Iterable[str]) -> bool:
        """Whether it has a number for each of ``goals``, or lacks one because it failed or was pruned."""
        recorded = {*self.metrics} if self.time is None else {*self.metrics, TIME}
        return self.status is not Status.OK or recorded.issuperset(goals)


@dataclass(frozen=True)
class Recording:
    """A recorded space: the only configurations that exist, and the results of each."""

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
    """In the order recorded; of two entries for a configuration, only the later one."""
    damage: str = ""
    """What is wrong with the file, where it was cut short; empty where it is whole."""

    replaced: int = 0
    """How many entries were replaced by a later one for the same configuration with another time."""

    objectives: tuple[str, ...] = ()
    """The metrics that a T4 file says were tuned; it does not say which way."""

    untimed: int = 0
    """How many entries do not count, since they say neither a time nor why there is none."""

    _firsts: dict[tuple[str, ...], dict[tuple[object, ...], Entry]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def lacking(self, goal: str) -> int:
        """How many successes have no number for ``goal``."""
        return sum(not entry.is_complete([goal]) for entry in self.entries)

    @cached_property
    def _by_key(self) -> dict[tuple[object, ...], Entry]:
        return {self._key(entry.configuration): entry for entry in self.entries}

    def _key(self, configuration: Mapping[str, Value]) -> tuple[object, ...]:
        only = {name: values[0] for name, values in self.knobs.items() if len(values) == 1}
        chosen = [configuration.get(name, only.get(name)) for name in self.knobs]
        return key_of(chosen)

    def find(self, configuration: Mapping[str, Value]) -> Entry | None:
        """The entry of a configuration; ``None`` where it was not recorded.

        Knobs with a single value may be left out, and ``16.0`` finds what was recorded for ``16``. Any other
        knob that is left out counts as inactive: the first entry is found, whatever value it has for that
        knob.
        """
        found = self._by_key.get(self._key(configuration))
        if found is None and not configuration.keys() >= self.knobs.keys():
            names = tuple(name for name in self.knobs if name in configuration)
            found = self._first_by(names).get(key_of(configuration[name] for name in names))
        return found

    def _first_by(self, names: tuple[str, ...]) -> Mapping[tuple[object, ...], Entry]:
        """The first entry with each combination of values of just these knobs."""
        if names not in self._firsts:
            firsts = self._firsts[names] = {}
            for entry in self.entries:
                firsts.setdefault(key_of(map(entry.configuration.get, names)), entry)
        return self._firsts[names]


def key_of(values: Iterable[object]) -> tuple[object, ...]:
    """A key that is equal for the same values: 16 is 16.0, but 1 is not True."""
    return tuple((isinstance(value, bool), value) for value in values)
