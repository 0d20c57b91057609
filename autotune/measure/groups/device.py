"""A 'device' of a process group: cores, a quota of processor time and a memory cap, enforced by the kernel.

Quotas and caps are control groups, version 1 or 2, whose names carry their owner. Groups that a dead owner
left are removed by :func:`sweep_device_groups`: when the next process group is made, and by the guardian of a
worker that died. Where no control group can be made, a cap is a limit of the process, and a quota is reported
as *missing*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.measure.ownership import owned_name
from autotune.measure.workers.limits import (
    GroupCap,
    MemoryCap,
    ProcessCap,
    make_cap,
    parents,
    remove_group,
    sweep_groups,
)

_QUOTA_1 = "cpu.cfs_quota_us"
"""The file of a quota in version 1."""
PERIOD = 0.01
"""The period of a quota in seconds. The kernel's default of 0.1 s is longer than many a step."""


@dataclass(frozen=True)
class Link:
    """A device's connection: ``bandwidth`` in bits a second each way, ``latency`` in seconds one way.

    Two devices are connected with the smaller bandwidth and the mean latency of their links. What a device
    sends to or gets from several others shares its link.
    """

    bandwidth: float
    latency: float

    def __post_init__(self) -> None:
        if not self.bandwidth > 0 or not self.latency >= 0:
            raise ValueError(
                f"a link needs a bandwidth above 0 bit/s and a latency of at least 0 s, not {self}"
            )


@dataclass(frozen=True)
class Device:
    """What one rank may use."""

    cores: tuple[int, ...] = ()
    """Hardware threads; empty: a share of those of the starter."""
    cpu: float | None = None
    """Processor time per time: 0.5 is half a core; ``None``: no quota."""
    memory: int | None = None
    """The memory cap in bytes; ``None``: only that of the worker."""
    link: Link | None = None
    """Its connection; ``None``: whatever the network gives."""

    def __post_init__(self) -> None:
        for name, share in (("cpu", self.cpu), ("memory", self.memory)):
            if share is not None and not 0 < share < math.inf:
                raise ValueError(f"the {name} of a device must be a number above 0 or left out, not {share}")


def spread(devices: Sequence[Device], cores: Sequence[int]) -> tuple[Device, ...]:
    """Give each device that names no cores a share of ``cores``; where there are too few, one core each."""
    count = len(devices)
    shares = [tuple(cores[i * len(cores) // count : (i + 1) * len(cores) // count]) for i in range(count)]
    return tuple(
        device if device.cores else replace(device, cores=share or (cores[number % len(cores)],))
        for number, (device, share) in enumerate(zip(devices, shares, strict=True))
    )


@dataclass(frozen=True)
class DeviceLimits:
    """The quota and the cap of one rank, as far as they could be made. The rank enters them itself."""

    cap: MemoryCap | None
    quota: Path | None
    """The folder of the control group with the quota."""
    missing: tuple[str, ...]
    """What was asked for and cannot be made here, in words."""

    def enter_cap(self) -> None:
        """Put the calling process, and all that it will start, below the memory cap."""
        if self.cap is not None:
            self.cap.enter()

    def enter_quota(self) -> None:
        """Put the calling process, and all that it will start, below the quota of processor time."""
        if self.quota is not None:
            (self.quota / "cgroup.procs").write_text("0")

    @property
    def yields_to_idle(self) -> bool:
        """Whether there is a quota, and ``SCHED_IDLE`` processes of the starter do not slow the rank down.

        So it is in version 1, where they compete with the group of the rank. In version 2 the starter has a
        group of its own, which gets as large a share as the group of the rank, whatever the class of its
        processes.
        """
        return self.quota is not None and (self.quota / _QUOTA_1).exists()

    def kills(self) -> int:
        """How many of its processes the kernel has killed at the memory cap."""
        return self.cap.kills() if self.cap is not None else 0

    def remove(self) -> bool:
        """Remove the groups; ``False`` while a process in them is still dying."""
        gone = self.cap.remove() if self.cap is not None else True
        return (self.quota is None or remove_group(self.quota)) and gone


def make_limits(device: Device, name: str) -> DeviceLimits:
    """Make the limits of a device; ``name`` distinguishes its groups from those of other ranks."""
    cap = make_cap(device.memory, name) if device.memory is not None else None
    missing = []
    if isinstance(cap, ProcessCap):
        missing.append("a control group for the memory cap: only what each process asks for is limited")
    quota = None
    if device.cpu is not None:
        quota = _make_quota(device.cpu, name, cap)
        if quota is None:
            missing.append("a control group for the processor quota: there is no quota")
    return DeviceLimits(cap, quota, tuple(missing))


def quota_works() -> str:
    """Why a processor quota cannot be set here; empty where it can. It is tried and undone."""
    folder = _make_quota(1.0, "probe", None)
    if folder is None:
        return "no control group with a processor quota can be made"
    remove_group(folder)
    return ""


def sweep_device_groups() -> None:
    """Kill the processes in groups that dead owners left, and remove the groups."""
    sweep_groups("memory")
    sweep_groups("cpu")


def _make_quota(cpu: float, name: str, cap: MemoryCap | None) -> Path | None:
    if isinstance(cap, GroupCap) and cap.version == 2:
        return cap.folder if _set_quota(cap.folder, 2, cpu) else None
    # The name of the cap's group: where version 1 has both controllers in one tree, it is the same group.
    own = cap.folder.name if isinstance(cap, GroupCap) else owned_name(name)
    for parent, version in parents("cpu"):
        folder = parent / own
        with suppress(OSError):
            folder.mkdir(exist_ok=True)
            if _set_quota(folder, version, cpu):
                return folder
            remove_group(folder)
    return None


def _set_quota(folder: Path, version: int, cpu: float) -> bool:
    period = round(1e6 * PERIOD)
    quota = max(1000, round(cpu * period))
    try:
        if version == 1:
            (folder / "cpu.cfs_period_us").write_text(str(period))
            (folder / _QUOTA_1).write_text(str(quota))
        else:
            (folder / "cpu.max").write_text(f"{quota} {period}")
    except OSError:
        return False
    return True
