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
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autotune.measure.outcome import Reading
from autotune.measure.recordings.formats import seconds_in
from autotune.paths import written_whole
from autotune.space.configuration import plain
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


def write_trials(
    file: Path,
    study: StudyRecord,
    trials: Sequence[TrialRecord],
    readings: Mapping[int, Sequence[Reading]],
) -> None:
    """Write a study's trials to ``file``; ``readings`` holds those of each trial by its id.

    Trials that have not finished, or were lost, are left out: nothing is known.
    A file that is there is replaced at once, or stays as it is. Raises ``OSError``.
    """
    goals = [goal.name for goal in study.goals]
    units = {str(metric["name"]): str(metric.get("unit") or "") for metric in study.metrics}
    if units.get("time") == "":
        units["time"] = "s"  # any other metric without a unit is no time
    document = {
        "metadata": {
            "tool": "autotune",
            "study": study.name,
            "objective": study.objective,
            "workload": dict(study.workload),
            "replayed": study.replayed,
            "timeunit": TIMEUNIT,
        },
        "results": [_result(t, readings.get(t.id, ()), goals, units) for t in trials if t.status.finished],
        "schema_version": SCHEMA_VERSION,
    }
    with written_whole(file) as draft, draft.open("w") as out:
        json.dump(document, out, indent=1)  # not as one text, which may be large
        out.write("\n")


def _result(
    trial: TrialRecord, readings: Sequence[Reading], goals: Sequence[str], units: Mapping[str, str]
) -> dict[str, Any]:
    phases = {name: seconds * _PER_SECOND for name, seconds in trial.phases.items()}
    timed = "time" if "time" in units else goals[0]  # T4's runtimes are readings of its time
    factor = seconds_in(units.get(timed, ""))
    runtimes = [r.value * factor for r in readings if factor and r.metric == timed and not r.discarded]
    correct = trial.status in (Status.OK, Status.PRUNED)
    at = trial.finished_at or trial.started_at
    return {
        "timestamp": datetime.fromtimestamp(at, UTC).isoformat() if at else "",
        "configuration": plain(trial.configuration),
        "times": {
            "compilation": phases.pop("prepare", 0.0),
            "validation": phases.pop("check", 0.0),
            "benchmark": phases.pop("measure", 0.0),
            "framework": sum(phases.values()),
            "search_algorithm": 0.0,
            "runtimes": [seconds * _PER_SECOND for seconds in runtimes if math.isfinite(seconds)],
        },
        "invalidity": _invalidity(trial),
        "correctness": int(correct),
        "measurements": [
            {"name": name, "value": estimate.value, "unit": units.get(name, "")}
            for name, estimate in trial.metrics.items()
            if correct and math.isfinite(estimate.value)  # JSON has no other numbers
        ],
        "objectives": list(goals),
        "status": str(trial.status),
        "message": trial.message,
    }


def _invalidity(trial: TrialRecord) -> str:
    if trial.status is Status.INFEASIBLE and trial.phase not in ("", "prepare"):
        return "runtime"  # it was made, and the device refused to run it
    return _INVALIDITY[trial.status]
