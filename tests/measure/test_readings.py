"""What is read: values by name; and how long a process had no core, only where it did the work itself."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

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


@pytest.mark.parametrize("returned", [(1.0, 2.0), [1.0, 2.0]])
def test_several_values_have_names(returned: object) -> None:
    """Optuna takes several objectives in their order."""
    with pytest.raises(TypeError, match=r"several by their names, as \{'time': 0.5, ...\}$"):
        named_values(returned, "time", ("time", "energy"))


def test_a_metric_named_after_a_file_that_is_not_in_utf_8_can_be_written() -> None:
    """Such a study had no report."""
    name = os.fsdecode(b"size.caf\xe9")
    assert named_values({"time": 1.0, name: 2.0}, "time") == {"time": 1.0, r"size.caf\udce9": 2.0}
