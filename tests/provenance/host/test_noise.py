"""Pressure and the noise floor: what the kernel tells, and what is said about readings."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.provenance.host.noise import LOUDEST, describe, noise_floor
from autotune.provenance.host.pressure import pressure
from tests.provenance.trees import build

STAT = (
    "cpu  100 10 50 9000 5 1 2 300 0 0\ncpu0 100 10 50 9000 5 1 2 300 0 0\nintr 5 0\nctxt 411026\nbtime 1\n"
)


def test_a_sample_of_a_copied_machine(tmp_path: Path) -> None:
    stall = "some avg10=1.50 avg60=0.00 avg300=0.00 total=8033868\nfull avg10=0.00 total=0\n"
    files = {
        "/proc/loadavg": "0.25 0.09 0.06 2/95 8595\n",
        "/proc/pressure/cpu": stall,
        "/proc/stat": STAT,
        "/proc/thread-self/schedstat": "1000000 2500000000 7\n",
        "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2596100\n",
    }
    sample = dict(pressure(build(tmp_path, files).root))
    assert sample.pop("own_switches") >= 0
    assert sample == {
        "load1": 0.25,
        "runnable": 2.0,
        "cpu_stall_avg10": 0.015,
        "cpu_stall": 8.033868,
        "busy": 1.63,
        "steal": 3.0,
        "switches": 411026.0,
        "own_wait": 2.5,
        "frequency_mhz": 2596.1,
    }


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"/proc/loadavg": "", "/proc/stat": "cpu x", "/proc/pressure/io": "some nonsense"},
        {"/proc/loadavg": "a b c d e", "/proc/pressure/cpu": "some avg10=x total="},
        {"/proc/stat": "cpu 1 2 3\nctxt many\n", "/proc/thread-self/schedstat": "1 many 3"},
        {"/proc/thread-self/schedstat": "0\n"},
    ],
)
def test_what_is_not_told_is_absent(tmp_path: Path, files: dict[str, str]) -> None:
    assert set(pressure(build(tmp_path, files).root)) == {"own_switches"}


def test_a_sample_of_this_machine() -> None:
    sample = pressure()
    assert sample["load1"] >= 0 and sample["switches"] > 0


def test_counters_only_grow() -> None:
    first = pressure()
    second = pressure()
    assert all(second[name] >= first[name] for name in ("busy", "switches", "own_switches"))


def test_the_noise_of_this_machine() -> None:
    noise = noise_floor(0.05)
    assert noise.readings >= 10
    assert noise.seconds > 0 and noise.spread >= 0
    assert noise.to_document()["adjective"] == noise.adjective


def test_even_no_time_gives_ten_readings() -> None:
    assert noise_floor(0).readings == 10


@pytest.mark.parametrize(
    ("readings", "spread", "drift", "adjective"),
    [
        ([1.0] * 9, 0.0, 0.0, "quiet"),
        ([1.0, 1.005] * 10, 0.0025, 0.0, "good"),
        ([1.0] * 10 + [1.02] * 10, 0.0, 0.02, "noisy"),
        ([1.0, 1.5] * 10, 0.2, 0.0, LOUDEST),
        ([1.0] * 20 + [9.0], 0.0, 0.0, "quiet"),
    ],
)
def test_what_is_said(readings: list[float], spread: float, drift: float, adjective: str) -> None:
    noise = describe(readings, {})
    assert noise.adjective == adjective
    assert noise.spread == pytest.approx(spread, abs=0.01)
    assert noise.drift == pytest.approx(drift, abs=0.011)


def test_outliers_are_counted_but_do_not_move_the_spread() -> None:
    noise = describe([1.0] * 19 + [5.0], {"steal": 0.5})
    assert (noise.outliers, noise.spread, noise.pressure) == (0.05, 0.0, {"steal": 0.5})
