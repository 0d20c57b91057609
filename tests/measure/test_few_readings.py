"""When few readings are enough: what is slow, what has no noise, and what is hopeless."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from autotune.measure import readings
from autotune.measure.outcome import Estimate
from autotune.measure.phases import gathering, meter, repeating
from autotune.measure.phases import runner as running
from autotune.measure.phases.runner import Runner
from autotune.measure.readings import Sample
from autotune.space.spec import Budget, MeasureSettings, Share
from autotune.status import Status
from tests.measure.phases.test_runner import CONFIGURATION, METRICS, SETTINGS, Tape, measure, noisy


def test_a_trial_that_has_had_its_share_of_the_time_ends_with_the_fewest_readings() -> None:
    runner = Runner(Tape(noisy()), METRICS, SETTINGS, share=Share(0.0, 0.0))
    outcome = runner.measure(lambda: CONFIGURATION, 1)
    assert outcome.metrics["time"].n == SETTINGS.min_readings
    assert outcome.facts["stopped"] == "capped: 5 readings have taken a trial's share of the time"


class Slow(Tape):
    """Each reading takes long beside what a trial costs, whatever it says."""

    now = 0.0
    """The time by the clocks of all that is measured here, which stand still otherwise."""

    def measure(self, loaded: Any, rng: np.random.Generator) -> Any:
        Slow.now += 0.3
        return super().measure(loaded, rng)


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (readings, "perf_counter"),
        (gathering, "perf_counter"),
        (meter, "monotonic"),
        (repeating, "monotonic"),
        (running, "monotonic"),
    ):
        monkeypatch.setattr(module, name, lambda: Slow.now)


@pytest.mark.usefixtures("clocks")
@pytest.mark.parametrize(("first", "counted"), [(2.0, 1), (0.5, 2)])
def test_where_time_is_limited_slow_readings_are_few(first: float, counted: int) -> None:
    objective = Slow([first, *noisy()])
    runner = Runner(objective, METRICS, MeasureSettings(warmup=0), share=Budget(time=60.0).share)
    outcome = runner.measure(lambda: CONFIGURATION, 1, Estimate(1.0, 0.9, 1.1, 5, 0.05))
    assert outcome.metrics["time"].n == counted
    assert "better spent" in str(outcome.facts["stopped"])


class Restarted(Slow):
    """As a program that is started anew for each reading."""

    is_warm = False

    def measure(self, loaded: Any, rng: np.random.Generator) -> Any:
        self.is_warm = True
        return super().measure(loaded, rng)


@pytest.mark.usefixtures("clocks")
@pytest.mark.parametrize(("kind", "discarded"), [(Restarted, [""]), (Slow, ["warm-up", ""])])
def test_the_first_run_of_a_slow_program_counts(kind: type[Slow], discarded: list[str]) -> None:
    """A default of 5 s had taken 15 of 40 s. What is compiled when it is called first is another matter."""
    runner = Runner(kind(noisy(2.0)), METRICS, MeasureSettings(), share=Budget(time=60.0).share)
    outcome = runner.measure(lambda: CONFIGURATION, 1, Estimate(1.0, 0.9, 1.1, 5, 0.05))
    assert [reading.discarded for reading in outcome.readings] == discarded


def test_what_has_no_noise_is_read_once_when_that_is_known() -> None:
    tape = Tape([3.0] * 12 + [2.0, 2.5, 1.0])
    runner = Runner(tape, METRICS, MeasureSettings())
    outcomes = [runner.measure(lambda: CONFIGURATION, seed) for seed in range(6)]
    assert [len(outcome.readings) for outcome in outcomes] == [4, 4, 4, 1, 1, 1]
    assert "without any noise" in str(outcomes[-1].facts["stopped"])


def test_who_asks_for_so_many_readings_gets_three_where_there_is_no_noise() -> None:
    """At least so many, unless the first three are equal: of others one is enough by then."""
    runner = Runner(Tape([3.0] * 100), METRICS, MeasureSettings(min_readings=4, warmup=0))
    assert [runner.measure(lambda: CONFIGURATION, seed).metrics["time"].n for seed in range(6)] == [3] * 6


def test_noise_that_comes_after_all_is_looked_for_again() -> None:
    tape = Tape([*[3.0] * 9, 2.0, 2.1, *noisy()])
    runner = Runner(tape, METRICS, MeasureSettings(max_readings=4))
    outcomes = [runner.measure(lambda: CONFIGURATION, seed) for seed in range(4)]
    assert [len(outcome.readings) for outcome in outcomes] == [4, 4, 5, 5]


def test_noise_that_only_shows_in_some_is_looked_for_from_time_to_time() -> None:
    """What is rounded to hundredths has none where it is short; it had never been looked for again."""
    runner = Runner(Tape([*[3.0] * 22, 3.0, *noisy()]), METRICS, MeasureSettings(max_readings=4))
    outcomes = [runner.measure(lambda: CONFIGURATION, seed) for seed in range(15)]
    assert [len(outcome.readings) for outcome in outcomes] == [4, 4, 4, *[1] * 10, 4, 5]


def test_noise_of_another_metric_is_noise() -> None:
    tape = Tape([{"time": 3.0, "size": size} for size in noisy()])
    runner = Runner(tape, METRICS, MeasureSettings())
    outcomes = [runner.measure(lambda: CONFIGURATION, seed) for seed in range(5)]
    assert [outcome.metrics["time"].n for outcome in outcomes] == [3] * 5


def test_who_asks_for_readings_gets_them_without_any_noise_too() -> None:
    runner = Runner(Tape([3.0] * 99), METRICS, MeasureSettings(warmup=1, min_readings=3))
    outcomes = [runner.measure(lambda: CONFIGURATION, seed) for seed in range(5)]
    assert [len(outcome.readings) for outcome in outcomes] == [4] * 5


class Cut(Tape):
    """Ends what takes longer than is worth it."""

    def measure(self, loaded: Any, rng: np.random.Generator) -> Any:
        takes = float(super().measure(loaded, rng))
        cut = takes > self.worth_seconds
        return Sample({"time": min(takes, self.worth_seconds)}, cut_off=cut)


def test_a_run_of_three_times_the_best_is_cut_off() -> None:
    tape = Cut([50.0, 50.0, 50.0])
    outcome = measure(tape, MeasureSettings(), Estimate(1.0, 0.9, 1.1, 5, 0.05))
    assert outcome.status is Status.PRUNED
    assert [(r.value, r.discarded) for r in outcome.readings] == [(50.0, "warm-up"), (3.3000000000000003, "")]
    assert outcome.facts["stopped"] == "rejected: ended after 3.3 s, 3 times as long as the best so far takes"
    assert tape.worth_seconds == math.inf, "nothing is cut off in the finale"


def test_one_spike_is_no_reason_to_reject_what_was_read_before_it() -> None:
    """One that was faster than the best in each of its readings had been rejected for the next one."""
    tape = Cut([0.8, 0.8, 0.81, 0.79, 50.0, 0.8, 0.8, 0.81])
    outcome = measure(tape, MeasureSettings(max_readings=7), Estimate(1.0, 0.9, 1.1, 5, 0.05))
    assert outcome.status is Status.OK and outcome.metrics["time"].value == 0.8
    assert max(reading.value for reading in outcome.readings) == 50.0, "every reading is kept"


def test_a_short_run_is_not_cut_off() -> None:
    """That of a program of 10 ms may have waited for a core, and ending it would save nothing."""
    tape = Cut([0.008, 0.09, *[0.008, 0.0081] * 4])
    outcome = measure(tape, MeasureSettings(max_readings=7), Estimate(0.01, 0.009, 0.011, 5, 0.0005))
    assert outcome.status is Status.OK and outcome.metrics["time"].value < 0.009


@pytest.mark.parametrize(
    ("settings", "incumbent"),
    [
        (MeasureSettings(max_readings=5), None),
        (MeasureSettings(max_readings=5, reject=False), Estimate(1.0, 0.9, 1.1, 5, 0.05)),
    ],
)
def test_nothing_is_cut_off_that_nothing_is_held_against(
    settings: MeasureSettings, incumbent: Estimate | None
) -> None:
    outcome = measure(Cut([50.0, 49.0, 48.0, 47.0, 46.0, 45.0]), settings, incumbent)
    assert outcome.status is Status.OK and outcome.metrics["time"].n == 5


@pytest.mark.parametrize("settings", [MeasureSettings(reject=False), MeasureSettings(min_readings=5)])
def test_who_asked_for_readings_gets_them_however_slow(settings: MeasureSettings) -> None:
    runner = Runner(Slow(noisy(1.05)), METRICS, settings, share=Share(0.0, 0.0))
    outcome = runner.measure(lambda: CONFIGURATION, 1, Estimate(1.0, 0.8, 1.3, 5, 0.1))
    assert outcome.metrics["time"].n == 5
