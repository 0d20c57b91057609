"""What is read of kernels that draw more than their device may for long: on a simulated one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autotune.measure.gpu import monitor, timing
from autotune.measure.kernels import device_objective
from autotune.measure.kernels.device_objective import DeviceObjective
from autotune.measure.objective import Context
from autotune.measure.outcome import Estimate, Outcome
from autotune.measure.readings import Sample
from autotune.measure.runner import Runner
from autotune.space.configuration import Configuration
from autotune.space.spec import MeasureSettings, MetricSpec
from autotune.status import Status
from tests.measure.gpu.power_limited import PowerLimitedGpu, Work

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch installs it")
pytestmark = pytest.mark.torch

HUNGRY, FRUGAL, HOPELESS = Work(186e-6, 1000.0), Work(200e-6, 600.0), Work(380e-6, 900.0)
"""At full clock the first is faster than the second, and in the long run slower."""

CHECKING_SECONDS = 4e-3
"""What the host does in each part of a check."""

BETWEEN_SECONDS = 1.5e-3
"""What the host does between two readings: keeping one, and deciding whether there is to be another."""


class Simulated(DeviceObjective):
    """out = x + 1, which takes the device as long as what was loaded says."""

    def __init__(self, gpu: PowerLimitedGpu) -> None:
        super().__init__(Context({"device": "cpu", "caches": "warm"}, {}, Path()))
        self.gpu = gpu
        self._device, self._apparatus = SimpleNamespace(type="cuda"), gpu
        self._monitor = monitor.Monitor(gpu, gpu.clock, gpu.spend)

    def make_inputs(self, rng: np.random.Generator) -> Mapping[str, Any]:
        return {"x": torch.ones(2)}

    def outputs(self) -> Mapping[str, Any]:
        return {"out": ((2,), torch.float32)}

    def reference(self, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"out": inputs["x"].to(torch.float64) + 1}

    def call(self, loaded: Work, inputs: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        torch.add(inputs["x"], 1, out=outputs["out"])
        self.gpu.launch(loaded)

    def measure(self, loaded: Work, rng: np.random.Generator) -> Sample:
        sample = super().measure(loaded, rng)
        self.gpu.spend(BETWEEN_SECONDS)
        return sample

    def _check_once(self, *inputs: Any) -> float:
        error = super()._check_once(*inputs)
        self.gpu.spend(CHECKING_SECONDS)
        return error

    def _guarded(self) -> Any:
        return {"out": device_objective.GuardedTensor((2,), torch.float32, torch.device("cpu"))}

    def _roof(self) -> None:
        return None


class Trials:
    """Takes one trial after the other on one device, each held against the best before it."""

    def __init__(self, gpu: PowerLimitedGpu) -> None:
        metrics = (MetricSpec("time", "minimize"), MetricSpec("error"))
        self.runner = Runner(Simulated(gpu), metrics, MeasureSettings())
        self.best: Estimate | None = None

    def take(self, work: Work) -> Outcome:
        outcome = self.runner.measure(lambda: work, 0, self.best)
        found = outcome.metrics["time"]
        if outcome.status is Status.OK and (self.best is None or found.value < self.best.value):
            self.best = found
        return outcome


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> Iterator[Trials]:
    gpu = PowerLimitedGpu()
    monkeypatch.setattr(timing, "perf_counter", gpu.clock)
    yield Trials(gpu)


def counted(outcome: Outcome) -> list[float]:
    return [r.value for r in outcome.readings if r.metric == "time" and not r.discarded]


def test_the_simulated_device_is_fast_for_some_tens_of_milliseconds_and_again_behind_a_pause() -> None:
    gpu = PowerLimitedGpu()
    fast = 0.0
    while gpu._clock_share(HUNGRY.watts) == 1:
        gpu.run(HUNGRY)
        fast += HUNGRY.seconds
    assert 0.05 < fast < 0.1
    assert gpu.steady_seconds(HUNGRY) == pytest.approx(210e-6, rel=0.01)
    gpu._pass(0.05, watts=100.0)
    before = gpu.reached
    gpu.run(HUNGRY)
    assert gpu.reached - before == pytest.approx(HUNGRY.seconds)


@pytest.mark.parametrize("first", [HUNGRY, FRUGAL, HOPELESS])
def test_each_is_known_as_it_is_in_the_long_run_whatever_ran_before(trials: Trials, first: Work) -> None:
    trials.take(first)
    for work in (HUNGRY, FRUGAL, HUNGRY, FRUGAL, FRUGAL, HUNGRY):
        outcome = trials.take(work)
        steady = PowerLimitedGpu().steady_seconds(work)
        assert outcome.status in (Status.OK, Status.PRUNED)
        assert counted(outcome) == pytest.approx([steady] * len(counted(outcome)), rel=0.015)


def test_with_pauses_between_readings_the_hungry_one_would_win(
    trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That what is read above is right is owed to what bridges them."""
    monkeypatch.setattr(monitor, "BRIDGE_SECONDS", 0.0)
    monkeypatch.setattr(monitor, "POWER_STEP_SECONDS", 0.0)
    trials.take(FRUGAL)
    assert trials.take(HUNGRY).metrics["time"].value < 0.95 * PowerLimitedGpu().steady_seconds(HUNGRY)


def test_the_hopeless_one_is_rejected_before_it_has_settled(trials: Trials) -> None:
    trials.take(FRUGAL)
    outcome = trials.take(HOPELESS)
    assert outcome.status is Status.PRUNED
    assert not [r for r in outcome.readings if r.discarded == "unsettled"]
    assert outcome.facts["warmed"] < monitor.SETTLING.least_seconds


def test_each_reading_of_a_finale_is_of_several_steps_of_the_clock(trials: Trials) -> None:
    """And none follows one that only warms caches, which was so for those that take less than 0.1 s."""
    simulated: Simulated = trials.runner.objective  # type: ignore[assignment]
    taken: list[int] = []
    read = simulated._read_once
    simulated._read_once = lambda this: (taken.append(1), read(this))[1]  # type: ignore[method-assign]
    assert trials.runner.enter(Configuration({}), lambda: HUNGRY, 0).status is Status.OK
    for seed in range(4):
        taken.clear()
        outcome = trials.runner.read(seed)
        assert len(taken) == monitor.STEPS_A_ROUND
        assert [r.discarded for r in outcome.readings if r.metric == "time"] == [""]
        assert counted(outcome) == pytest.approx([PowerLimitedGpu().steady_seconds(HUNGRY)], rel=0.015)
