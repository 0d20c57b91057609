"""What is read of kernels that draw more than their device may for long: on a simulated one."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autotune.measure.gpu import monitor, power_limit, timing
from autotune.measure.gpu.conditions import REASONS, Conditions
from autotune.measure.gpu.power_limit import CORRECTED_ERROR, EXPONENT, UNCORRECTED_ERROR
from autotune.measure.kernels import device_objective
from autotune.measure.kernels.device_objective import DeviceObjective
from autotune.measure.objective import Context
from autotune.measure.outcome import Estimate, Outcome
from autotune.measure.phases.runner import Runner
from autotune.measure.readings import Sample
from autotune.space.configuration import Configuration
from autotune.space.spec import MeasureSettings, MetricSpec
from autotune.status import Status
from tests.measure.gpu.power_limited import PowerLimitedGpu, Work

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch installs it")
pytestmark = pytest.mark.torch

HUNGRY, FRUGAL, HOPELESS = Work(186e-6, 923.0), Work(200e-6, 600.0), Work(380e-6, 850.0)
"""At full clock the first is faster than the second, and in the long run slower."""

CHECKING_SECONDS = 10e-3
"""What the host does in each part of a check. The device rests meanwhile."""

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
        self.gpu.spend(CHECKING_SECONDS)
        return super()._check_once(*inputs)

    def _guarded(self) -> Any:
        return {"out": device_objective.GuardedTensor((2,), torch.float32, torch.device("cpu"))}

    def _roof(self) -> None:
        return None


METRICS = (MetricSpec("time", "minimize"), MetricSpec("error"))


class Trials:
    """Takes one trial after the other on one device, each held against the best before it."""

    def __init__(self, gpu: PowerLimitedGpu) -> None:
        self.runner = Runner(Simulated(gpu), METRICS, MeasureSettings())
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
    fast, swing = 0.0, []
    while gpu.share == 1:
        gpu.run(HUNGRY)
        fast += HUNGRY.seconds
    assert 0.05 < fast < 0.1
    for _ in range(2000):
        before = gpu.reached
        gpu.run(HUNGRY)
        swing.append(gpu.reached - before)
    assert max(swing) > 1.05 * 210e-6 and min(swing[1000:]) < 0.98 * 210e-6
    assert gpu.steady_seconds(HUNGRY) == pytest.approx(210e-6, rel=0.01)
    gpu._rest(0.05)
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
        assert counted(outcome) == pytest.approx([steady] * len(counted(outcome)), rel=0.012)


def test_at_the_limit_one_reading_is_enough_and_says_how_far_it_may_be_off(trials: Trials) -> None:
    outcome = trials.take(HUNGRY)
    assert len(counted(outcome)) == 1
    known = outcome.metrics["time"]
    half = (known.high - known.low) / 2 / known.value
    assert half == pytest.approx(1.96 * outcome.facts["shared_error"]["time"], rel=0.01)
    assert CORRECTED_ERROR < half / 1.96 < 1.4 * CORRECTED_ERROR, "it is looked at every 4 ms"
    (reading,) = [r for r in outcome.readings if r.metric == "time" and not r.discarded]
    made_up = (reading.context["drawn_watts"] / reading.context["limit_watts"]) ** EXPONENT
    assert reading.value == pytest.approx(made_up * reading.context["as_read"])


def test_the_longer_it_takes_the_less_is_known_of_what_was_drawn(trials: Trials) -> None:
    """Since the counter is looked at less often: each 9 ms here."""
    work = Work(4e-3, 923.0)
    steady, offs, stated = PowerLimitedGpu().steady_seconds(work), [], []
    for _ in range(8):
        trials.best = None
        outcome = trials.take(work)
        offs.append(outcome.metrics["time"].value / steady - 1)
        stated.append(outcome.facts["shared_error"]["time"])
        trials.runner.objective.gpu.spend(0.0137)  # type: ignore[attr-defined]
    assert min(stated) > 1.3 * CORRECTED_ERROR and max(stated) < UNCORRECTED_ERROR
    assert math.sqrt(statistics.fmean(off**2 for off in offs)) < 1.3 * statistics.fmean(stated)


def test_a_long_one_at_the_limit_is_settled_by_its_first_readings_which_do_not_count(trials: Trials) -> None:
    long = Work(30e-3, 923.0)
    trials.take(FRUGAL)
    trials.best = Estimate(0.03, 0.03, 0.03, 1)  # so that it has a first look
    outcome = trials.take(long)
    assert [r.discarded for r in outcome.readings if r.metric == "time"].count("unsettled") >= 4
    steady = PowerLimitedGpu().steady_seconds(long)
    assert counted(outcome) == [pytest.approx(steady, rel=2 * UNCORRECTED_ERROR)]


def test_one_whose_readings_are_longer_than_the_clock_swings_is_read_as_everywhere_else(
    trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since each reading is long enough by itself: none is made of several, or thrown away to settle."""
    monkeypatch.setattr(PowerLimitedGpu, "utilisation", lambda gpu: 90)
    long = Work(1.0, 923.0)
    trials.take(FRUGAL)
    trials.best = Estimate(1.1, 1.1, 1.1, 3)
    outcome = trials.take(long)
    readings = [r for r in outcome.readings if r.metric == "time" and r.discarded != "warm-up"]
    assert len(readings) == len(counted(outcome)) <= 5
    assert not any("as_read" in r.context for r in readings)
    steady = PowerLimitedGpu().steady_seconds(long)
    assert counted(outcome) == pytest.approx([steady] * len(readings), rel=UNCORRECTED_ERROR)


def test_a_warm_up_that_counts_as_no_time_is_left_is_no_reading_of_a_settled_device(trials: Trials) -> None:
    trials.take(FRUGAL)
    outcome = trials.runner.measure(lambda: HUNGRY, 0, None, seconds=0.0)
    assert counted(outcome) == [pytest.approx(PowerLimitedGpu().steady_seconds(HUNGRY), rel=0.012)]


def test_what_comes_to_the_limit_late_is_as_it_is_there(trials: Trials) -> None:
    """It draws so little more than it may that its first readings, once it has settled, are of before."""
    late = Work(200e-6, 740.0)
    trials.take(FRUGAL)
    outcome = trials.take(late)
    assert counted(outcome) == [pytest.approx(PowerLimitedGpu().steady_seconds(late), rel=0.006)]


def test_where_energy_is_counted_as_well_one_reading_is_not_enough(trials: Trials) -> None:
    """What is known of the time says nothing of it."""
    trials.runner.objective._counts_energy = True  # type: ignore[attr-defined]
    outcome = trials.take(HUNGRY)
    assert len(counted(outcome)) > 1 and outcome.metrics["energy"].n > 1


def test_as_many_are_read_as_the_space_file_asks_for(trials: Trials) -> None:
    trials.runner = Runner(trials.runner.objective, METRICS, MeasureSettings(min_readings=3))
    assert len(counted(trials.take(HUNGRY))) >= 3


@pytest.mark.parametrize(("exponent", "off"), [(0.0, (0.01, 0.1)), (EXPONENT, (0.0, 0.006))])
def test_that_it_is_known_whatever_was_before_is_owed_to_what_was_drawn(
    trials: Trials, monkeypatch: pytest.MonkeyPatch, exponent: float, off: tuple[float, float]
) -> None:
    monkeypatch.setattr(power_limit, "EXPONENT", exponent)
    steady = PowerLimitedGpu().steady_seconds(HUNGRY)
    took = [trials.take(work).metrics["time"].value for work in (HUNGRY, FRUGAL, HUNGRY)]
    least, most = off
    assert least <= max(abs(took[i] / steady - 1) for i in (0, 2)) <= most


def test_without_a_counter_it_is_known_less_well(trials: Trials) -> None:
    trials.runner.objective.gpu.counts = False  # type: ignore[attr-defined]
    outcome = trials.take(HUNGRY)
    known, steady = outcome.metrics["time"], PowerLimitedGpu().steady_seconds(HUNGRY)
    assert len(counted(outcome)) == 1 and known.low < steady < known.high
    assert known.high / known.value - 1 == pytest.approx(1.96 * UNCORRECTED_ERROR, rel=0.01)


def test_a_device_that_always_says_it_is_at_its_limit_is_believed_where_it_draws_as_much(
    trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a kernel that draws half of it would be taken for a quarter faster than it is."""
    states = PowerLimitedGpu.conditions
    capped = REASONS["power_cap"]
    monkeypatch.setattr(
        PowerLimitedGpu, "conditions", lambda gpu: replace(states(gpu), throttle_reasons=capped)
    )
    for work in (HUNGRY, FRUGAL, Work(200e-6, 350.0)):
        steady = PowerLimitedGpu().steady_seconds(work)
        assert trials.take(work).metrics["time"].value == pytest.approx(steady, rel=0.012)


def test_a_window_that_is_discarded_is_not_what_a_trial_ends_with(
    trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind readings that count, taken before the limit acted."""
    trials.take(FRUGAL)
    real, asked = PowerLimitedGpu.conditions, itertools.count(1)

    def scripted(gpu: PowerLimitedGpu) -> Conditions:
        state, look = real(gpu), next(asked)
        if look < 42:
            return replace(state, throttle_reasons=0)
        return replace(state, throttle_reasons=REASONS["thermal"]) if look == 44 else state

    monkeypatch.setattr(PowerLimitedGpu, "conditions", scripted)
    outcome = trials.take(HUNGRY)
    assert [r.discarded for r in outcome.readings if r.metric == "time"].count("throttled") == 1
    assert outcome.facts["shared_error"]["time"] < 2 * CORRECTED_ERROR


def test_with_pauses_between_readings_the_hungry_one_would_win(
    trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That what is read above is right is owed to what bridges them."""
    monkeypatch.setattr(monitor, "BRIDGE_SECONDS", 0.0)
    monkeypatch.setattr(monitor, "GLANCE_SECONDS", 0.0)
    trials.take(FRUGAL)
    assert trials.take(HUNGRY).metrics["time"].value < 0.95 * PowerLimitedGpu().steady_seconds(HUNGRY)


def test_the_hopeless_one_is_rejected_before_it_has_settled(trials: Trials) -> None:
    trials.take(FRUGAL)
    outcome = trials.take(HOPELESS)
    assert outcome.status is Status.PRUNED
    assert not [r for r in outcome.readings if r.discarded == "unsettled"]
    assert outcome.facts["warmed"] < monitor.SETTLING.least_seconds


def test_each_reading_of_a_finale_is_of_a_fifth_of_a_second(trials: Trials) -> None:
    """And none follows one that only warms caches, which was so for those that take less than 0.1 s."""
    assert trials.runner.enter(Configuration({}), lambda: HUNGRY, 0).status is Status.OK
    gpu, steady = trials.runner.objective.gpu, PowerLimitedGpu().steady_seconds(HUNGRY)  # type: ignore[attr-defined]
    for seed in range(4):
        start = gpu.now
        outcome = trials.runner.read(seed)
        assert gpu.now - start > power_limit.LEAST_SECONDS
        (reading,) = [r for r in outcome.readings if r.metric == "time"]
        assert not reading.discarded and reading.value == pytest.approx(steady, rel=0.012)
        gpu.spend(0.03)  # another entrant would have been read meanwhile


def test_in_a_finale_tensors_lie_elsewhere_each_time(trials: Trials) -> None:
    gpu = trials.runner.objective.gpu  # type: ignore[attr-defined]
    trials.take(FRUGAL)
    trials.take(FRUGAL)
    assert not gpu.gaps, "in a search they lie where the others' did"
    trials.runner.enter(Configuration({}), lambda: FRUGAL, 0, warm_up=False)
    for seed in range(4):
        trials.runner.read(seed)
    assert len(gpu.gaps) == 4 and len(set(gpu.gaps)) > 1
    assert all(gap > 0 and gap % (2 << 20) == 0 for gap in gpu.gaps)
