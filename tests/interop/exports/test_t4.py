"""Trials go to T4 with what really came of them, and come back."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.interop.exports.t4 import write_trials
from autotune.interop.space_files.kernel_tuner import space_document
from autotune.measure.outcome import Estimate, Reading
from autotune.measure.recordings.formats import seconds_in
from autotune.measure.recordings.read import read_recording
from autotune.measure.recordings.replay import ReplayedObjective, limit_to_recording
from autotune.space.configuration import Configuration
from autotune.space.knobs import Choice, Flag, IntegerRange, OrderedValues, Permutation
from autotune.space.reading.reader import read_spec
from autotune.space.space import Space
from autotune.status import Status
from autotune.store.records import StudyRecord, TrialRecord

SHARED = Path(__file__).parents[4] / "shared" / "recorded"

KNOBS = Configuration({"tile": 8, "layout": "row", "order": ["i", "j"], "place": {"head": "cpu"}})


def study(*metrics: dict[str, Any]) -> StudyRecord:
    return StudyRecord(
        id=1, name="gemm", key="k", spec_text="", document={}, space_hash="", objective="python x.py:F",
        workload={"m": 4}, metrics=metrics, machine_key="", environment_hash="", replayed=False,
        parent_id=None, differs={}, created_at=0.0,
    )  # fmt: skip


def trial(
    number: int, status: Status, configuration: Configuration | None = None, **fields: Any
) -> TrialRecord:
    configuration = configuration or Configuration({**KNOBS, "tile": 2**number})
    return TrialRecord(
        id=100 + number, study_id=1, number=number, session_id=1, segment_id=1, purpose="search",
        configuration=configuration, hash=configuration.hash, status=status, finished_at=1.7e9, **fields,
    )  # fmt: skip


TIME = {"name": "time", "goal": "minimize", "unit": "s"}


def estimates(**values: float) -> dict[str, Estimate]:
    return {name: Estimate(value, value, value, 1) for name, value in values.items()}


def results(file: Path, one: TrialRecord, readings: Sequence[Reading] = ()) -> list[dict[str, Any]]:
    """What a file says of a single trial."""
    write_trials(file, study(TIME), [one], {one.id: readings})
    found: list[dict[str, Any]] = json.loads(file.read_text())["results"]
    return found


@pytest.mark.parametrize(
    ("status", "phase", "invalidity", "correctness"),
    [
        (Status.OK, "", "correct", 1),
        (Status.PRUNED, "", "correct", 1),
        (Status.INFEASIBLE, "prepare", "compile", 0),
        (Status.INFEASIBLE, "measure", "runtime", 0),
        (Status.WRONG, "check", "correctness", 0),
        (Status.DIVERGED, "measure", "correctness", 0),
        (Status.OUT_OF_MEMORY, "measure", "runtime", 0),
        (Status.CRASHED, "measure", "runtime", 0),
        (Status.TIMEOUT, "measure", "timeout", 0),
    ],
)
def test_what_came_of_a_trial_is_told(
    status: Status, phase: str, invalidity: str, correctness: int, tmp_path: Path
) -> None:
    one = trial(0, status, metrics=estimates(time=2.0), phase=phase, message="why")
    (result,) = results(tmp_path / "trials.json", one)
    assert (result["invalidity"], result["correctness"]) == (invalidity, correctness)
    assert bool(result["measurements"]) == bool(correctness)
    assert (result["status"], result["message"]) == (str(status), "why")


def test_numbers_that_json_does_not_have_are_left_out(tmp_path: Path) -> None:
    one = trial(0, Status.OK, metrics=estimates(time=2.0, gap=math.inf))
    (result,) = results(tmp_path / "trials.json", one, [Reading("time", 1.0), Reading("time", math.nan)])
    assert [measured["name"] for measured in result["measurements"]] == ["time"]
    assert result["times"]["runtimes"] == [1000.0]


@pytest.mark.parametrize("status", [Status.WAITING, Status.RUNNING, Status.LOST])
def test_a_trial_of_which_nothing_is_known_is_left_out(status: Status, tmp_path: Path) -> None:
    assert results(tmp_path / "trials.json", trial(0, status)) == []


def test_a_study_and_back(tmp_path: Path) -> None:
    found = {"time": Estimate(0.002, 0.001, 0.003, 2), "error": Estimate(1e-7, 0, 1e-6, 1)}
    phases = {"prepare": 1.5, "check": 0.25, "warmup": 0.5, "measure": 0.125}
    trials = [
        trial(0, Status.OK, metrics=found, phases=phases),
        trial(1, Status.CRASHED, phases={"prepare": 1.0}, phase="measure", message="SIGSEGV"),
        trial(2, Status.RUNNING),
        trial(3, Status.OUT_OF_MEMORY),
    ]
    readings = {
        100: (Reading("time", 0.001), Reading("time", 9.0, discarded="warm-up"), Reading("time", 0.003))
    }
    file = tmp_path / "trials.json"
    file.write_text("an earlier export")
    write_trials(file, study(TIME, {"name": "error", "goal": None, "unit": ""}), trials, readings)

    written = json.loads(file.read_text())
    assert written["metadata"]["timeunit"] == "milliseconds" and written["metadata"]["study"] == "gemm"
    assert written["results"][0]["times"]["runtimes"] == [1.0, 3.0]
    assert written["results"][0]["times"]["framework"] == 500.0
    assert written["results"][0]["timestamp"].startswith("2023-11-14T")

    recording = read_recording(file)
    assert recording.form == "t4" and recording.units["time"] == "s"
    ok, crashed, memory = recording.entries
    assert ok.configuration == trials[0].configuration
    assert ok.time == pytest.approx(0.002) and ok.metrics == pytest.approx({"error": 1e-7})
    assert ok.readings == pytest.approx((0.001, 0.003))
    assert (ok.compile_seconds, ok.verification_seconds, ok.benchmark_seconds) == (1.5, 0.25, 0.125)
    assert (crashed.status, crashed.time, crashed.metrics) == (Status.CRASHED, None, {})
    assert crashed.error == "SIGSEGV"
    assert memory.status is Status.OUT_OF_MEMORY
    assert list(tmp_path.iterdir()) == [file]


def test_a_goal_that_is_no_time(tmp_path: Path) -> None:
    file = tmp_path / "trials.json"
    rate = {"name": "throughput", "goal": "maximize", "unit": "samples/s"}
    record = trial(0, Status.OK, metrics={"throughput": Estimate(50.0, 49, 51, 5)})
    write_trials(file, study(rate), [record], {100: (Reading("throughput", 50.0),)})
    recording = read_recording(file)
    (read,) = recording.entries
    assert read.metrics == {"throughput": 50.0} and recording.units["throughput"] == "samples/s"
    assert read.readings == ()


def test_a_time_beside_a_rate_has_its_runtimes(tmp_path: Path) -> None:
    """A kernel that is tuned for GFLOP/s had none, so that a replay of it had no interval and no winner."""
    file = tmp_path / "trials.json"
    rate = {"name": "rate", "goal": "maximize", "unit": "GFLOP/s"}
    beside = {"name": "time", "goal": None, "unit": "ms"}
    record = trial(0, Status.OK, metrics=estimates(rate=50.0, time=2.0))
    readings = [Reading("rate", 40.0), Reading("time", 2.5), Reading("rate", 60.0), Reading("time", 1.5)]
    write_trials(file, study(rate, beside), [record], {100: readings})
    (read,) = read_recording(file).entries
    assert read.readings == pytest.approx((0.0025, 0.0015)) and read.metrics == {"rate": 50.0}


def test_runtimes_are_those_of_the_time_whatever_is_the_goal(tmp_path: Path) -> None:
    """They had been those of a goal in ms: beside a time of 30 s, the file could not be read back."""
    file = tmp_path / "trials.json"
    latency, beside = TIME | {"name": "p99", "unit": "ms"}, {"name": "time", "goal": None, "unit": "s"}
    record = trial(0, Status.OK, metrics=estimates(p99=7.0, time=30.0))
    readings = [Reading("p99", 7.0), Reading("time", 31.0), Reading("p99", 7.0), Reading("time", 29.0)]
    write_trials(file, study(latency, beside), [record], {100: readings})
    (read,) = read_recording(file).entries
    assert (read.time, read.readings, read.metrics) == (30.0, (31.0, 29.0), {"p99": 7.0})
    write_trials(file, study(latency), [record], {100: readings})
    (read,) = read_recording(file).entries
    assert read.readings == pytest.approx((0.007, 0.007))  # of what is nearest to a time


@pytest.mark.parametrize(("unit", "seconds"), [("h", 3600.0), ("secs", 1.0), ("Hours", 3600.0)])
def test_a_time_comes_back_from_each_unit_that_a_space_file_knows(
    unit: str, seconds: float, tmp_path: Path
) -> None:
    file = tmp_path / "trials.json"
    record = trial(0, Status.OK, metrics=estimates(time=2.0))
    write_trials(file, study(TIME | {"unit": unit}), [record], {100: [Reading("time", 2.0)]})
    (read,) = read_recording(file).entries
    assert read.time == pytest.approx(2.0 * seconds) and read.readings == pytest.approx((2.0 * seconds,))


FINISHED = [status for status in Status if status.finished]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(FINISHED),
            st.floats(1e-9, 1e6),
            st.lists(st.floats(0.5, 50.0), max_size=4),
            st.sampled_from(["s", "ms", "us", "ns"]),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]) -> None:
    unit = rows[0][3]
    per_unit = seconds_in(unit)
    assert per_unit is not None
    trials = [
        trial(number, status, metrics=estimates(time=value, error=value / 2), message=f"trial {number}")
        for number, (status, value, _, _) in enumerate(rows)
    ]
    readings = {
        one.id: [Reading("time", value * times) for times in runtimes]
        for one, (_, value, runtimes, _) in zip(trials, rows, strict=True)
    }
    file = tmp_path_factory.mktemp("t4") / "trials.json"
    write_trials(file, study(TIME | {"unit": unit}, {"name": "error", "goal": None}), trials, readings)
    back = read_recording(file).entries
    assert [t.configuration for t in back] == [t.configuration for t in trials]
    assert [t.status for t in back] == [t.status for t in trials]
    assert [t.error for t in back] == [t.message for t in trials]
    for one, other in zip(trials, back, strict=True):
        assert (other.time is None) == one.status.failed
        if not one.status.failed:
            assert other.time == pytest.approx(one.metrics["time"].value * per_unit)
            assert other.metrics == pytest.approx({"error": one.metrics["error"].value})
        assert other.readings == pytest.approx([r.value * per_unit for r in readings[one.id]])


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared recordings are not on this machine")
def test_the_shared_file() -> None:
    recording = read_recording(SHARED / "pnpoly-rtx3090.t4.json.gz")
    trials = recording.entries
    assert len(trials) == 4092 and sum(t.status.failed for t in trials) == 330
    assert trials[0].time == pytest.approx(0.046268736) and recording.units == {"time": "miliseconds"}


def test_knobs_that_exist_only_sometimes_come_back(tmp_path: Path) -> None:
    """With the simplest conditions that fit; a knob that no other explains is named."""
    space = Space(
        [
            Choice("layout", ("row", "a 'b'\t", "\x1b")),
            IntegerRange("depth", 1, 8, when="layout == 'row'"),
            OrderedValues("extra", (2, 4), when="depth > 3 and depth < 7"),
            Permutation("order", ("i", "j"), when="layout != 'row'"),
            OrderedValues("a", (1, 2, 3)),
            Flag("b", when="a * 2 == 4 or layout == 'row'"),
        ]
    )
    trials = [
        trial(n, Status.OK, space.configuration(values), metrics=estimates(time=1.0 + n))
        for n, values in enumerate(space.feasible)
    ]
    file = tmp_path / "trials.json"
    write_trials(file, study(TIME), trials, {})
    (tmp_path / "space.yaml").write_text(space_document(read_recording(file), file, tmp_path / "space.yaml"))
    spec = limit_to_recording(read_spec(tmp_path / "space.yaml"))
    conditions = {knob.name: knob.when.text for knob in spec.space.knobs if knob.when is not None}
    assert conditions["depth"] == "layout == 'row'" and conditions["extra"] == "depth in [4, 5, 6]"
    assert {c.hash for c in spec.space.rows} == {trial.configuration.hash for trial in trials}
    replayed = ReplayedObjective.of(spec)
    assert [replayed.outcome(t.configuration).metrics["time"].value for t in trials] == [
        t.metrics["time"].value for t in trials
    ]


def test_configurations_without_knobs_are_no_space(tmp_path: Path) -> None:
    file = tmp_path / "trials.json"
    file.write_text(json.dumps({"results": [{"configuration": {}, "times": {"runtimes": [1.0]}}]}))
    with pytest.raises(InputError, match="have no knobs"):
        space_document(read_recording(file), file, tmp_path / "space.yaml")


def test_a_knob_that_nothing_explains_is_named(tmp_path: Path) -> None:
    results: list[dict[str, Any]] = [
        {"configuration": {"a": 1, "b": 2}, "measurements": [{"name": "time", "value": 1.0}]},
        {"configuration": {"a": 1}, "measurements": [{"name": "time", "value": 1.0}]},
    ]
    file = tmp_path / "trials.json"
    file.write_text(json.dumps({"results": results}))
    recording = read_recording(file)
    assert len(recording.entries) == 2
    with pytest.raises(InputError, match="1 of 2 configurations lack the knob 'b'"):
        space_document(recording, file, tmp_path / "space.yaml")
