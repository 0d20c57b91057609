"""The cache files of Kernel Tuner."""

from __future__ import annotations

from autotune.errors import InputError, Problem
from autotune.measure.recordings.formats import Knobs, Reader, duration, judge, number_of, usable_readings
from autotune.measure.recordings.recording import Entry, Recording
from autotune.measure.recordings.salvage import members
from autotune.space.configuration import freeze

_DURATIONS = ("compile_time", "verification_time", "benchmark_time", "strategy_time", "framework_time")
_OF_THE_ENTRY = frozenset({"time", "times", "timestamp", "__error__", *_DURATIONS})
"""What an entry of a Kernel Tuner cache holds besides its knobs; all other numbers are metrics."""


class KernelTunerReader(Reader):
    """A cache file of Kernel Tuner, of any version so far. Its times are in milliseconds."""

    form = "kernel-tuner"
    without_time = "has no 'time'", "milliseconds, or the name of a failure"

    def read(self, damage: str) -> Recording:
        self.units["time"] = "ms"
        knobs = Knobs(self._declared())
        there = members(self.document["cache"])
        entries = [self._entry(f"the entry {key!r}", entry, knobs) for key, entry in there]
        return self.finish(knobs, entries, damage)

    def _declared(self) -> dict[str, list[object]]:
        keys = self.document.get("tune_params_keys")
        values = self.document.get("tune_params")
        if not isinstance(values, dict):
            values = {}
        if not isinstance(keys, list):
            keys = list(values)
        first = next((entry for entry in self.document["cache"].values() if isinstance(entry, dict)), {})
        keys = [*keys, *(name for name in values if name not in keys and name in first)]
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

    def _entry(self, label: str, entry: object, knobs: Knobs) -> Entry | None:
        """``None`` where it is broken, or has no time, which is noted."""
        if not isinstance(entry, dict):
            self.bad(label, f"is {entry!r}", "an object with the values of the knobs and a time")
            return None
        if missing := [name for name in knobs.names if name not in entry]:
            self.bad(label, f"lacks the knob {', '.join(map(repr, missing))}", "a value for each knob")
            return None
        configuration = self.configuration(label, entry, knobs)
        if configuration is None:
            return None
        if "time" not in entry and "__error__" not in entry:
            self.untimed.append(label)
            return None
        status, time, error = judge(entry.get("__error__") or entry.get("time"))
        return Entry(
            configuration=configuration,
            status=status,
            time=None if time is None else time / 1e3,
            readings=usable_readings(entry.get("times"), 1e-3),
            compile_seconds=duration(entry.get("compile_time"), 1e-3),
            verification_seconds=duration(entry.get("verification_time"), 1e-3),
            benchmark_seconds=duration(entry.get("benchmark_time"), 1e-3),
            framework_seconds=duration(entry.get("framework_time"), 1e-3),
            metrics={
                name: number
                for name, value in entry.items()
                if name not in _OF_THE_ENTRY
                and name not in configuration
                and (number := number_of(value)) is not None
            },
            error=error,
        )
