"""Several measurements at once, each in a lane of its own; the GPUs are only names here."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from autotune.measure.cores.turns import Place, find_place
from autotune.measure.gpu.claims import GpuClaim
from autotune.provenance.host.gpus import GpuState
from autotune.session.execution import lane as executor_lane
from autotune.session.execution.lane import Lane, cores_of, find_lanes, remark_on, strangers
from autotune.session.execution.workers import WorkerExecutor
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import MeasureSettings
from tests.session.execution.test_executor import collect, submit

OBJECTIVE = """
import os, time
import autotune

class Meeting(autotune.Objective):
    def measure(self, loaded, rng):
        mine, other = ("a", "b") if os.environ["CUDA_VISIBLE_DEVICES"] == "7" else ("b", "a")
        folder = self.context.workload["folder"]
        open(os.path.join(folder, mine), "w").close()
        deadline = time.monotonic() + 60
        while not os.path.exists(os.path.join(folder, other)) and time.monotonic() < deadline:
            time.sleep(0.01)
        return 1.0 if os.path.exists(os.path.join(folder, other)) else 2.0
"""


def gpu(key: str, visible: str) -> GpuClaim:
    return GpuClaim(key, visible, "H200", None)


def test_lanes_measure_at_the_same_time_and_see_a_gpu_each(tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    space = f"""
autotune: 1
name: lanes
objective: objective.py:Meeting
workload: {{folder: {tmp_path}}}
metrics: {{time: {{goal: minimize, unit: s}}}}
knobs: {{x: {{range: [0, 99], default: 0}}}}
measure: {{cores: 0, warmup: 0}}
"""
    spec = parse_spec(space, tmp_path / "space.yaml", {})
    lanes = tuple(
        Lane(find_place(0, tmp_path, gpu=key), gpu(key, visible))
        for key, visible in (("GPU-1", "7"), ("GPU-2", "8"))
    )
    with closing(WorkerExecutor(spec, {}, lanes=lanes)) as executor:
        submit(executor, 1, 2)
        _, outcomes = collect(executor, 2)
    assert {o.metrics["time"].value for o in outcomes.values()} == {1.0}, "each waited for the other"
    assert {o.facts["gpu"] for o in outcomes.values()} == {"GPU-1", "GPU-2"}


def test_two_searches_take_turns_on_one_gpu(tmp_path: Path) -> None:
    one, other = (find_place(0, tmp_path, gpu="GPU-1").turn for _ in range(2))
    elsewhere = find_place(0, tmp_path, gpu="GPU-2").turn
    assert not one.held and one.begin() and not other.begin() and elsewhere.begin()
    one.end()
    assert other.begin()
    for turn in (one, other, elsewhere):
        turn.close()


def test_without_gpus_there_is_one_lane(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AUTOTUNE_LOCKS", str(tmp_path))
    lanes = find_lanes(MeasureSettings(cores=0))
    assert len(lanes) == 1 and lanes[0].gpu is None and lanes[0].environment == {} and lanes[0].facts == {}
    assert cores_of(lanes) == lanes[0].place.cores and remark_on(lanes, MeasureSettings(cores=0)) == ""
    assert "there is no GPU here" in remark_on(lanes, MeasureSettings(cores=0, gpus=1))


def test_fewer_cores_than_a_measurement_wants_are_told_of(tmp_path: Path) -> None:
    lanes = (Lane(find_place(1, tmp_path)),)
    assert remark_on(lanes, MeasureSettings(cores=1)) == ""
    assert "measure.cores is 2, and no more than 1 core can be used" in remark_on(
        lanes, MeasureSettings(cores=2)
    )
    for lane in lanes:
        lane.close()


def test_where_one_lane_cannot_be_had_nothing_stays_claimed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A process that goes on, a notebook say, had kept them from every other search."""
    monkeypatch.setenv("AUTOTUNE_LOCKS", str(tmp_path))
    found = [{"name": "H200", "uuid": f"GPU-{number}"} for number in (1, 2)]
    monkeypatch.setattr(executor_lane, "query_gpus", lambda: found)

    def refused(wanted: int, gpu: str) -> Place:
        if gpu == "GPU-2":
            raise KeyboardInterrupt
        return find_place(wanted, gpu=gpu)

    with monkeypatch.context() as interrupted:
        interrupted.setattr(executor_lane, "find_place", refused)
        with pytest.raises(KeyboardInterrupt):
            find_lanes(MeasureSettings(cores=1, gpus=2))
    lanes = find_lanes(MeasureSettings(cores=1, gpus=2))
    assert [lane.gpu is not None and lane.gpu.shared for lane in lanes] == [False, False]
    assert not lanes[0].place.cores.shared
    for lane in lanes:
        lane.close()


def state(processes: int | None) -> GpuState:
    return GpuState(0, 1980, 2619, 60, 500.0, 37, 0, 0, processes)


def test_a_gpu_that_others_use_is_said() -> None:
    claim = GpuClaim("GPU-1", "0", "H200", None)
    assert strangers([claim], ["GPU-1"], [state(2)]) == [], "shared: they are searches as well"


def test_strangers_are_counted(tmp_path: Path) -> None:
    from autotune.measure.cores.turns import FileLock

    lock = FileLock(tmp_path / "claim")
    claim = GpuClaim("GPU-1", "0", "H200", lock)
    (said,) = strangers([claim], ["GPU-2", "GPU-1"], [state(5), state(2)])
    assert said.startswith("H200 (GPU-1) has 2 other processes on it, in use 37 % of the time")
    assert strangers([claim], ["GPU-1"], [state(0)]) == strangers([claim], ["GPU-1"], [state(None)]) == []
    claim.close()
