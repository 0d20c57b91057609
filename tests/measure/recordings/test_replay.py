"""Replays: recorded readings and durations, labelled as such, in a space that holds nothing else."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.errors import InputError
from autotune.measure.objective import Infeasible, Signal, WrongAnswer
from autotune.measure.recordings import replay
from autotune.measure.recordings.read import read_recording
from autotune.measure.recordings.recording import Recording
from autotune.measure.recordings.replay import (
    RecordedCrash,
    RecordedTimeout,
    ReplayedObjective,
    limit_to_recording,
)
from autotune.space.knobs import Choice, Flag, IntegerRange, OrderedValues
from autotune.space.space import Space
from autotune.space.spec import CommandObjective, MetricSpec, ReplayObjective, StudySpec
from autotune.status import Status

RNG = np.random.default_rng(0)
TIME = MetricSpec("time", "minimize", "s")


def result(tile: int, layout: str, invalidity: str = "correct", **more: Any) -> dict[str, Any]:
    return {
        "configuration": {"tile": tile, "layout": layout, "depth": 2},
        "times": {"compilation": 100.0, "validation": 20.0, "framework": 5.0, "runtimes": [3.0, 1.0, 2.0]},
        "invalidity": invalidity,
        "correctness": int(invalidity == "correct"),
        "measurements": [
            {"name": "time", "value": 2.0, "unit": "ms"},
            {"name": "power", "value": 50.0 + tile, "unit": "W"},
        ],
        **more,
    }


RESULTS = [
    result(8, "row"),
    result(8, "column", "runtime"),
    result(16, "row", "timeout"),
    result(16, "column", "correctness"),
    result(32, "row", "compile"),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "recorded.json"
    file.write_text(json.dumps({"metadata": {"timeunit": "ms"}, "results": RESULTS}))
    return file


def objective(file: Path, *metrics: MetricSpec) -> ReplayedObjective:
    return ReplayedObjective(read_recording(file), metrics or (TIME,))


def knobs(tile: int = 8, layout: str = "row", **more: Any) -> dict[str, Any]:
    return {"tile": tile, "layout": layout, "depth": 2, **more}


def test_what_was_pruned_is_so_with_its_readings_and_says_why(tmp_path: Path) -> None:
    file = tmp_path / "pruned.json"
    file.write_text(json.dumps({"results": [result(8, "row", status="pruned")]}))
    outcome = objective(file).outcome(knobs())
    assert (outcome.status, outcome.message) == (Status.PRUNED, "recorded as pruned")
    assert outcome.metrics["time"].n == 3


def test_an_outcome_holds_readings_durations_and_the_label(file: Path) -> None:
    outcome = objective(file).outcome(knobs())
    assert outcome.status is Status.OK
    assert [r.value for r in outcome.readings] == [0.003, 0.001, 0.002]
    assert [r.at for r in outcome.readings] == pytest.approx([0, 0.003, 0.004])
    assert outcome.metrics["time"].value == 0.002 and outcome.metrics["time"].n == 3
    assert outcome.phases == {"prepare": 0.1, "check": 0.02, "measure": 0.006}
    assert sum(outcome.phases.values()) == pytest.approx(0.126)
    assert outcome.facts["replayed"] is True and outcome.facts["recording"] == "recorded.json"
    assert outcome.facts["recorded_framework_seconds"] == 0.005


@pytest.mark.parametrize(
    ("configuration", "status", "phase", "signal"),
    [
        (knobs(8, "column"), Status.CRASHED, "measure", RecordedCrash),
        (knobs(16, "row"), Status.TIMEOUT, "measure", RecordedTimeout),
        (knobs(16, "column"), Status.WRONG, "check", WrongAnswer),
        (knobs(32, "row"), Status.INFEASIBLE, "prepare", Infeasible),
    ],
)
def test_failures_are_as_recorded(
    file: Path, configuration: dict[str, Any], status: Status, phase: str, signal: type[Signal]
) -> None:
    replayed = objective(file)
    outcome = replayed.outcome(configuration)
    assert (outcome.status, outcome.phase, outcome.metrics) == (status, phase, {})
    assert outcome.message.startswith("recorded as ") and outcome.facts["replayed"] is True
    assert outcome.phases["prepare"] == 0.1
    with pytest.raises(signal, match="recorded as") as caught:
        replayed.prepare(configuration)  # type: ignore[arg-type]
    assert caught.value.status is status


def test_what_was_not_recorded_is_infeasible(file: Path) -> None:
    outcome = objective(file).outcome(knobs(32, "column"))
    assert outcome.status is Status.INFEASIBLE and outcome.facts["replayed"] is True
    assert outcome.message == "not in the recording recorded.json: tile=32, layout=column, depth=2"
    assert objective(file).outcome({"tile": 64}).status is Status.INFEASIBLE
    with pytest.raises(Infeasible):
        objective(file).prepare(knobs(64))  # type: ignore[arg-type]


def test_knobs_with_a_single_value_may_be_left_out(file: Path) -> None:
    assert objective(file).outcome({"layout": "row", "tile": 8.0}).status is Status.OK


def test_as_an_ordinary_objective_it_serves_one_reading_after_another(file: Path) -> None:
    replayed = objective(file, TIME, MetricSpec("power", unit="W"))
    prepared = pickle.loads(pickle.dumps(replayed.prepare(knobs())))  # type: ignore[arg-type]
    one, other = replayed.load(prepared), replayed.load(prepared)
    served = [replayed.measure(one, RNG) for _ in range(4)]
    assert [s["time"] for s in served] == [0.003, 0.001, 0.002, 0.003]
    assert {s["power"] for s in served} == {58.0}
    assert replayed.measure(other, RNG)["time"] == 0.003
    assert replayed.recorded_readings(knobs()) == 3
    assert objective(file, MetricSpec("power", "minimize"), TIME).recorded_readings(knobs()) == 1
    assert replayed.recorded_readings(knobs(8, "column")) == replayed.recorded_readings(knobs(64)) == 0


def test_metrics_in_their_units_and_within_their_bounds(file: Path) -> None:
    milliseconds = objective(file, MetricSpec("time", "minimize", "ms"))
    assert milliseconds.outcome(knobs()).metrics["time"].value == pytest.approx(2.0)
    bounded = objective(file, TIME, MetricSpec("power", unit="W", at_most=55))
    outcome = bounded.outcome(knobs())
    assert outcome.status is Status.WRONG and "power" in outcome.message
    assert objective(file, MetricSpec("power", "minimize")).outcome(knobs()).metrics["power"].value == 58


def test_a_goal_that_was_not_recorded_is_refused(file: Path) -> None:
    with pytest.raises(InputError, match=r"'powr' was not recorded(.|\n)*did you mean 'power'"):
        objective(file, MetricSpec("powr", "minimize"))
    with pytest.raises(InputError, match="cannot be given in 'tokens'"):
        objective(file, MetricSpec("time", "minimize", "tokens"))


# -- the space ------------------------------------------------------------------------------------

TILE, LAYOUT, DEPTH = (
    OrderedValues("tile", (8, 16, 32)),
    Choice("layout", ("row", "column")),
    IntegerRange("depth", 2, 2),
)


def study(file: Path, *own: Any, constraints: tuple[str, ...] = ()) -> StudySpec:
    return StudySpec("recorded", Space(own, constraints), ReplayObjective(file), (TIME,))


def rows(spec: StudySpec) -> list[tuple[Any, ...]]:
    return [tuple(c.values()) for c in limit_to_recording(spec).space.feasible]


def test_the_space_is_limited_to_what_was_recorded(file: Path) -> None:
    limited = limit_to_recording(study(file, TILE, LAYOUT, DEPTH))
    assert len(limited.space.feasible) == len(RESULTS)
    assert knobs(16, "row") in limited.space and knobs(32, "column") not in limited.space
    assert isinstance(limited.objective, ReplayObjective) and limited.objective.file == file
    recorded = {tuple(r["configuration"].values()) for r in RESULTS}
    assert set(rows(study(file, TILE, LAYOUT, DEPTH))) == recorded


def test_successes_without_the_number_of_a_goal_are_left_out(file: Path) -> None:
    """They had been replayed as 'ok', without a time."""
    power = {"name": "power", "value": 50.0, "unit": "W"}
    bare = result(32, "column", times={}, measurements=[power])
    file.write_text(json.dumps({"metadata": {"timeunit": "ms"}, "results": [*RESULTS, bare]}))
    spec = study(file, TILE, LAYOUT, DEPTH)
    assert set(rows(spec)) == {tuple(r["configuration"].values()) for r in RESULTS}
    for_power = with_changes(spec, metrics=(MetricSpec("power", "minimize"),))
    assert len(rows(for_power)) == len(RESULTS) + 1


def test_the_space_may_be_narrower_or_ordered_otherwise(file: Path) -> None:
    assert len(rows(study(file, LAYOUT, OrderedValues("tile", (16.0, 8.0))))) == 4
    assert len(rows(study(file, TILE, LAYOUT, constraints=("tile * 2 <= 16",)))) == 2
    assert rows(study(file, TILE, Choice("layout", ("row",)))) == [(8, "row"), (16, "row"), (32, "row")]


def test_a_space_that_does_not_fit_is_refused(file: Path) -> None:
    with pytest.raises(
        InputError, match=r"'tyle' was not recorded(.|\n)*did you mean 'tile'(.|\n)*lacks the knob 'tile'"
    ):
        limit_to_recording(study(file, OrderedValues("tyle", (8,)), LAYOUT))
    with pytest.raises(InputError, match="holds none of the 5 configurations"):
        limit_to_recording(study(file, OrderedValues("tile", (9, 10)), LAYOUT))
    with pytest.raises(InputError, match="holds none"):
        limit_to_recording(study(file, TILE, Flag("layout")))
    with pytest.raises(InputError, match="does not replay"):
        spec = StudySpec("x", Space((TILE,)), CommandObjective(("true",), file.parent), (TIME,))
        limit_to_recording(spec)


def test_a_knob_that_does_not_exist_in_the_space_may_have_been_recorded(file: Path) -> None:
    """The first recorded value is served: a knob that does not exist makes no difference."""
    file.write_text(
        json.dumps({"results": [*RESULTS, {**result(8, "row"), "configuration": {**knobs(), "depth": 4}}]})
    )
    depth = OrderedValues("depth", (2, 4), when="tile == 16")
    limited = limit_to_recording(study(file, TILE, LAYOUT, depth))
    assert {"tile": 8, "layout": "row"} in limited.space
    found = objective(file).recording.find({"tile": 8, "layout": "row"})
    assert found is not None and found.configuration == knobs()


def test_a_knob_may_exist_only_in_some_recorded_configurations(file: Path) -> None:
    without = [{**one, "configuration": dict(one["configuration"])} for one in RESULTS]
    for one in without:
        if one["configuration"]["layout"] == "column":
            del one["configuration"]["depth"]
    file.write_text(json.dumps({"results": without}))
    limited = limit_to_recording(
        study(file, TILE, LAYOUT, OrderedValues("depth", (2, 4), when="layout == 'row'"))
    )
    assert len(limited.space.feasible) == len(RESULTS)
    assert {"tile": 16, "layout": "column"} in limited.space
    assert objective(file).outcome({"tile": 16, "layout": "column"}).status is Status.WRONG
    always = limit_to_recording(study(file, TILE, LAYOUT, DEPTH))
    assert {c["layout"] for c in always.space.feasible} == {"row"}


def test_a_recording_is_read_once_unless_it_changes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 200,000 entries takes six seconds to read, to limit the space and to serve it."""
    read: list[Path] = []

    def counted(path: Path) -> Recording:
        read.append(path)
        return read_recording(path)

    monkeypatch.setattr(replay, "read_recording", counted)
    knobs = (OrderedValues("tile", (8, 16, 32)), Choice("layout", ("row", "column")))
    given = StudySpec("study", Space(knobs), ReplayObjective(file), metrics=(TIME,))
    spec = limit_to_recording(given)
    first = ReplayedObjective.of(spec)
    assert limit_to_recording(spec).space.hash == spec.space.hash == limit_to_recording(given).space.hash
    assert len(read) == 2, "once for each that had not been read"
    assert first.outcome({"tile": 8, "layout": "row"}).status is Status.OK
    assert "Recording" not in repr(spec.objective) and pickle.loads(pickle.dumps(spec)) == spec

    file.write_text(json.dumps({"metadata": {"timeunit": "ms"}, "results": RESULTS[:1]}))
    again = ReplayedObjective.of(spec)
    assert len(read) == 3 and len(again.recording.entries) == 1
