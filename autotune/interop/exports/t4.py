"""A study's trials in T4, the exchange format of auto-tuners; :mod:`autotune.measure.recordings.t4` reads it.

T4 (results schema 1.0.0, as Kernel Tuner and others write it) has a list of results, each with its
configuration, times, ``invalidity`` (why it is not valid), ``correctness`` and measurements. Other tools
write ``correctness: 1`` whatever happened; here both say what came of the trial. What T4 has no word for
is kept in keys of our own, which its schema allows: ``status`` (out of memory, diverged and pruned are
words of autotune) and ``message``. All durations are in milliseconds, as most tools take for granted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autotune.measure.outcome import Reading
from autotune.measure.recordings.formats import seconds_in
from autotune.paths import written_whole
from autotune.space.configuration import Configuration, plain
from autotune.status import Status
from autotune.store.records import StudyRecord, TrialRecord

SCHEMA_VERSION = "1.0.0"
TIMEUNIT = "milliseconds"
_PER_SECOND = 1e3

_INVALIDITY: Mapping[Status, str] = {
    Status.OK: "correct",
    Status.PRUNED: "correct",  # it gave right answers for as long as it was read
    Status.INFEASIBLE: "compile",
    Status.WRONG: "correctness",
    Status.DIVERGED: "correctness",
    Status.OUT_OF_MEMORY: "runtime",
    Status.CRASHED: "runtime",
    Status.TIMEOUT: "timeout",
}


@dataclass(frozen=True)
class Trial:
    """One finished trial, as much of it as T4 can tell. Durations and run times are in seconds."""

    configuration: Configuration
    status: Status
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Empty where it failed."""
    units: Mapping[str, str] = field(default_factory=dict)
    runtimes: tuple[float, ...] = ()
    """The raw readings, where the goal is a time."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """``prepare``, ``check``, ``measure``, and others."""
    message: str = ""
    phase: str = ""
    """In which it failed."""
    timestamp: str = ""


def document(
    trials: Iterable[Trial], objectives: Sequence[str], metadata: Mapping[str, Any]
) -> dict[str, Any]:
    """The T4 document. Trials that have not finished, or were lost, are left out: nothing is known."""
    return {
        "metadata": {**metadata, "timeunit": TIMEUNIT},
        "results": [_result(trial, objectives) for trial in trials if trial.status.finished],
        "schema_version": SCHEMA_VERSION,
    }


def write_trials(
    file: Path,
    study: StudyRecord,
    trials: Sequence[TrialRecord],
    readings: Mapping[int, Sequence[Reading]],
) -> None:
    """Write a study's trials to ``file``; ``readings`` holds those of each trial by its id.

    A file that is there is replaced at once, or stays as it is. Raises ``OSError``.
    """
    goals = [str(metric["name"]) for metric in study.metrics if metric.get("goal")]
    units = {str(metric["name"]): str(metric.get("unit") or "") for metric in study.metrics}
    metadata = {
        "tool": "autotune",
        "study": study.name,
        "objective": study.objective,
        "workload": dict(study.workload),
        "replayed": study.replayed,
    }
    rows = (_from_record(trial, readings.get(trial.id, ()), goals, units) for trial in trials)
    with written_whole(file) as draft, draft.open("w") as out:
        json.dump(document(rows, goals, metadata), out, indent=1)  # not as one text, which may be large
        out.write("\n")


def _result(trial: Trial, objectives: Sequence[str]) -> dict[str, Any]:
    phases = {name: seconds * _PER_SECOND for name, seconds in trial.phases.items()}
    correct = trial.status in (Status.OK, Status.PRUNED)
    return {
        "timestamp": trial.timestamp,
        "configuration": plain(trial.configuration),
        "times": {
            "compilation": phases.pop("prepare", 0.0),
            "validation": phases.pop("check", 0.0),
            "benchmark": phases.pop("measure", 0.0),
            "framework": sum(phases.values()),
            "search_algorithm": 0.0,
            "runtimes": [seconds * _PER_SECOND for seconds in trial.runtimes if math.isfinite(seconds)],
        },
        "invalidity": _invalidity(trial),
        "correctness": int(correct),
        "measurements": [
            {"name": name, "value": value, "unit": trial.units.get(name, "")}
            for name, value in trial.metrics.items()
            if correct and math.isfinite(value)  # JSON has no other numbers
        ],
        "objectives": list(objectives),
        "status": str(trial.status),
        "message": trial.message,
    }


def _invalidity(trial: Trial) -> str:
    if trial.status is Status.INFEASIBLE and trial.phase not in ("", "prepare"):
        return "runtime"  # it was made, and the device refused to run it
    return _INVALIDITY[trial.status]


def _from_record(
    trial: TrialRecord, readings: Sequence[Reading], goals: Sequence[str], units: Mapping[str, str]
) -> Trial:
    goal = goals[0] if goals else ""
    # A time without a unit is taken for seconds; any other metric without one is no time.
    factor = seconds_in(units.get(goal) or ("s" if goal == "time" else ""))
    runtimes = [r.value * factor for r in readings if factor and r.metric == goal and not r.discarded]
    at = trial.finished_at or trial.started_at
    return Trial(
        configuration=trial.configuration,
        status=trial.status,
        metrics={} if trial.status.failed else {name: e.value for name, e in trial.metrics.items()},
        units={**units, "time": units.get("time") or "s"},
        runtimes=tuple(runtimes),
        phases=trial.phases,
        message=trial.message,
        phase=trial.phase,
        timestamp=datetime.fromtimestamp(at, UTC).isoformat() if at else "",
    )
