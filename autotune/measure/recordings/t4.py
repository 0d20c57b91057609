"""The files of T4, the exchange format of auto-tuners."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from autotune.errors import InputError, Problem
from autotune.measure.recordings.formats import (
    NO_TIME,
    STATUSES,
    Knobs,
    Reader,
    duration,
    judge,
    number_of,
    seconds_in,
    text_of,
    usable_readings,
)
from autotune.measure.recordings.recording import Entry, Recording
from autotune.status import Status

_FINISHED = frozenset(str(status) for status in Status if status.finished)
"""The statuses of finished trials of autotune itself."""
OTHER_UNIT = 100.0
"""Times that differ by more than this factor must be in different units, which differ by a factor of 1000."""


class T4Reader(Reader):
    """A T4 results file. Durations are in ``metadata.timeunit``, measurements in their own unit."""

    form = "t4"
    without_time = "is correct, but was not measured", "measurements, or times.runtimes"

    def read(self, damage: str) -> Recording:
        metadata = self.document.get("metadata")
        unit = metadata.get("timeunit", "ms") if isinstance(metadata, dict) else "ms"
        self.timeunit = self._unit("metadata.timeunit", unit)
        results = self.document["results"]
        given = [r.get("configuration") if isinstance(r, dict) else None for r in results]
        names = dict.fromkeys(name for c in given if isinstance(c, dict) for name in c)
        knobs = Knobs(dict.fromkeys(names, ()))
        entries = [self._entry(f"result {i + 1}", result, knobs) for i, result in enumerate(results)]
        tuned = [result.get("objectives") for result in results if isinstance(result, dict)]
        named = dict.fromkeys(name for one in tuned if isinstance(one, list) for name in one if text_of(name))
        return replace(self.finish(knobs, entries, damage), objectives=tuple(named))

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
        configuration = self.configuration(label, result["configuration"], knobs)
        if configuration is None:
            return None
        times = result["times"] if isinstance(result.get("times"), dict) else {}
        readings = usable_readings(times.get("runtimes"), self.timeunit)
        measured, time = self._measurements(label, result, readings)
        status, time, error = self._status(result, time)
        self._compare(label, status, time, readings)
        if status is Status.OK and time is None and not measured:
            self.untimed.append(label)
            return None
        compilation = times.get("compilation", times.get("compilation_time"))
        return Entry(
            configuration=configuration,
            status=status,
            time=None if status.failed else time,
            readings=readings,
            compile_seconds=duration(compilation, self.timeunit),
            verification_seconds=duration(times.get("validation"), self.timeunit),
            benchmark_seconds=duration(times.get("benchmark"), self.timeunit) or math.fsum(readings),
            framework_seconds=duration(times.get("framework"), self.timeunit),
            metrics=measured,
            error=text_of(result.get("message")) or error,
        )

    def _compare(self, label: str, status: Status, time: float | None, readings: Sequence[float]) -> None:
        """Note a problem where runtimes are not in the stated unit: they would be replayed as wrong times."""
        if status is not Status.OK or not time or not readings:
            return
        least, most = min(readings), max(readings)  # all must be far off: a single one may be disturbed
        if least > time * OTHER_UNIT or 0.0 < most < time / OTHER_UNIT:
            there = f"{least:.4g}" if least == most else f"{least:.4g} to {most:.4g}"
            found = f"has a time of {time:.4g} s and runtimes of {there} s, so that the unit of one is wrong"
            self.bad(label, found, "runtimes in metadata.timeunit (milliseconds where it is left out)")

    def _measurements(
        self, label: str, result: Mapping[str, Any], readings: Sequence[float]
    ) -> tuple[dict[str, float], object]:
        """The other metrics, and the time: seconds as stated, else the mean of the readings, or a failure."""
        time: object = math.fsum(readings) / len(readings) if readings else None
        others: dict[str, float] = {}
        listed = result.get("measurements")
        for measurement in listed if isinstance(listed, list) else ():
            if not isinstance(measurement, dict) or not isinstance(measurement.get("name"), str):
                self.bad(label, "has a measurement without a name", "an object with name, value and unit")
                continue
            name, value = measurement["name"], measurement.get("value")
            unit = measurement.get("unit", "")
            number = number_of(value)
            if name == "time":
                factor = self._unit(f"the unit of 'time' of {label}", unit) if unit else self.timeunit
                if value is None:  # nothing is stated
                    continue
                time = number * factor if number is not None and number < NO_TIME else value
            elif number is not None:
                others[name] = number
                before = self.units.get(name, text_of(unit))
                if before != text_of(unit):
                    self.bad(
                        label, f"gives {name!r} in {unit!r}, and one before it in {before!r}", "one unit"
                    )
            self.units.setdefault(name, text_of(unit))
        return others, time

    def _status(self, result: Mapping[str, Any], time: object) -> tuple[Status, float | None, str]:
        """Status, time and the word for a failure; ``status`` is what autotune itself adds to T4."""
        own, word = result.get("status"), result.get("invalidity")
        stated, number, error = judge(time) if time is not None else (Status.OK, None, "")
        wrong = isinstance(word, str) and word != "correct"
        if isinstance(own, str) and own in _FINISHED and (Status(own).failed or not wrong):
            return Status(own), number, error
        if isinstance(word, str) and wrong:
            return STATUSES.get(word, Status.CRASHED), number, word
        if stated is Status.OK and result.get("correctness") == 0:
            return Status.WRONG, number, "correctness 0"
        return stated, number, error
