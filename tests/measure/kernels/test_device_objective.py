"""Kernels over tensors, for real on the CPU: what the oracle lets through, and what a reading is made of."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autotune.measure.gpu.apparatus import HostApparatus
from autotune.measure.gpu.monitor import Monitor
from autotune.measure.gpu.tensors import GUARD_BYTES
from autotune.measure.kernels import device_objective
from autotune.measure.kernels.device_objective import DeviceObjective
from autotune.measure.kernels.library_call import LibraryCall
from autotune.measure.kernels.roofline import Peaks, Work
from autotune.measure.objective import Context, Infeasible, WrongAnswer
from autotune.measure.outcome import Estimate
from autotune.measure.phases.runner import Runner
from autotune.space.spec import MeasureSettings, MetricSpec
from autotune.status import Status
from tests.measure.gpu.fakes import FakeDevice

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch installs it")
pytestmark = pytest.mark.torch


def context(**workload: Any) -> Context:
    return Context({"device": "cpu", **workload}, {}, Path())


class Kernel(DeviceObjective):
    """out = x + 1, computed by whatever is loaded."""

    rows = 4

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"x": torch.randn(self.rows, 5, generator=self.generator(rng), device=self.device)}

    def outputs(self) -> Mapping[str, Any]:
        return {"out": ((self.rows, 5), torch.float32)}

    def reference(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"out": inputs["x"].to(torch.float64) + 1}

    def call(self, loaded: Callable[..., None], inputs: Any, outputs: Any) -> None:
        loaded(inputs["x"], outputs["out"])

    def work(self) -> Work:
        return Work(bytes=2 * self.rows * 5 * 4, operations=self.rows * 5)


class Ragged(Kernel):
    """Its workload has its number of rows, and 3 must be right as well."""

    def __init__(self, given: Context) -> None:
        super().__init__(given)
        self.rows = int(given.workload.get("rows", 4))

    def vary(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"rows": 3}


class Replaying(HostApparatus):
    """A CPU with graphs: what is captured is run again."""

    def capture(self, run: Callable[[], None]) -> Callable[[], None]:
        return lambda: run()


def right(x: Any, out: Any) -> None:
    torch.add(x, 1, out=out)


def check(kernel: Callable[..., None], kind: type[Kernel] = Kernel) -> float:
    return kind(context()).check(kernel, np.random.default_rng(0))["error"]


def test_cuda_is_its_first_device() -> None:
    """PyTorch makes no device current that has no number: each trial of such a workload had crashed."""
    device = Kernel(Context({"device": "cuda"}, {}, Path())).device
    assert (device.type, device.index) == ("cuda", 0)
    assert Kernel(Context({"device": "cuda:1"}, {}, Path())).device.index == 1


def test_a_gpu_that_a_worker_does_not_see_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``measure: {gpus: 1}`` each trial had crashed with an invalid device ordinal."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert Kernel(Context({"device": "cuda:0"}, {}, Path())).device.index == 0
    with pytest.raises(Infeasible, match=r"no cuda:1: .* sees is cuda:0.*its own alone"):
        _ = Kernel(Context({"device": "cuda:1"}, {}, Path())).device


@pytest.mark.parametrize("kind", [Kernel, Ragged])
def test_a_right_kernel_passes(kind: type[Kernel]) -> None:
    assert check(right, kind) < 1e-6


def test_an_element_that_is_never_written_is_noticed() -> None:
    def forgetful(x: Any, out: Any) -> None:
        out[:, :4] = x[:, :4] + 1

    with pytest.raises(
        WrongAnswer, match=r"out\[0, 4\] is nan .* perhaps never written; 0.2 of out is wrong"
    ):
        check(forgetful)


def test_an_answer_of_the_last_trial_is_not_taken_for_this_ones() -> None:
    objective = Kernel(context())
    objective.check(right, np.random.default_rng(0))
    with pytest.raises(WrongAnswer, match="never written"):
        objective.check(lambda x, out: None, np.random.default_rng(0))


@pytest.mark.parametrize("kind", [Kernel, Ragged])
@pytest.mark.parametrize("place", [-1, 20, -GUARD_BYTES // 4, 15 + GUARD_BYTES // 4])
def test_what_lies_outside_an_input_is_no_number(kind: type[Kernel], place: int) -> None:
    def too_far(x: Any, out: Any) -> None:
        pointer = ctypes.cast(x.data_ptr(), ctypes.POINTER(ctypes.c_float))
        torch.add(x, 1 + 0 * pointer[place], out=out)

    with pytest.raises(WrongAnswer, match=r"out\[0, 0\] is nan"):
        check(too_far, kind)


def test_writing_outside_is_noticed() -> None:
    def spill(x: Any, out: Any) -> None:
        right(x, out)
        out.as_strided((21,), (1,))[20] = 0

    with pytest.raises(WrongAnswer, match="writes outside its buffer: byte 1 behind out was changed"):
        check(spill)


def test_writing_outside_an_input_is_noticed() -> None:
    def spill(x: Any, out: Any) -> None:
        right(x, out)
        x.as_strided((21,), (1,), x.storage_offset())[20] = 0

    with pytest.raises(WrongAnswer, match="writes outside its buffer: byte 1 behind x was changed"):
        check(spill)


def test_a_changed_input_is_noticed_even_where_the_answer_is_right() -> None:
    def spoil(x: Any, out: Any) -> None:
        right(x, out)
        x[2, 2] = 0

    with pytest.raises(WrongAnswer, match="changes its input x"):
        check(spoil)


def test_a_tail_that_only_another_shape_shows_is_noticed() -> None:
    def pairs(x: Any, out: Any) -> None:
        even = len(x) // 2 * 2
        out[:even] = x[:even] + 1

    assert check(pairs) < 1e-6
    with pytest.raises(WrongAnswer, match=r"where the workload has rows 3: out\[2, 0\]"):
        check(pairs, Ragged)


@pytest.mark.parametrize("caches", ["warm", "cold"])
def test_a_reading_is_the_time_of_a_call(caches: str) -> None:
    objective = Kernel(context(caches=caches))
    objective.apparatus.flush_bytes = 1 << 16
    rng = np.random.default_rng(0)
    values = [objective.measure(right, rng).values["time"] for _ in range(3)]
    assert all(1e-8 < value < 1 for value in values)


def test_where_caches_are_cold_each_call_has_fresh_tensors() -> None:
    objective = Kernel(context(caches="cold"))
    objective.apparatus.flush_bytes = 1 << 16
    seen: list[int] = []

    def watch(x: Any, out: Any) -> None:
        seen.append(x.data_ptr())
        right(x, out)

    rng = np.random.default_rng(0)
    objective.measure(watch, rng)
    seen.clear()
    objective.measure(watch, rng)
    plan = objective._round.timer.plan
    assert len(set(seen[: plan.calls])) == plan.calls == plan.sets


@pytest.mark.parametrize(
    ("fact", "value", "said"),
    [
        ("caches", "tepid", "one of cold, warm, and is 'tepid'"),
        ("energy", "no", "true or false, and is 'no'"),
        ("device", "gpu", "cpu, cuda or a GPU such as cuda:1, and is 'gpu'"),
        ("device", 0, "cpu, cuda or a GPU such as cuda:1, and is 0"),
    ],
)
def test_what_is_said_of_the_device_is_verified_before_anything_is_measured(
    fact: str, value: object, said: str
) -> None:
    """A search on a GPU had ended in its first trial; ``energy: no`` in quotes had counted energy."""
    with pytest.raises(Infeasible, match=f"{fact} should be {said}"):
        Kernel(context(**{fact: value}))


def test_an_answer_that_a_library_gives_elsewhere_is_looked_at_but_not_copied_in_a_reading() -> None:
    answers: list[Any] = []

    def library(kernel: Kernel, inputs: Any, outputs: Any) -> Any:
        answers.append(outputs["out"])
        return inputs["x"] + 1

    objective = Kernel(context())
    assert objective.check(LibraryCall(library), np.random.default_rng(0))["error"] < 1e-6
    assert bool(torch.isfinite(answers[-1]).all()), "it was copied"
    loaded, rng = LibraryCall(library), np.random.default_rng(0)
    objective.measure(loaded, rng)
    answers[-1].fill_(-20)
    objective.measure(loaded, rng)
    assert bool((answers[-1] == -20).all()), "it was not"
    with pytest.raises(WrongAnswer, match=r"out\[0, 0\]"):
        objective.check(LibraryCall(lambda _, inputs, outputs: inputs["x"] + 2), np.random.default_rng(0))


def test_the_graph_of_a_library_that_answers_elsewhere_is_as_good_as_another() -> None:
    """Its readings had been launched call by call, and the launches were to blame for its being slow."""

    def run(loaded: Any) -> Any:
        objective = Kernel(context(caches="warm"))
        objective._apparatus = Replaying()
        objective.measure(loaded, np.random.default_rng(0))
        return objective._round.timer  # type: ignore[union-attr]

    assert run(LibraryCall(lambda _, inputs, outputs: inputs["x"] + 1)).captured
    assert run(LibraryCall(lambda _, inputs, outputs: right(inputs["x"], outputs["out"]))).captured
    assert run(right).captured
    lost = run(lambda x, out: None)
    assert not lost.captured and "writes no output" in lost.graph_problem


def test_a_whole_trial_through_the_runner() -> None:
    metrics = (MetricSpec("time", "minimize", "s"), MetricSpec("error", at_most=1e-6))
    settings = MeasureSettings(min_readings=3, max_readings=4, warmup=1)
    outcome = Runner(Kernel(context()), metrics, settings).measure(lambda: right, 1)
    assert outcome.status is Status.OK and outcome.metrics["time"].n >= 3
    timing = outcome.facts["timing"]
    assert isinstance(timing, dict) and timing["caches"] == "warm" and timing["launched"] == "calls"
    json.dumps(outcome.facts)


def test_energy_that_is_not_counted_is_said_and_not_made_up() -> None:
    sample = Kernel(context(energy=True)).measure(right, np.random.default_rng(0))
    assert set(sample.values) == {"time"}
    assert str(sample.facts["energy"]).startswith("not known")


def test_known_peaks_give_the_share_of_the_roofline() -> None:
    objective = Kernel(context())
    objective._peaks = Peaks(bandwidth=160.0, operations={})  # its 160 bytes take a second
    sample = objective.measure(right, np.random.default_rng(0))
    roof = sample.facts["roofline"]
    assert isinstance(roof, dict) and roof["floor"] == 1.0 and roof["bound"] == "memory"
    assert roof["share"] == pytest.approx(1 / sample.values["time"], rel=1e-3)


class Listening(Monitor):
    """Notes that it was asked who else is on the device."""

    asked = 0

    def company(self) -> Mapping[str, int]:
        self.asked += 1
        return {}


class Awaited(Kernel):
    """Notes how often its oracle was asked; its inputs lie wherever they are."""

    expected = 0

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"x": torch.ones(self.rows, 5)}

    def reference(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        self.expected += 1
        return super().reference(inputs)


@pytest.mark.parametrize("final", [False, True])
def test_a_gpu_is_woken_ahead_and_its_peaks_are_measured_for_the_search_alone(
    final: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several finalists would measure them at the same time: they read what the search has written."""
    measured = []

    def peaks(*_: object) -> Peaks:
        measured.append(1)
        return Peaks(160.0, {})

    monkeypatch.setattr(device_objective, "known_peaks", peaks)
    objective, apparatus, monitor = Awaited(context()), FakeDevice(), Listening()
    objective._device, objective._apparatus = SimpleNamespace(type="cuda"), apparatus
    objective._monitor, objective.final = monitor, final
    objective.stand_by()
    ahead = 0 if final else 1
    assert apparatus.done == ["flush"] + ["synchronise"] * (1 + ahead) and monitor.asked == 1
    assert len(measured) == objective.expected == ahead


def test_on_the_cpu_there_is_nothing_to_wake() -> None:
    objective = Kernel(context())
    objective.stand_by()
    assert objective._apparatus is None and objective._monitor is None and objective._peaks is None


class AsOnGpu(Kernel):
    """The CPU read by the rules for a GPU: warmed up, looked at, settled, and kept at it between readings."""

    def __init__(self) -> None:
        super().__init__(context(caches="warm"))
        milliseconds = count()  # each look at the monitor's clock takes one, however fast this machine is
        self._device = SimpleNamespace(type="cuda")
        self._apparatus, self._monitor = HostApparatus(), Monitor(None, lambda: next(milliseconds) * 1e-3)

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"x": torch.ones(self.rows, 5)}

    def _guarded(self) -> Any:
        return {"out": device_objective.GuardedTensor((self.rows, 5), torch.float32, torch.device("cpu"))}

    def _roof(self) -> None:
        return None


def test_a_trial_is_looked_at_and_settled_unless_it_is_hopeless() -> None:
    """The worst and the best incumbent there can be: nothing depends on what is read."""
    objective = AsOnGpu()
    settings = MeasureSettings(warmup=1, min_readings=3, max_readings=4)
    runner = Runner(objective, (MetricSpec("time", "minimize"), MetricSpec("error")), settings)

    def outcome(incumbent: float) -> Any:
        return runner.measure(lambda: right, 0, Estimate.of_one(incumbent))

    first = outcome(1e6)  # the device may have been idle: settled from the beginning
    assert first.status is Status.OK and objective.monitor.settled
    assert not [r for r in first.readings if r.discarded == "unsettled"]
    second = outcome(1e6)
    assert second.status is Status.OK and objective.monitor.settled
    assert [r.discarded for r in second.readings if r.metric == "time"].count("unsettled") >= 3
    hopeless = outcome(1e-12)
    assert hopeless.status is Status.PRUNED and not objective.monitor.settled


class Zeros(Kernel):
    rows = 20

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"x": torch.zeros(self.rows, 5)}


@pytest.mark.parametrize(("kind", "expected"), [(Zeros, {"x": 0.0}), (Kernel, {})])
def test_a_check_notes_inputs_that_are_one_number_throughout(
    kind: type[Kernel], expected: Mapping[str, float]
) -> None:
    kernel = kind(context())
    kernel.check(lambda x, out: torch.add(x, 1, out=out), np.random.default_rng(0))
    assert kernel.constant_inputs == expected
