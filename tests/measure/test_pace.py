"""How fast the core is just now: what a sample costs, and that it stands beside each reading."""

from __future__ import annotations

import os
import time

import pytest

from autotune.measure.pace import EVERY_SECONDS, Pace
from autotune.measure.readings import Clock


def test_a_young_sample_is_not_taken_again() -> None:
    pace = Pace()
    first = pace()
    assert first > 0.0
    until = time.perf_counter() + EVERY_SECONDS / 10
    while time.perf_counter() < until:
        assert pace() == first


def test_an_old_sample_is_taken_again() -> None:
    pace = Pace()
    seen = {pace()}
    until = time.perf_counter() + 20 * EVERY_SECONDS
    while time.perf_counter() < until:
        seen.add(pace())
    assert len(seen) > 2


def test_it_works_in_the_calling_thread_alone() -> None:
    pace = Pace()
    before = set(os.listdir("/proc/self/task"))
    pace()
    assert set(os.listdir("/proc/self/task")) == before


def test_a_reading_has_the_mean_of_the_pace_before_and_after_it() -> None:
    samples = iter([1e-4, 3e-4])

    class Fixed(Pace):
        def __call__(self) -> float:
            return next(samples)

    clock = Clock(Fixed())
    with clock:
        pass
    assert clock.context["pace_us"] == pytest.approx(200.0)
