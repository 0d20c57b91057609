"""What ``autotune trial`` says of readings and of reports."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import autotune
from autotune.cli import trial
from autotune.cli.trial import MOST_SHOWN, _curve, _device, _facts, _machine, _metrics, _readings
from autotune.report.words.summary import MOST_KNOBS
from autotune.space import Flag, Space
from tests.cli.calling import call, document


def reports(n: int) -> list[dict[str, Any]]:
    return [{"step": step, "at": 0.1 * step, "metrics": {"loss": 1.0 / step}} for step in range(1, n + 1)]


def test_a_curve_is_shown_from_its_first_to_its_last_report() -> None:
    assert _curve([]) == []
    assert _curve(reports(3)) == ["  curve    loss 1:1 2:0.5 3:0.3333"]
    (line,) = _curve(reports(1000))
    assert line.split()[2] == "1:1" and line.split()[-1] == "1000:0.001" and len(line.split()) <= 2 + 14


def test_a_metric_that_comes_and_goes_is_shown_where_it_was() -> None:
    told = [*reports(2), {"step": 3, "at": 1.0, "metrics": {"loss": 0.25, "accuracy": 0.5}}]
    assert _curve(told) == ["  curve    loss 1:1 2:0.5 3:0.25", "  curve    accuracy 3:0.5"]


def test_readings_stand_by_metric_and_what_does_not_count_is_explained() -> None:
    """They had stood in one row, seconds and bytes in turn, with a star that nothing explained."""
    assert _readings([], {}) == []
    taken = [
        {"metric": name, "value": value + i, "discarded": "warm-up" if i == 0 else ""}
        for i in range(3)
        for name, value in (("time", 0.5), ("bytes", 64))
    ]
    assert _readings(taken, {"time": "s", "bytes": ""}) == [
        "  readings time (s) = 0.5* 1.5 2.5",
        "  readings bytes = 64* 65 66",
        "           * does not count: warm-up",
    ]
    many = [{"metric": "time", "value": float(i), "discarded": ""} for i in range(MOST_SHOWN + 1)]
    (line,) = _readings(many, {})
    assert line.endswith(f" ... {MOST_SHOWN + 1} in all (--json has them)")


def test_readings_that_are_all_the_same_stand_once() -> None:
    """The bytes of an index had filled three lines with one number."""
    (line,) = _readings([{"metric": "bytes", "value": 64.0, "discarded": ""}] * 81, {"bytes": "B"})
    assert line == "  readings bytes (B) = 64, each of 81"


def test_a_metric_has_its_unit_and_what_its_readings_have_in_common() -> None:
    """``rate = 20.3257`` had stood there without either."""
    estimate = {"value": 2.5e-4, "low": 2.4e-4, "high": 2.6e-4, "n": 5}
    document = {
        "metrics": {"time": estimate, "error": {"value": 0.5, "low": 0.5, "high": 0.5, "n": 1}},
        "units": {"time": "s"},
        "facts": {"shared_error": {"time": 0.008}},
    }
    assert _metrics(document) == [
        "  metric   time = 250 us [240, 260], 5 readings, which may all be off by 0.8 %",
        "  metric   error = 0.5, 1 reading",
    ]
    averaged = document | {"metrics": {"time": estimate | {"n": 1}}}
    assert _metrics(averaged) == ["  metric   time = 250 us [240, 260], 1 reading, which may be off by 0.8 %"]


def test_a_gpu_is_named_before_the_processor_beside_it() -> None:
    """A trial on a GPU had named the processor alone."""
    gpus = {"devices": [{"name": "NVIDIA H200"}, {"name": "NVIDIA H200"}]}
    machine = {"processor": {"name": "Some Processor"}}
    assert _machine({"gpus": gpus, "machine": machine}) == [
        "           NVIDIA H200",
        "           Some Processor",
    ]
    assert _machine({"gpus": {"devices": []}, "machine": {"processor": {"name": None}}}) == []
    assert _machine({}) == []


def test_how_a_gpu_stood_is_said_of_the_readings_that_count() -> None:
    def reading(mhz: float, reasons: float, discarded: str = "") -> dict[str, Any]:
        context = {"sm_clock_mhz": mhz, "power_watts": 690.4, "throttle_reasons": reasons}
        return {"metric": "time", "value": 1.0, "discarded": discarded, "context": context}

    own = [reading(1980, 0, "unsettled"), reading(1395, 4), reading(1455, 0)]
    assert _device(own) == ["  device   1395 to 1455 MHz, 690 W; slowed by power_cap"]
    assert _device([reading(1980, 0)]) == ["  device   1980 MHz, 690 W"]
    assert _device([{"metric": "time", "value": 1.0, "discarded": "", "context": {"wall": 0.1}}]) == []


def test_of_many_knobs_those_are_shown_that_the_default_has_otherwise(tmp_path: Path) -> None:
    def cost(**on: bool) -> float:
        return 1.0 + sum(on.values())

    space = Space([Flag(f"f{number:02}", default=False) for number in range(MOST_KNOBS + 1)])
    autotune.search(space, objective=cost, trials=2, store=tmp_path / "study.db")
    where = "--study", "cost", "--store", tmp_path / "study.db"
    said = call(trial.command, 0, *where).stdout
    assert (
        "  knob  " not in said and f"and {MOST_KNOBS + 1} knobs as in the default (--json has them)" in said
    )
    flipped = document(trial.command, 1, *where)["configuration"]
    said = call(trial.command, 1, *where).stdout
    assert said.count("  knob  ") == sum(flipped.values()) > 0


def test_the_command_lines_of_a_trial_can_be_run_by_hand(tmp_path: Path) -> None:
    """Of a trial that crashed there was no way to see what had been called but to fill in the space file."""
    space = tmp_path / "space.yaml"
    space.write_text(
        """
autotune: 1
name: by-hand
command:
  prepare: [sh, -c, "echo {title} > {folder}/made"]
  run: [cat, "{folder}/made", "-{often}"]
  environment: {SIZE: "{workload.n}", NEVER: "{never}"}
  metrics: wall
workload: {n: 5}
knobs:
  title: {choices: [a b, c]}
  often: {values: [u, n]}
  never: {values: [1, 2], when: title == 'c'}
measure: {finalists: 0, max_readings: 3}
"""
    )
    autotune.search(space, trials=1, store=tmp_path / "study.db")
    where = "--study", "by-hand", "--store", tmp_path / "study.db"
    said = call(trial.command, 0, *where).stdout
    assert (
        "\n  prepare  env SIZE=5 sh -c 'echo a b > folder/made'\n  run      env SIZE=5 cat folder/made -u\n"
        "           (folder, or {folder}, is the configuration's own, which is gone: mkdir folder)\n" in said
    )
    commands = document(trial.command, 0, *where)["commands"]
    assert commands["run"] == ["env", "SIZE=5", "cat", "folder/made", "-u"] and "check" not in commands
    for strange in (
        "[",
        "{}",
        '{"arguments": [3]}',
        '{"arguments": ["{"]}',
        '{"arguments": [], "environment": 3}',
    ):
        with closing(sqlite3.connect(tmp_path / "study.db")) as altered, altered:
            altered.execute("UPDATE studies SET objective = ?", (f"command {strange}",))
        assert document(trial.command, 0, *where)["commands"] == {}


def test_the_config_file_of_a_trial_is_shown_beside_the_commands_that_read_it(tmp_path: Path) -> None:
    """The command lines named a file in a folder that was gone, so they could not be run by hand."""
    space = tmp_path / "space.yaml"
    space.write_text(
        """
autotune: 1
name: by-hand
command: {run: [cat, "{config}"], config: {file: sub.toml}, metrics: wall}
knobs: {title: {choices: [a b]}, often: {values: [1]}}
measure: {finalists: 0, max_readings: 3}
"""
    )
    autotune.search(space, trials=1, store=tmp_path / "study.db")
    where = "--study", "by-hand", "--store", tmp_path / "study.db"
    said = call(trial.command, 0, *where).stdout
    assert '\n  config   folder/sub.toml\n    title = "a b"\n    often = 1\n  run ' in said
    assert document(trial.command, 0, *where)["config"] == {
        "file": "folder/sub.toml",
        "text": 'title = "a b"\noften = 1\n',
    }


def test_that_a_number_was_taken_for_an_id_is_said(tmp_path: Path) -> None:
    """A search tells of trial 2, and ``autotune trial 2`` had shown trial 1 without a word."""
    space = Space([Flag("on"), Flag("more")])
    autotune.search(space, objective=lambda on, more: 1.0 + on + more, trials=3, store=tmp_path / "s.db")
    where = "--store", tmp_path / "s.db"
    said = call(trial.command, 2, *where).stdout
    assert said.startswith("trial 1 of ") and said.endswith("#1:2\n")
    assert "\nnote: 2 is its id in the store. Its study's trial 2 is " in said
    assert "note:" not in call(trial.command, said.splitlines()[-1].split()[-1], *where).stdout


def test_facts_are_shown_but_not_how_the_lane_was_used() -> None:
    """The documentation sends people to the facts of a trial, which ``--json`` alone had."""
    facts = {"network": "loopback", "cores": [0, 1], "timeline": {"measure": [1.0, 2.0, 0]}, "log": "x" * 999}
    said = _facts(facts)
    assert said[:2] == ["  fact     network = loopback", "  fact     core numbers = 0, 1"]
    assert len(said) == 3 and len(said[2]) < 200
