"""Devices: cores, quotas and caps, and that those of dead owners are removed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotune.measure.groups.device import Device, make_limits, quota_works, spread, sweep_device_groups
from autotune.measure.workers.limits import GroupCap
from tests.processes import alive

needs_quota = pytest.mark.skipif(bool(quota_works()), reason=quota_works())


@pytest.mark.parametrize(
    "count, cores, shares",
    [
        (2, (0, 1), [(0,), (1,)]),
        (2, (4, 5, 6, 7), [(4, 5), (6, 7)]),
        (3, (0, 1), [(0,), (0,), (1,)]),
        (3, (5,), [(5,), (5,), (5,)]),
    ],
)
def test_cores_are_shared_out(count: int, cores: tuple[int, ...], shares: list[tuple[int, ...]]) -> None:
    found = spread([Device()] * count, cores)
    assert [set(device.cores) for device in found] == [set(share) for share in shares]


def test_a_device_keeps_what_it_asks_for() -> None:
    asked = Device(cores=(3,), cpu=0.5, memory=1 << 20)
    assert spread([asked, Device(cpu=0.2)], (0, 1)) == (asked, Device(cores=(1,), cpu=0.2))


@needs_quota
def test_limits_are_made_and_removed() -> None:
    limits = make_limits(Device(cpu=0.5, memory=64 << 20), "test")
    assert limits.missing == () and limits.quota is not None and isinstance(limits.cap, GroupCap)
    assert limits.kills() == 0 and limits.remove()
    assert not limits.quota.exists() and not limits.cap.folder.exists()


@needs_quota
def test_what_a_killed_owner_left_is_removed() -> None:
    code = (
        "import os\n"
        "from autotune.measure.groups.device import Device, make_limits\n"
        "limits = make_limits(Device(cpu=0.5, memory=1 << 26), 'left')\n"
        "print(limits.quota, limits.cap.folder, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    left = [Path(name) for name in said.stdout.split()]
    assert len(left) == 2 and all(folder.is_dir() for folder in left)
    sweep_device_groups()
    assert not any(folder.exists() for folder in left)


@needs_quota
def test_what_a_killed_owner_left_running_below_its_quota_is_killed() -> None:
    code = (
        "import os, subprocess\n"
        "from autotune.measure.groups.device import Device, make_limits\n"
        "limits = make_limits(Device(cpu=0.5), 'left')\n"
        "left = subprocess.Popen(['sleep', '600'], stdout=2, preexec_fn=limits.enter_quota)\n"
        "print(left.pid, limits.quota, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    said = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=False)
    pid, folder = said.stdout.split()
    sweep_device_groups()
    deadline = time.monotonic() + 10
    while (lives := alive(int(pid))) and time.monotonic() < deadline:
        time.sleep(0.01)
    sweep_device_groups()
    assert not lives and not Path(folder).exists()
