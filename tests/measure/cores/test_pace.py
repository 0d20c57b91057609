"""How fast the core is just now: when it is sampled, and that it stands beside each reading."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from autotune.measure.cores.pace import EVERY_SECONDS, Pace
from autotune.measure.readings import Clock


def test_the_work_takes_time() -> None:
    assert Pace()() > 0.0


def test_only_an_old_sample_is_taken_again() -> None:
    # A sample looks at the clock as it begins and as it ends.
    clock = iter([0.0, 1.0, 1.0 + EVERY_SECONDS / 2, 3.0, 5.0])
    pace = Pace(lambda: next(clock))
    assert [pace(), pace(), pace()] == [1.0, 1.0, 2.0]


def test_it_works_in_the_calling_thread_alone() -> None:
    clock = itertools.count()
    pace = Pace(lambda: float(next(clock)))
    threads = Path("/proc/self/task")
    before = set(threads.iterdir())
    for _ in range(10):
        pace()
    assert set(threads.iterdir()) == before


def test_a_reading_has_the_mean_of_the_pace_before_and_after_it() -> None:
    samples = iter([1e-4, 3e-4])

    class Fixed(Pace):
        def __call__(self) -> float:
            return next(samples)

    clock = Clock(Fixed())
    with clock:
        pass
    assert clock.context["pace_us"] == pytest.approx(200.0)
