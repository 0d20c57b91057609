"""A recording becomes a space file that reads back and holds exactly what was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from autotune.errors import InputError
from autotune.interop.space_files.kernel_tuner import space_document
from autotune.measure.recordings.read import read_recording
from autotune.measure.recordings.replay import ReplayedObjective, limit_to_recording
from autotune.space.reading.reader import read_spec
from autotune.space.spec import ReplayObjective
from autotune.status import Status
from tests.recordings import record

NAME = "my recording (2).json"
SHARED = Path(__file__).parents[4] / "shared" / "recorded"


def imported(source: Path, file: Path) -> Any:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(space_document(read_recording(source), source, file))
    return limit_to_recording(read_spec(file))


PARAMS: dict[str, list[Any]] = {
    "tile": [32, 16, 8],
    "ratio": [0.5, 1e-05, 2],
    "fused": [True, False],
    "layout": ["row", "no", "1", 'a "quoted: {one}', "1e-3"],
    "shape": [[1, 2], [2, 1]],
    "many": list(range(0, 4000, 40)),
    "on": [7],
}


def entry(time: object = 1.0, **own: Any) -> dict[str, Any]:
    return {name: values[0] for name, values in PARAMS.items()} | {"time": time} | own


ENTRIES = [
    entry(1.0, energy=3.0),
    entry("RuntimeFailedConfig", tile=8),
    *(entry(2.0 + i, layout=layout, energy=1.0) for i, layout in enumerate(PARAMS["layout"])),
    entry(9.0, fused=False, ratio=1e-05, shape=[2, 1], many=3960, energy=2.0),
]


def test_numbers_that_no_metric_can_be_called_after_are_named(tmp_path: Path) -> None:
    others = {"GFLOP per s": 5.0, "GFLOP/s": 5.0, "energy": 1.0}
    entries = [entry(1.0 + tile, tile=tile, **others) for tile in PARAMS["tile"]]
    spec = imported(record(tmp_path / NAME, PARAMS, entries), tmp_path / "space.yaml")
    assert "# Recorded too, by names that no metric can have: GFLOP per s.\n" in spec.text
    assert [metric.name for metric in spec.metrics] == ["time", "GFLOP/s", "energy"]


def test_every_kind_of_value_reads_back(tmp_path: Path) -> None:
    source = record(tmp_path / NAME, PARAMS, ENTRIES, kernel_name="k\n: #", device_name="GPU")
    spec = imported(source, tmp_path / "spaces" / "space.yaml")
    recording = read_recording(source)
    assert {c.hash for c in spec.space.rows} == {e.configuration.hash for e in recording.entries}
    assert len(spec.space.feasible) == len(recording.entries)
    assert isinstance(spec.objective, ReplayObjective)
    assert spec.objective.file.resolve() == source
    assert spec.name == "my-recording-2-"
    assert [knob.name for knob in spec.space.knobs] == list(PARAMS)
    assert [m.name for m in spec.metrics] == ["time", "energy"]
    assert all(len(line) <= 110 for line in spec.text.splitlines())


@pytest.mark.parametrize("length", [80, 84, 98, 200])
def test_long_names_leave_the_values_whole(tmp_path: Path, length: int) -> None:
    name, values = "n" * length, [1_000_000_000_000_007 * i for i in range(1, 9)]
    source = record(tmp_path / NAME, {name: values}, [{name: value, "time": 1.0} for value in values])
    [knob] = imported(source, tmp_path / "space.yaml").space.knobs
    assert knob.cells[0].values == tuple(values)


def test_texts_that_no_yaml_may_hold_leave_the_file_readable(tmp_path: Path) -> None:
    rows = [{"a": 1, "time": 1.0, "true": 2.0, "NULL": 3.0}]
    source = record(tmp_path / NAME, {"a": [1]}, rows, kernel_name="k\ud800\x1b", device_name="\udfff")
    spec = imported(source, tmp_path / "space.yaml")
    assert len(spec.space.feasible) == 1 and spec.text.startswith("# k?? on ?: 1 recorded")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (float("inf"), "a can be inf"),
        (10**400, "a can be 1000"),
        ("\ud800", "a can be '\\ud800'"),
        ([1, float("-inf")], "a can be (1, -inf)"),
        (None, "a knob cannot be set to None"),
    ],
)
def test_values_that_no_space_file_can_hold_are_refused(tmp_path: Path, value: Any, says: str) -> None:
    rows = [{"a": value, "time": 1.0}, {"a": 1, "time": 1.0}]
    source = record(tmp_path / NAME, {"a": [value, 1]}, rows)
    with pytest.raises(InputError) as raised:
        space_document(read_recording(source), source, tmp_path / "space.yaml")
    assert says in str(raised.value)


def test_the_default_is_recorded_and_typical(tmp_path: Path) -> None:
    in_no_order = [*ENTRIES[4:], *ENTRIES[:4]]
    spec = imported(record(tmp_path / NAME, PARAMS, in_no_order), tmp_path / "space.yaml")
    default = spec.space.default()
    outcome = ReplayedObjective.of(spec).outcome(default)
    times = sorted(e["time"] for e in ENTRIES if not isinstance(e["time"], str))
    assert outcome.status is Status.OK
    assert outcome.metrics["time"].value == pytest.approx(times[(len(times) - 1) // 2] / 1e3)


@pytest.mark.parametrize(
    ("name", "called"),
    [("gemm-a100.json", "gemm-a100"), (".json", "replay"), ("..json", "replay"), ("g" * 120, "g" * 100)],
)
def test_a_study_is_called_after_its_recording(tmp_path: Path, name: str, called: str) -> None:
    source = record(tmp_path / name, {"a": [1]}, [{"a": 1, "time": 1.0}])
    spec = imported(source, tmp_path / "space.yaml")
    assert spec.name == called and spec.budget.trials == 200


def test_of_a_sound_recording_nothing_is_said_that_it_has_not(tmp_path: Path) -> None:
    text = imported(
        record(tmp_path / NAME, {"a": [1]}, [{"a": 1, "time": 1.0}]), tmp_path / "space.yaml"
    ).text
    assert text.startswith(
        "# a recorded space: 1 recorded configurations, 0 of them failed. Nothing is measured"
    )
    for word in ("damaged", "Left out", "Recorded too", "lack a knob"):
        assert word not in text


def test_a_damaged_recording_says_so(tmp_path: Path) -> None:
    source = record(tmp_path / NAME, PARAMS, ENTRIES)
    source.write_bytes(source.read_bytes()[:-200])
    assert "The recording is damaged: it breaks off" in " ".join(
        imported(source, tmp_path / "space.yaml").text.replace("\n# ", " ").split()
    )


def test_refused(tmp_path: Path) -> None:
    source = record(tmp_path / NAME, {"in": [1], "a b": [2]}, [{"in": 1, "a b": 2, "time": "InvalidConfig"}])
    with pytest.raises(InputError) as caught:
        space_document(read_recording(source), source, tmp_path / "space.yaml")
    assert "'in' cannot name a knob" in str(caught.value)
    assert "'a b' cannot name a knob" in str(caught.value)
    assert "rename it in the recording" in str(caught.value)
    assert "nothing to replay" in str(caught.value)


def test_a_recording_without_knobs_or_with_a_name_that_no_text_can_hold_is_refused(tmp_path: Path) -> None:
    result = {"configuration": {}, "measurements": [{"name": "time", "value": 1.0, "unit": "s"}]}
    bare, odd = tmp_path / "bare.json", tmp_path / "odd\udc80.json"
    bare.write_text(json.dumps({"results": [result]}))
    record(odd, {"a": [1]}, [{"a": 1, "time": 1.0}])
    for source, says in ((bare, "have no knobs"), (odd, "rename it")):
        with pytest.raises(InputError, match=says):
            space_document(read_recording(source), source, tmp_path / "space.yaml")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared recordings are not on this machine")
@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("convolution-a100", 4362),
        ("convolution-mi250x", 4362),
        ("convolution-w7800", 4362),
        ("gemm-rtx3090", 17956),
        pytest.param("gemm-titanrtx", 17956, marks=pytest.mark.long),
        ("pnpoly-rtx3090", 4092),
        ("pnpoly-rtx3090.t4", 4092),
    ],
)
def test_shared_recordings(tmp_path: Path, name: str, size: int) -> None:
    spec = imported(SHARED / f"{name}.json.gz", tmp_path / "space.yaml")
    assert len(spec.space.feasible) == size
    replayed = ReplayedObjective.of(spec)
    assert replayed.outcome(spec.space.default()).status is Status.OK
    assert all(replayed.recording.find(row) is not None for row in spec.space.rows)


def test_a_recording_of_something_else_than_times_is_not_called_a_failure(tmp_path: Path) -> None:
    source = tmp_path / "scores.json"
    numbers = [{"name": name, "value": -2.5, "unit": ""} for name in ("power", "score")]
    result = {"configuration": {"x": 1}, "invalidity": "correct", "measurements": numbers}
    for tuned, named in (({}, "power"), ({"objectives": ["score"]}, "score")):
        source.write_text(json.dumps({"results": [result | tuned]}))
        found = rf"no times, only power, score.*\n.*{named}: \{{goal: maximize\}}"
        with pytest.raises(InputError, match=found):
            space_document(read_recording(source), source, tmp_path / "space.yaml")


def test_only_what_every_success_has_by_a_name_of_its_own_is_a_metric(tmp_path: Path) -> None:
    def measured(number: int, **others: float) -> dict[str, Any]:
        numbers = [{"name": name, "value": value, "unit": "\ud800"} for name, value in others.items()]
        time = {"name": "time", "value": float(number), "unit": "ms"}
        return {"configuration": {"x": number}, "invalidity": "correct", "measurements": [time, *numbers]}

    source = tmp_path / "powers.json"
    results = [measured(1, x=7.0, power=50.0, heat=1.0), measured(2, power=40.0, x=7.0)]
    source.write_text(json.dumps({"results": results}))
    spec = imported(source, tmp_path / "space.yaml")
    assert [(metric.name, metric.unit) for metric in spec.metrics] == [("time", "s"), ("power", "")]
    assert "# Recorded too, by names that no metric can have: x.\n" in spec.text


def test_results_with_other_numbers_than_a_time_are_counted_and_not_tried(tmp_path: Path) -> None:
    power = {"name": "power", "value": 50.0, "unit": "W"}
    results = [
        {"configuration": {"x": 1}, "measurements": [power, {"name": "time", "value": 2.0, "unit": "ms"}]},
        {"configuration": {"x": 2}, "measurements": [power]},
        {"configuration": {"x": 3}, "measurements": []},
    ]
    source, file = tmp_path / "powers.json", tmp_path / "space.yaml"
    source.write_text(json.dumps({"results": results}))
    assert [dict(one) for one in imported(source, file).space.feasible] == [{"x": 1}]
    said = " ".join(file.read_text().replace("\n# ", " ").split())
    assert "Left out, since they have no time: 1." in said
    assert "Left out while time is a goal, since they only have other numbers: 1." in said
