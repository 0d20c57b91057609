"""What is read: values by name; and how long a process had no core, only where it did the work itself."""

from __future__ import annotations

import os
import subprocess
import time

import numpy as np
import pytest

from autotune.measure import readings
from autotune.measure.cores.pace import Pace
from autotune.measure.readings import Clock, measures_itself, named_values


@pytest.mark.parametrize(
    ("cpu", "own_wait", "itself"),
    [
        (0.95, 0.05, True),  # computes
        (0.2, 0.7, True),  # would, and others have the core
        (3.8, 0.1, True),  # several threads
        (0.05, 0.15, False),  # a program computes, and has the core meanwhile
    ],
)
def test_who_was_measured_is_told_by_what_the_process_did(cpu: float, own_wait: float, itself: bool) -> None:
    assert measures_itself({"wall": 1.0, "cpu": cpu, "own_wait": own_wait}) is itself


def test_a_process_that_waits_for_another_says_nothing_of_its_core() -> None:
    clock = Clock(Pace())
    with clock:
        subprocess.run(["sleep", "0.5"], check=True)
    assert clock.context["wall"] > 0.5 and "own_wait" not in clock.context


def test_a_process_that_computes_is_measured_itself() -> None:
    clock = Clock(Pace())
    for _ in range(4):  # a machine may stand still during one
        with clock:
            until = time.process_time() + 0.05
            while time.process_time() < until:
                pass
        assert clock.context["cpu"] >= 0.05
        if measures_itself(clock.context):
            return
    raise AssertionError(f"it waited for others all the time: {clock.context}")


def test_readings_are_placed_in_time_from_the_first_one_on() -> None:
    clock = Clock(Pace())
    began = time.process_time()
    with clock:
        sum(range(10_000))
    assert clock.at == 0.0 and clock.last_seconds > 0
    first = clock.last_seconds
    with clock:
        sum(range(10_000))
    assert clock.at >= first and clock.context["cpu"] <= time.process_time() - began


def test_the_context_has_what_the_machine_did_meanwhile_and_where_it_stood_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A counter that stood still is left out. The pace is the mean of those before and after."""
    grown = {"cpu_stall": 0.1, "memory_stall": 0.2, "io_stall": 0.3, "steal": 0.4, "own_switches": 5.0}
    before = {**dict.fromkeys(grown, 7.0), "own_wait": 1.0, "runnable": 1.0, "frequency_mhz": 800.0}
    after = {name: before[name] + more for name, more in grown.items()}
    levels = {"runnable": 3.0, "frequency_mhz": 2500.0}
    waited = {"own_wait": 1.5}  # of which a moment cannot hold more: it did the work itself
    samples = iter([before, {**after, **waited, **levels}, before, {**before, **waited}])
    monkeypatch.setattr(readings, "pressure", lambda: next(samples))
    paces = iter([1e-6, 3e-6, 5e-6, 5e-6])
    clock = Clock(lambda: next(paces))  # type: ignore[arg-type]
    for expected in (
        {**grown, **levels, "own_wait": 0.5, "pace_us": 2.0},
        {"runnable": 1.0, "frequency_mhz": 800.0, "own_wait": 0.5, "pace_us": 5.0},
    ):
        with clock:
            pass
        context = {name: value for name, value in clock.context.items() if name not in ("wall", "cpu")}
        assert context == pytest.approx(expected)


def test_a_flag_is_a_number_for_a_bound_and_none_for_a_goal() -> None:
    assert named_values({"time": 1.5, "valid": True}, "time") == {"time": 1.5, "valid": 1.0}
    for returned in (True, {"time": False}, {"energy": np.bool_(True), "time": 1.0}):
        with pytest.raises(TypeError, match="must be a number, not the flag"):
            named_values(returned, "time", ("energy",))


@pytest.mark.parametrize(
    ("value", "said"),
    [("1.0", "not '1.0' [(]str[)]"), (10**400, "a number that fits a float"), (np.zeros(2), "not array")],
)
def test_what_is_no_number_is_named(value: object, said: str) -> None:
    with pytest.raises(TypeError, match=f"the metric 'time' must be .*{said}"):
        named_values(value, "time")


def test_a_mean_of_nothing_is_no_0() -> None:
    assert np.isnan(named_values(np.ma.masked, "time")["time"])


@pytest.mark.parametrize("returned", [(1.0, 2.0), [1.0, 2.0]])
def test_several_values_have_names(returned: object) -> None:
    """Optuna takes several objectives in their order."""
    with pytest.raises(TypeError, match=r"several by their names, as \{'time': 0.5, ...\}$"):
        named_values(returned, "time", ("time", "energy"))


def test_a_metric_named_after_a_file_that_is_not_in_utf_8_can_be_written() -> None:
    """Such a study had no report."""
    name = os.fsdecode(b"size.caf\xe9")
    assert named_values({"time": 1.0, name: 2.0}, "time") == {"time": 1.0, r"size.caf\udce9": 2.0}
