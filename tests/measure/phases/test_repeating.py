"""Reading after reading: first looks, what settles, and what readings have in common."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from autotune.measure.outcome import Estimate
from autotune.measure.phases.runner import Runner
from autotune.space.spec import MeasureSettings, MetricSpec
from autotune.status import Status
from tests.measure.phases.test_runner import CONFIGURATION, SETTINGS, Tape, measure


class Sprinter(Tape):
    """Slower by a tenth when it has settled: after that its readings come from another tape."""

    unsettled = 0.2

    def __init__(self, first: float, later: float) -> None:
        super().__init__([first * (1 + 0.001 * (i % 3)) for i in range(50)])
        self.later, self.settled = later, 0

    def settle(self, loaded: Any) -> bool:
        self.settled += 1
        self.readings = iter([self.later * (1 + 0.001 * (i % 3)) for i in range(50)])
        return True


@pytest.mark.parametrize("incumbent", [None, Estimate(0.95, 0.94, 0.96, 9)])
def test_what_may_be_good_is_read_anew_once_it_has_settled(incumbent: Estimate | None) -> None:
    sprinter = Sprinter(1.0, 1.1)
    outcome = measure(sprinter, incumbent=incumbent)
    assert outcome.status is Status.OK and sprinter.settled == 1
    assert outcome.metrics["time"].value == pytest.approx(1.1, rel=0.01)
    counted = [r.value for r in outcome.readings if not r.discarded]
    assert min(counted) >= 1.1
    looked = [r for r in outcome.readings if r.discarded == "unsettled"]
    assert bool(looked) == (incumbent is not None)


def test_what_the_check_has_read_counts_also_after_it_has_settled() -> None:
    """It is not read again, so its bound would be said not to have been checked."""
    sprinter = Sprinter(1.0, 1.1)
    sprinter.checked = {"error": 0.01}
    outcome = measure(sprinter, incumbent=Estimate(0.95, 0.94, 0.96, 9))
    assert outcome.metrics["error"].value == 0.01
    assert [r.discarded for r in outcome.readings if r.metric == "error"] == [""]
    assert "unsettled" in [r.discarded for r in outcome.readings]


def test_what_is_far_worse_at_first_look_is_not_waited_for() -> None:
    sprinter = Sprinter(2.0, 2.2)
    outcome = measure(sprinter, incumbent=Estimate(1.0, 0.99, 1.01, 9))
    assert outcome.status is Status.PRUNED and sprinter.settled == 0
    assert outcome.metrics["time"].value == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_what_is_known_at_first_look_to_be_worse_by_more_than_it_may_be_off_is_rejected(goal: str) -> None:
    """Five readings are precise, and too few to be worse beyond doubt by the test that looks after each."""
    value = 1.4 if goal == "minimize" else 0.6
    sprinter = Sprinter(value, value)
    metrics = (MetricSpec("time", goal, "s"),)  # type: ignore[arg-type]
    runner = Runner(sprinter, metrics, SETTINGS)
    outcome = runner.measure(lambda: CONFIGURATION, 1, Estimate(1.0, 0.99, 1.01, 9))
    assert outcome.status is Status.PRUNED and sprinter.settled == 0
    assert "first look" in str(outcome.facts["stopped"])


def test_what_is_a_little_worse_at_first_look_may_be_better_in_the_end() -> None:
    sprinter = Sprinter(1.1, 0.9)
    outcome = measure(sprinter, incumbent=Estimate(1.0, 0.99, 1.01, 9))
    assert outcome.status is Status.OK and outcome.metrics["time"].value == pytest.approx(0.9, rel=0.01)


def test_without_early_rejection_there_is_no_first_look() -> None:
    sprinter = Sprinter(5.0, 5.0)
    outcome = measure(sprinter, replace(SETTINGS, reject=False), Estimate(1.0, 0.99, 1.01, 9))
    assert outcome.status is Status.OK and sprinter.settled == 1
    assert not [r for r in outcome.readings if r.discarded == "unsettled"]


class Unsure(Tape):
    """Readings that are noisy by four per cent, and off together by one."""

    shared_error = 0.01

    def __init__(self, middle: float) -> None:
        rng = random.Random(0)
        super().__init__([middle * (1 + 0.04 * rng.gauss(0, 1)) for _ in range(200)])


MANY = replace(SETTINGS, max_readings=200, precision=0.002)


def test_what_readings_have_in_common_is_in_what_is_known_and_no_reading_is_to_average_it_out() -> None:
    alike, unsure = measure(Tape(Unsure(1.0).readings), MANY), measure(Unsure(1.0), MANY)
    assert alike.metrics["time"].n > 3 * unsure.metrics["time"].n
    known = unsure.metrics["time"]
    assert known.error > 0.01 and known.high - known.low > 4 * 0.009


@pytest.mark.parametrize(("middle", "status"), [(1.2, Status.PRUNED), (1.03, Status.OK)])
def test_what_is_worse_by_more_than_readings_may_be_off_together_is_rejected(
    middle: float, status: Status
) -> None:
    best = Estimate(1.0, 0.99, 1.01, 9, 0.005)
    outcome = measure(Unsure(middle), MANY, best)
    assert outcome.status is status
    assert ("may be off" in str(outcome.facts["stopped"])) == (status is Status.PRUNED)
    assert measure(Unsure(middle), replace(MANY, reject=False), best).status is Status.OK


class Slow(Unsure):
    """Whose readings take so long that it has settled when the first look is over."""

    unsettled = 0.1
    shared_error = 0.05

    def settle(self, loaded: Any) -> bool:
        self.shared_error = 0.0
        return False


def test_what_is_enough_for_a_first_look_is_not_enough_behind_it() -> None:
    settings = replace(MANY, precision=0.01)
    outcome = measure(Slow(1.05), settings, Estimate(1.0, 0.99, 1.01, 9, 0.005))
    known = outcome.metrics["time"]
    assert outcome.status is Status.PRUNED or (known.high - known.low) / 2 <= 0.01 * known.value
    assert known.n > 5 and not [r for r in outcome.readings if r.discarded == "unsettled"]


class Averaging(Tape):
    """From the third on each reading is a mean of many, and a tenth more than those before."""

    shared_error = 0.005

    def __init__(self) -> None:
        super().__init__([1.0, 1.01, *(1.1 * (1 + 0.001 * (i % 3)) for i in range(50))])
        self.taken = 0

    def measure(self, loaded: Any, rng: Any) -> Any:
        self.taken += 1
        return super().measure(loaded, rng)

    @property
    def averaged(self) -> bool:
        return self.taken > 2


ALL = MeasureSettings(warmup=0)


def test_one_reading_that_is_averaged_is_enough_and_those_before_it_do_not_count() -> None:
    outcome = measure(Averaging(), ALL)
    known = outcome.metrics["time"]
    assert (known.value, known.n) == (pytest.approx(1.1), 1)
    assert known.error == pytest.approx(0.005 * 1.1) and known.low < known.value < known.high
    assert [r.discarded for r in outcome.readings] == ["unsettled", "unsettled", ""]


def test_who_asks_for_one_reading_at_least_asks_for_no_more() -> None:
    assert measure(Averaging(), replace(ALL, min_readings=1)).metrics["time"].n == 1


def test_where_more_are_asked_for_they_are_all_averaged_ones() -> None:
    outcome = measure(Averaging(), replace(ALL, min_readings=4))
    assert outcome.metrics["time"].n == 4 and outcome.metrics["time"].value == pytest.approx(1.1, rel=0.01)
    assert [r.discarded for r in outcome.readings[:3]] == ["unsettled", "unsettled", ""]
