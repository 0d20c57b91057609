"""A device that is warmed up and watched: a scripted one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from autotune.measure.gpu.conditions import REASONS, Conditions
from autotune.measure.gpu.monitor import (
    AWAKE_SECONDS,
    BRIDGE_SECONDS,
    COLD_START,
    FIRST_LOOK,
    GLANCE_SECONDS,
    LIMIT_SECONDS,
    LONG_READING_SECONDS,
    PAUSE_SECONDS,
    PIECES_SECONDS,
    SETTLING,
    UNSETTLED,
    Monitor,
)
from autotune.measure.gpu.nvml import open_device
from autotune.measure.gpu.power_limit import CORRECTED_ERROR, UNCORRECTED_ERROR

GOOD = Conditions(1980, 2619, 60, 500.0, 0)


@dataclass
class Scripted:
    """A device at constant power whose kernel takes a millisecond; its clock is the test's."""

    state: Conditions = GOOD
    now: float = 100.0
    counts: bool = True
    fails_at: int = 0
    """The question for the counter that is not answered; 0: each is."""
    asked: int = 0
    """So often for the counter."""
    slept: list[float] = field(default_factory=list)
    ran: int = 0
    used: int = 0
    resolution: float = 0.5e-6
    looks: Callable[[], object] = lambda: None
    """Called when it is asked how it stands."""

    def run(self) -> None:
        self.ran += 1
        self.now += 1e-3

    def synchronise(self) -> None:
        return

    def record(self) -> float:
        return self.now

    def elapsed(self, start: float, end: float) -> float:
        return end - start

    def wait(self, mark: float) -> None:
        return

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def conditions(self) -> Conditions:
        self.looks()
        return self.state

    def joules(self) -> float | None:
        self.asked += 1
        return 1e6 + 500 * (self.now // 0.1 * 0.1) if self.counts and self.asked != self.fails_at else None

    def limit_watts(self) -> float | None:
        return 500.0

    def others(self) -> int | None:
        return 2

    def utilisation(self) -> int | None:
        return self.used


def monitor_of(device: Scripted) -> Monitor:
    return Monitor(device, device.clock, device.sleep)


def test_the_first_warm_up_is_long_and_the_next_short_until_the_device_has_idled() -> None:
    device = Scripted()
    monitor = monitor_of(device)
    lasted, settled = [], []
    for idle, settle in ((0.0, False), (0.0, False), (0.0, True), (2 * AWAKE_SECONDS, False)):
        device.now += idle
        start = device.now
        monitor.warm_up(device.run, device, 1e-3, settle=settle)
        lasted.append(device.now - start)
        settled.append(monitor.settled)
    assert lasted[0] >= COLD_START.least_seconds and lasted[3] >= COLD_START.least_seconds
    assert FIRST_LOOK.least_seconds <= lasted[1] < 2 * FIRST_LOOK.least_seconds + 0.01
    assert SETTLING.least_seconds <= lasted[2] < SETTLING.least_seconds + 0.01
    assert settled == [True, False, True, True]
    assert monitor.steady_mhz == 1980


def test_a_kernel_that_becomes_faster_is_run_until_its_time_is_steady() -> None:
    device = Scripted()
    monitor = monitor_of(device)
    start = device.now

    def to_go(seconds: float) -> float:
        return max(start + seconds - device.now, 0.0)

    def run() -> None:
        device.now += 1e-3 * (1.0 + to_go(1.0))

    def look() -> None:
        device.state = replace(GOOD, sm_clock_mhz=1980 - 500 * to_go(0.5))

    device.looks = look
    monitor.warm_up(run, device, 1e-3)
    assert 1.0 <= monitor.warmed <= 1.2 and monitor.steady_mhz == 1980
    assert monitor.warmed == pytest.approx(device.now - start, abs=2.1 * PIECES_SECONDS)


def test_a_limit_of_power_acts_late_and_is_seen_nevertheless() -> None:
    device = Scripted()
    late = device.now + 0.9 * COLD_START.least_seconds

    def look() -> None:
        device.state = replace(GOOD, throttle_reasons=REASONS["power_cap"] if device.now > late else 0)

    device.looks = look
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3)
    assert monitor.capped and monitor.at_limit


def test_a_settled_device_has_no_pause_behind_a_short_reading() -> None:
    device = Scripted()
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3)
    ran = device.ran
    monitor.bridge(device.run, 1e-3, 2e-3)
    assert device.ran == ran + round(BRIDGE_SECONDS / 1e-3)
    ran = device.ran
    monitor.bridge(device.run, 1e-3, 2 * LONG_READING_SECONDS)
    assert device.ran == ran
    monitor.warm_up(device.run, device, 1e-3, settle=False)
    ran = device.ran
    monitor.bridge(device.run, 1e-3, 2e-3)
    assert device.ran == ran


def test_at_the_limit_of_power_what_bridges_readings_is_shorter() -> None:
    """Since the counter of energy is looked at as often."""
    device = Scripted(replace(GOOD, throttle_reasons=REASONS["power_cap"]))
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3)
    ran = device.ran
    monitor.bridge(device.run, 1e-3, 2e-3)
    assert device.ran == ran + math.ceil(GLANCE_SECONDS / 1e-3)


def test_at_the_limit_of_power_nobody_waits_for_a_steady_clock() -> None:
    """It had been waited for for up to a second, in vain: the clock is set anew again and again."""
    device = Scripted(replace(GOOD, throttle_reasons=REASONS["power_cap"]))
    clocks = itertools.count(1980.0, -15.0)
    device.looks = lambda: setattr(device, "state", replace(device.state, sm_clock_mhz=next(clocks)))
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3)
    start = device.now
    monitor.warm_up(device.run, device, 1e-3)
    assert LIMIT_SECONDS <= device.now - start < LIMIT_SECONDS + 3 * PIECES_SECONDS
    device.state = GOOD
    start = device.now
    monitor.warm_up(device.run, device, 1e-3)
    assert device.now - start >= SETTLING.most_seconds


def test_readings_may_be_off_together_before_the_device_has_settled_and_at_the_limit_of_power() -> None:
    device = Scripted()
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3)
    assert monitor.shared_error == 0
    monitor.warm_up(device.run, device, 1e-3, settle=False)
    assert monitor.shared_error == UNSETTLED / 2
    device.state = replace(GOOD, throttle_reasons=REASONS["power_cap"])
    monitor.warm_up(device.run, device, 1e-3)
    assert monitor.shared_error == UNCORRECTED_ERROR


def read(device: Scripted) -> Callable[[], float]:
    """A reading of four milliseconds."""

    def take() -> float:
        for _ in range(4):
            device.run()
        return 1e-3

    return take


def test_at_the_limit_of_power_a_reading_is_made_up_for_what_was_drawn() -> None:
    device = Scripted(replace(GOOD, throttle_reasons=REASONS["power_cap"]))
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3)
    assert monitor.at_limit and monitor.window is None
    device.joules = lambda: 550 * (device.now // 0.1 * 0.1)  # type: ignore[method-assign]
    watched = monitor.watch_at_limit(read(device))
    assert watched.context["as_read"] == 1e-3 and watched.context["limit_watts"] == 500
    assert watched.context["drawn_watts"] == pytest.approx(550, rel=0.05)
    assert watched.seconds == pytest.approx(1e-3 * 1.1**0.45, rel=0.03)
    assert CORRECTED_ERROR < monitor.shared_error < 2 * CORRECTED_ERROR


def test_a_device_that_has_left_its_limit_meanwhile_is_read_as_everywhere_else() -> None:
    device = Scripted(replace(GOOD, throttle_reasons=REASONS["power_cap"]))
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3)
    device.state = GOOD
    watched = monitor.watch_at_limit(read(device))
    assert watched.seconds == 1e-3 and "as_read" not in watched.context
    assert monitor.window is None and not monitor.at_limit and monitor.shared_error == 0


@pytest.mark.parametrize("missing", ["counter", "limit"])
def test_where_the_counter_or_the_limit_is_not_known_a_reading_stays_as_it_was(missing: str) -> None:
    device = Scripted(replace(GOOD, throttle_reasons=REASONS["power_cap"]), counts=missing != "counter")
    if missing == "limit":
        device.limit_watts = lambda: None  # type: ignore[method-assign]
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3)
    watched = monitor.watch_at_limit(read(device))
    assert watched.seconds == 1e-3 and "drawn_watts" not in watched.context
    assert monitor.window is not None and monitor.shared_error == UNCORRECTED_ERROR


def test_a_counter_that_cannot_be_asked_once_has_not_stepped_then() -> None:
    for failing in range(2, 100):
        device = Scripted(replace(GOOD, throttle_reasons=REASONS["power_cap"]))
        monitor = monitor_of(device)
        monitor.warm_up(device.run, device, 1e-3)
        device.fails_at = failing
        assert monitor.watch_at_limit(read(device)).seconds == pytest.approx(1e-3, rel=0.03)
        assert monitor.window is not None and monitor.window.watts == pytest.approx(500, rel=0.05)


def test_a_window_that_is_discarded_is_none() -> None:
    device = Scripted(replace(GOOD, throttle_reasons=REASONS["power_cap"]))
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3)
    device.state = replace(GOOD, throttle_reasons=REASONS["power_cap"] | REASONS["thermal"])
    assert monitor.watch_at_limit(read(device)).discarded and monitor.window is None


def test_a_device_that_settles_has_no_pause_while_the_host_looks_at_it() -> None:
    device = Scripted()
    handed_over: list[int] = []
    device.looks = lambda: handed_over.append(device.ran)
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3)
    each = round(PIECES_SECONDS / 1e-3)
    assert handed_over == [each * (piece + 2) for piece in range(len(handed_over))]
    assert device.ran == handed_over[-1]


def test_a_limit_of_power_that_acts_while_it_is_read_is_no_throttling() -> None:
    device = Scripted()
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3, settle=False)
    device.state = replace(GOOD, sm_clock_mhz=1320, throttle_reasons=REASONS["power_cap"])
    assert not monitor.watch(lambda: 5e-6).discarded


@pytest.mark.parametrize(
    ("used", "mhz", "capped", "asleep"),
    [
        (80, 1980, False, False),
        (5, 1980, False, True),
        (80, 345, False, True),
        (80, None, False, True),
        (80, 1395, True, False),
        (5, 1395, True, True),
    ],
)
def test_a_device_that_others_kept_busy_is_not_warmed_up_from_the_beginning(
    used: int, mhz: float | None, capped: bool, asleep: bool
) -> None:
    device = Scripted()
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3)
    device.now += 2 * AWAKE_SECONDS
    reasons = REASONS["power_cap"] if capped else 0
    device.used, device.state = used, replace(GOOD, sm_clock_mhz=mhz, throttle_reasons=reasons)
    assert monitor.asleep == asleep
    start = device.now
    device.state = GOOD
    if not asleep:
        monitor.warm_up(device.run, device, 1e-3)
        assert device.now - start < COLD_START.least_seconds


def test_a_reading_says_what_the_device_was_like() -> None:
    device = Scripted()
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3)
    watched = monitor.watch(lambda: 5e-6)
    assert (watched.seconds, watched.discarded) == (5e-6, "")
    assert watched.context["power_watts"] == 500 and not device.slept and not monitor.asleep


@pytest.mark.parametrize(
    "state",
    [replace(GOOD, throttle_reasons=REASONS["hardware_thermal"]), replace(GOOD, sm_clock_mhz=900)],
)
def test_a_throttled_reading_is_discarded_and_the_device_warmed_up_again(state: Conditions) -> None:
    device = Scripted()
    monitor = monitor_of(device)
    monitor.warm_up(device.run, device, 1e-3)
    device.state = state
    watched = monitor.watch(lambda: 5e-6)
    assert watched.discarded == "throttled" and watched.why
    assert device.slept == [PAUSE_SECONDS] and monitor.asleep


def test_energy_is_that_of_a_run() -> None:
    device = Scripted()
    found = monitor_of(device).energy(device.run, device.synchronise, 1e-3)
    assert found is not None and found.joules == pytest.approx(0.5, rel=0.05) and found.steps >= 4


def test_where_nothing_can_be_asked_readings_count_and_energy_is_unknown() -> None:
    device = Scripted(counts=False)
    blind = Monitor(None, device.clock, device.sleep)
    blind.warm_up(device.run, device, 1e-3)
    assert blind.watch(lambda: 1.0).context == {} and not blind.company()
    assert blind.energy(device.run, device.synchronise, 1e-3) is None
    assert monitor_of(device).energy(device.run, device.synchronise, 1e-3) is None


def test_company_is_noticed() -> None:
    assert monitor_of(Scripted(used=37)).company() == {"other_processes": 2, "utilisation": 37}


class Library:
    """As much of pynvml as is asked: one device, which does not know its memory clock."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0

    class NVMLError(Exception):
        pass

    def __init__(self) -> None:
        self.open = 0

    def nvmlInit(self) -> None:  # noqa: N802 - the library's names
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        if uuid != "GPU-1":
            raise self.NVMLError
        return "handle"

    def nvmlDeviceGetClockInfo(self, handle: str, which: int) -> int:  # noqa: N802
        if which == self.NVML_CLOCK_MEM:
            raise self.NVMLError
        return 1980

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:  # noqa: N802
        return 61

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:  # noqa: N802
        return 512_500

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:  # noqa: N802
        return 4

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:  # noqa: N802
        return 1_234_500

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[Any]:  # noqa: N802
        return [object(), object()]


def test_nvml_is_asked_for_the_device_with_that_uuid() -> None:
    library = Library()
    device = open_device(library, "GPU-1")
    assert device is not None
    assert device.conditions() == Conditions(1980, None, 61, 512.5, 4)
    assert device.joules() == 1234.5 and device.others() == 1 and device.utilisation() is None
    assert open_device(library, "GPU-2") is None and library.open == 1, "for that one only"
