"""The text that a search ends with."""

from __future__ import annotations

from pathlib import Path

import autotune
from autotune.space import IntegerRange, OrderedValues, Space

SIZES = {"tile": (16, 32, 48, 64, 96, 128), "lanes": (1, 2, 3, 4, 6, 8), "vector": (1, 2, 3, 4)}


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


def test_ask_and_tell_is_summed_up_while_it_goes_on(tmp_path: Path) -> None:
    metrics = (autotune.MetricSpec("time", "minimize"),)
    study = autotune.StudySpec("open", Space([IntegerRange("a", 1, 4)]), metrics=metrics)
    with autotune.ask_tell(study, store=str(tmp_path / "a.db")) as session:
        (first, _) = session.ask(2)
        session.tell(first, time=1.0)
        lines = autotune.summarize(session.result()).splitlines()
    assert "tried          2 trials; none failed; 1 still running" in lines


def test_no_front_is_offered_where_nothing_succeeded(tmp_path: Path) -> None:
    metrics = (autotune.MetricSpec("time", "minimize"), autotune.MetricSpec("size", "minimize"))
    study = autotune.StudySpec("failed", Space([IntegerRange("a", 1, 4)]), metrics=metrics)
    with autotune.ask_tell(study, store=str(tmp_path / "a.db")) as session:
        (first, second) = session.ask(2)
        session.tell(first, status="crashed", message="no")
        assert "autotune best" not in autotune.summarize(session.result())
        session.tell(second, metrics={"time": 1.0, "size": 2.0})
        assert "autotune best --front" in autotune.summarize(session.result())


def test_a_rule_that_failures_give_away_is_told_as_a_constraint(tmp_path: Path) -> None:
    knobs = [OrderedValues(name, values) for name, values in SIZES.items()]
    metrics = (autotune.MetricSpec("time", "minimize"),)
    study = autotune.StudySpec("uneven", Space(knobs), metrics=metrics)
    with autotune.ask_tell(study, store=str(tmp_path / "a.db"), strategy="random") as session:
        for trial in session.ask(60):
            values = trial.configuration
            if values["tile"] % (values["lanes"] * values["vector"]):
                session.tell(trial, status="infeasible", message="the lanes do not divide the tile")
            else:
                session.tell(trial, metrics={"time": 1.0})
        lines = autotune.summarize(session.result()).splitlines()
    place = lines.index("a rule?        tile % (lanes * vector) == 0")
    assert lines[place + 1].endswith(" worked keep it")
    assert "constraints" in lines[place + 2]


def test_that_the_fastest_training_is_not_the_best_is_told(tmp_path: Path) -> None:
    metrics = (autotune.MetricSpec("loss", "minimize"), autotune.MetricSpec("samples_per_s"))
    study = autotune.StudySpec("batches", Space([IntegerRange("a", 1, 4)]), metrics=metrics)
    with autotune.ask_tell(study, store=str(tmp_path / "a.db")) as session:
        (good, fast) = session.ask(2)
        session.tell(good, metrics={"loss": 0.1, "samples_per_s": 400})
        session.tell(fast, metrics={"loss": 0.5, "samples_per_s": 900})
        lines = autotune.summarize(session.result()).splitlines()
    assert [line for line in lines if line.startswith("throughput     trial 1 has the most samples a second")]
