"""The commands that look into one thing on a GPU, where there is none: repeating, moving, recording power."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
import time
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from autotune.measure.gpu.conditions import Conditions
from autotune.measure.gpu.prospects import DRIVER
from autotune.measure.kernels.device_objective import DeviceObjective
from autotune.measure.objective import Context
from autotune.measure.outcome import Estimate
from autotune.measure.phases.runner import Runner
from autotune.provenance.device import device_facts, query_gpus
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import read_spec
from benchmarks import (
    gpu_gemm,
    gpu_limit,
    gpu_placement,
    gpu_products,
    gpu_repeat,
    gpu_search,
)
from benchmarks.gpu_search import SPACES

no_gpu = pytest.mark.skipif(bool(query_gpus()), reason="there is a GPU here")


def spec() -> Any:
    workload = gpu_gemm.SHAPES["square"]
    return read_spec(SPACES / "triton-gemm.yaml", device=device_facts("h200"), workload=workload)


class Waits(DeviceObjective):
    """A kernel that takes about 2 ms on the CPU."""

    def make_inputs(self, rng: Any) -> dict[str, Any]:
        import torch

        return {"x": torch.ones(1)}

    def outputs(self) -> dict[str, Any]:
        import torch

        return {"y": ((1,), torch.float32)}

    def call(self, loaded: Any, inputs: Any, outputs: Any) -> None:
        until = time.perf_counter() + 2e-3
        while time.perf_counter() < until:
            pass
        outputs["y"].copy_(inputs["x"])


def test_what_is_repeated_is_feasible_and_its_table_has_a_row_for_each() -> None:
    found = spec()
    for knobs in gpu_repeat.PRODUCTS.values():
        assert found.space.configuration({**found.space.default(), **knobs}) in found.space
    done = [
        gpu_repeat.Repeat(product, way, Estimate(time, time, time, 5, 0.01 * time), 0.3)
        for product in gpu_repeat.PRODUCTS
        for way in gpu_repeat.WAYS
        for time in (1.00e-4, 1.02e-4)
    ]
    rows = gpu_repeat.table(done)[2:]
    assert len(rows) == len(gpu_repeat.PRODUCTS) * len(gpu_repeat.WAYS)
    assert all("| 2 | 101 µs | 1.40% | 1.00% | 5.0 | 0.30 |" in row for row in rows)


def test_a_device_without_descriptors_has_the_other_products(capsys: pytest.CaptureFixture[str]) -> None:
    """On one before Hopper a trace had lost all of them, and repeating ended in a traceback."""
    found = read_spec(SPACES / "triton-gemm.yaml", device=device_facts("a100"))
    waits = Waits(Context({"device": "cpu"}, {}, Path()))
    here = gpu_products.Products(found, waits, Runner(waits, found.metrics, found.measure))
    wanted = {**gpu_repeat.PRODUCTS, **gpu_limit.PRODUCTS}
    lost = [name for name, knobs in wanted.items() if knobs is not None and not here.prepare(name, knobs)]
    assert lost == ["wide, by descriptors"]
    assert "wide, by descriptors is left out: 'loads' has a value, but" in capsys.readouterr().err


def test_the_recorded_limit_of_power_is_made_up_for(tmp_path: Path) -> None:
    """By the code that measures, on a trace of an H100."""
    trace = json.loads(gzip.decompress(gpu_limit.TRACE.read_bytes()))
    rows = [line.split("|") for line in gpu_limit.tables(trace) if line.startswith("| ")]
    cold = next(row for row in rows if row[1].strip() == "cold, 3 s each" and len(row) == 8)
    as_read, made_up = (float(cell.strip(" %")) for cell in (cold[4], cold[6]))
    assert as_read > 1.5 and made_up < 0.7


class Counter:
    """A device that draws ``watts``, as its counter says once in 20 ms."""

    def __init__(self, limit: float | None = 700.0, counts: bool = True) -> None:
        self.limit, self.counts = limit, counts

    def conditions(self) -> Conditions:
        return Conditions()

    def joules(self) -> float | None:
        return 700.0 * round(time.perf_counter() / 0.02) * 0.02 if self.counts else None

    def limit_watts(self) -> float | None:
        return self.limit

    def others(self) -> int | None:
        return None

    def utilisation(self) -> int | None:
        return None


@pytest.mark.parametrize("watcher", [None, Counter(limit=None), Counter(counts=False)])
def test_nothing_is_recorded_where_power_is_not_known(
    watcher: Counter | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would take minutes, and be of no use."""
    with pytest.raises(gpu_limit.RecordingError, match=r"nvidia-ml-py|its driver"):
        gpu_limit.Recorder(Waits(Context({"device": "cpu"}, {}, Path())), watcher, print)


def test_a_trace_takes_the_place_of_the_one_before_it(tmp_path: Path) -> None:
    file = tmp_path / "trace.json.gz"
    for runs in ([], [1]):
        gpu_limit._write(file, {"runs": runs})
        assert json.loads(gzip.decompress(file.read_bytes())) == {"runs": runs}
    assert list(tmp_path.iterdir()) == [file]


def test_a_trace_names_the_gpu_and_not_the_cpu_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {"name": "a CPU", "gpu_name": "NVIDIA H200"}
    monkeypatch.setattr(gpu_search, "facts", lambda: both)
    assert gpu_search.gpu_name() == "NVIDIA H200" and gpu_search.device_line().startswith("NVIDIA H200, ")


def test_tables_of_a_trace_without_a_window_say_so() -> None:
    run = {
        "before": gpu_limit.LONG_RUN,
        "product": "A",
        "began": 1.0,
        "calls": 10,
        "microseconds": [200.0] * 50,
    }
    trace = {
        "limit_watts": 700.0,
        "products": {"A": "one"},
        "recordings": [{"runs": [run], "counter": [(1.0, 5.0)]}],
    }
    assert gpu_limit.tables(trace)[-1] == "| one | 200.0 µs | - |"


@no_gpu
@pytest.mark.parametrize("module", [gpu_limit, gpu_placement, gpu_repeat])
def test_nothing_is_recorded_without_a_gpu(
    module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = "--record" if module is gpu_limit else "--out"
    monkeypatch.setattr(sys, "argv", [module.__name__, out, str(tmp_path / "found")])
    assert module.main() == 2 and DRIVER in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_is_moved_is_feasible_and_its_table_says_what_differs() -> None:
    found = read_spec(SPACES / "triton-gemm.yaml", device=device_facts("h100"), workload=gpu_placement.SKINNY)
    for knobs in gpu_placement.PRODUCTS.values():
        assert found.space.configuration({**found.space.default(), **knobs}) in found.space
    one, other, _ = gpu_placement.PRODUCTS
    readings = [{one: {"stayed": [level] * 3, "moved": [1e-4, 1.1e-4, 1.1e-4]}} for level in (1e-4, 1.1e-4)]
    readings[0][other] = {"stayed": [1e-4] * 3}
    stayed, moved, alone, *unread = gpu_placement.table(readings)[2:]
    assert stayed.endswith("| 10.0% | 0.0% |") and moved.endswith("| 0.0% | 10.0% |")
    assert alone.endswith("| stayed | 100 µs | 0.0% | 0.0% |")
    assert len(unread) == 3 and all("could not be read" in row for row in unread)


def test_a_process_that_fails_or_hangs_costs_its_own_readings(capsys: pytest.CaptureFixture[str]) -> None:
    program = [sys.executable, "-c"]
    right = [*program, "print('a warning'); print('{\"one\": {\"stayed\": [1e-4]}}')"]
    assert gpu_placement.readings_of(right) == {"one": {"stayed": [1e-4]}}
    assert gpu_placement.readings_of([*program, "raise SystemExit(3)"]) == {}
    assert gpu_placement.readings_of([*program, "import time; time.sleep(600)"], seconds=0.2) == {}
    said = capsys.readouterr().err
    assert "ended with 3" in said and "not done after 0 s" in said


# -- with PyTorch ------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="its kernel is PyTorch's")
def test_what_is_recorded_can_be_tabled(capsys: pytest.CaptureFixture[str]) -> None:
    kept: list[Any] = []
    recorder = gpu_limit.Recorder(Waits(Context({"device": "cpu"}, {}, Path())), Counter(), kept.append)

    def refused() -> object:
        raise ValueError("no such kernel")

    recorder.add("refused", refused)
    recorder.add("one", lambda: "loaded")
    assert "refused is left out: ValueError: no such kernel" in capsys.readouterr().err
    recorder.run("one", 0.4, gpu_limit.LONG_RUN, rest=0.0)
    recorder.run("one", 0.4, "a long rest", rest=gpu_limit.KEEPING_SECONDS)
    trace = json.loads(json.dumps(recorder.trace()))
    assert trace["products"] == {"A": "one"} and trace["limit_watts"] == 700.0
    runs = gpu_limit.runs_of(trace)
    assert [run.before for run in runs] == [gpu_limit.LONG_RUN, "a long rest"]
    # A run that is cut off behind the long rest would have lost nothing of what was before it.
    assert [run.before for one in kept for run in gpu_limit.runs_of(one)] == [gpu_limit.LONG_RUN]
    began = [run["began"] for run in trace["recordings"][0]["runs"]]
    assert all(run.at[-1] - start > 0.39 for run, start in zip(runs, began, strict=True))
    assert gpu_limit.tables(trace)[-1].startswith("| one | ")


class MayBeWrong(Waits):
    """It gives what it was given, or else ``gives``."""

    def reference(self, inputs: Any) -> Any:
        return {"y": inputs["x"]}

    def call(self, loaded: Any, inputs: Any, outputs: Any) -> None:
        super().call(loaded, inputs, outputs)
        outputs["y"] *= loaded["gives"]


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="its kernel is PyTorch's")
def test_what_does_not_enter_is_not_read_as_what_entered_before(capsys: pytest.CaptureFixture[str]) -> None:
    objective = MayBeWrong(Context({"device": "cpu"}, {}, Path()))
    found = spec()
    runner = Runner(objective, found.metrics, found.measure)
    read = partial(gpu_placement.read_product, runner, objective.apparatus)
    right, wrong = (Configuration({"gives": number}) for number in (1, 2))
    assert list(read("right", right, right)) == ["stayed", "moved"]
    assert read("wrong", wrong, wrong) == {}
    assert "wrong is left out: wrong: y[0] is 2.0" in capsys.readouterr().err
