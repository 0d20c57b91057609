"""How readings of a kernel are planned and taken, on a device whose clock is a script."""

from __future__ import annotations

import gc
import weakref
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.measure.gpu.timing import (
    MOST_BATCHES,
    MOST_CALLS,
    MOST_SETS,
    READING_SECONDS,
    RELATIVE_RESOLUTION,
    ROUGH_SECONDS,
    Plan,
    Timer,
    most_sets,
    plan,
    rough_seconds,
)
from tests.measure.gpu.fakes import FakeDevice

TIMES = st.floats(-7.0, 1.0).map(lambda power: 10.0**power)


@given(TIMES, st.integers(1, MOST_SETS), st.sampled_from(["cold", "warm"]))
def test_a_plan_is_long_enough_or_at_its_limits(seconds: float, sets: int, caches: str) -> None:
    chosen = plan(seconds, sets, caches, 0.5e-6)
    batch = chosen.calls * seconds
    most = sets if caches == "cold" else MOST_CALLS
    assert 1 <= chosen.calls <= most and 1 <= chosen.batches <= MOST_BATCHES
    assert 0.5e-6 / batch <= RELATIVE_RESOLUTION * 1.0001 or chosen.calls == most
    assert chosen.batches * batch >= READING_SECONDS * 0.9999 or chosen.batches == MOST_BATCHES


@given(TIMES, st.integers(1, MOST_SETS))
def test_where_caches_are_cold_no_data_is_used_twice_after_a_flush(seconds: float, sets: int) -> None:
    chosen = plan(seconds, sets, "cold", 0.5e-6)
    assert chosen.sets == chosen.calls <= sets


def test_long_kernels_are_called_once_without_a_graph() -> None:
    assert plan(0.02, 8, "cold", 0.5e-6) == Plan(calls=1, batches=1, sets=1, graph=False)


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_sets_stay_within_a_quarter_of_the_free_memory(size: int, free: int) -> None:
    sets = most_sets(size, free, "cold")
    assert 1 <= sets <= MOST_SETS and isinstance(sets, int)
    assert sets == 1 or sets * size <= free / 4
    assert most_sets(size, free, "warm") == 1


def test_a_cold_reading_flushes_before_each_batch_outside_the_marks() -> None:
    device = FakeDevice(captures=False)
    calls = [device.kernel(f"set {i}") for i in range(3)]
    timer = Timer(device, calls, Plan(calls=3, batches=2, sets=3, graph=False), "cold")
    device.done.clear()
    assert timer.read() == pytest.approx(5e-6)
    assert [done for done in device.done if done != "hold"] == [
        *["flush", "mark", "set 0", "set 1", "set 2", "mark"] * 2,
        "wait",
    ]
    assert timer.describe() == {
        "caches": "cold",
        "calls": 3,
        "batches": 2,
        "launched": "calls",
        "sets": 3,
        "flushed_bytes": device.flush_bytes,
    }


def test_what_is_handed_over_behind_a_reading_is_not_in_it() -> None:
    device = FakeDevice(captures=False)
    timer = Timer(device, [device.kernel()], Plan(calls=1, batches=2, sets=1, graph=False), "warm")
    device.done.clear()
    assert timer.read(device.kernel("bridge", 1.0)) == pytest.approx(5e-6)
    assert device.done[-3:] == ["mark", "bridge", "wait"]


def test_a_warm_reading_calls_the_same_inputs_and_flushes_nothing() -> None:
    device = FakeDevice()
    timer = Timer(device, [device.kernel()], Plan(calls=4, batches=1, sets=1, graph=False), "warm")
    device.done.clear()
    assert timer.read() == pytest.approx(5e-6)
    assert "flush" not in device.done and device.done.count("kernel") == 4


@pytest.mark.parametrize("graph", [True, False])
def test_what_a_timer_calls_goes_with_it(graph: bool) -> None:
    """The next round's tensors are allocated right behind: collecting garbage would come too late."""
    device = FakeDevice()
    kernel = device.kernel()
    gone = weakref.ref(kernel)
    gc.disable()
    try:
        timer = Timer(device, [kernel], Plan(calls=4, batches=3, sets=1, graph=graph), "warm")
        timer.read()
        del timer, kernel
        assert gone() is None
    finally:
        gc.enable()


def test_short_batches_are_replayed() -> None:
    device = FakeDevice()
    timer = Timer(device, [device.kernel()], Plan(calls=4, batches=3, sets=1, graph=True), "warm")
    device.done.clear()
    assert timer.read() == pytest.approx(5e-6)
    assert timer.captured and device.done.count("replay") == 3 and not timer.graph_problem
    assert timer.describe() == {"caches": "warm", "calls": 4, "batches": 3, "launched": "graph"}


@pytest.mark.parametrize("captures", [True, False])
def test_a_graph_that_cannot_be_had_or_is_wrong_is_replaced_by_launches(captures: bool) -> None:
    device = FakeDevice(captures=captures)
    timer = Timer(
        device,
        [device.kernel()],
        Plan(calls=4, batches=1, sets=1, graph=True),
        "warm",
        verify=lambda replay: "it writes nothing",
    )
    device.done.clear()
    assert timer.read() == pytest.approx(5e-6)
    assert not timer.captured and "replay" not in device.done
    assert timer.graph_problem == ("it writes nothing" if captures else "no graphs here")


def test_the_device_is_held_back_while_a_slow_host_fills_its_queue() -> None:
    device = FakeDevice()  # its clock stands still while the host launches: launching is slower than nothing
    slow = Timer(device, [device.kernel(seconds=0.0)], Plan(4, 1, 1, graph=False), "warm")
    device.done.clear()
    slow.read()
    assert device.done[0] == "hold" and device.done.count("hold") == 1
    fast = Timer(device, [device.kernel(seconds=1.0)], Plan(4, 1, 1, graph=False), "warm")
    device.done.clear()
    fast.read()
    assert "hold" not in device.done


@given(st.floats(1e-7, 1e-3))
def test_a_rough_time_is_right_and_leaves_the_first_call_out(seconds: float) -> None:
    device = FakeDevice()
    times = iter([0.5])

    def call() -> None:
        device.work("kernel", next(times, seconds))

    assert rough_seconds(device, call) == pytest.approx(seconds)
    assert seconds < 1.01 * ROUGH_SECONDS or device.done.count("kernel") == 2, (
        "a long kernel is not run for long"
    )


def test_marks_come_in_pairs_around_whole_batches() -> None:
    device = FakeDevice()
    timer = Timer(device, [device.kernel()], Plan(calls=2, batches=5, sets=1, graph=True), "cold")
    device.done.clear()
    timer.read()
    marks = [i for i, done in enumerate(device.done) if done == "mark"]
    assert len(marks) == 10
    assert all(device.done[a:b].count("kernel") == (2, 0)[i % 2] for i, (a, b) in enumerate(pairwise(marks)))
