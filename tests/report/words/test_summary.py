"""The text that a search ends with."""

from __future__ import annotations

from pathlib import Path

import autotune
from autotune.space import IntegerRange, Space


def test_long_names_of_metrics_leave_their_values_below_each_other(tmp_path: Path) -> None:
    metrics = (autotune.MetricSpec("time", "minimize"), autotune.MetricSpec("jobs.0.memory_mb"))
    study = autotune.StudySpec("named", Space([IntegerRange("a", 1, 4)]), metrics=metrics)
    with autotune.ask_tell(study, store=str(tmp_path / "a.db")) as session:
        for trial in session.ask(2):
            session.tell(trial, metrics={"time": 4.0 - trial.configuration["a"], "jobs.0.memory_mb": 30})
        lines = autotune.summarize(session.result()).splitlines()
    found = [line for line in lines if line.startswith(("time ", "jobs.0.memory_mb "))]
    assert [line[:17].rstrip() for line in found] == ["time", "jobs.0.memory_mb"]
    assert all(line[17] != " " for line in found)
