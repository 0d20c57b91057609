"""Control groups: what this process may use of the machine, in version 1 and version 2.

A limit holds for a group and all groups below it, so the tightest on the way from our own group up
to the root of the mounted tree counts. Inside a container the path in ``/proc/self/cgroup`` may not
exist below the mount point; then the mount point itself is our group.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from autotune.provenance.document import Documented
from autotune.provenance.host.system import System, as_int

_UNLIMITED = 1 << 60
"""Version 1 writes 'no limit' as the largest multiple of a page."""


@dataclass(frozen=True)
class Group:
    """A control group of this process: ``version`` 1 or 2, and its folder."""

    version: int
    folder: str
    mount: str
    """Where its tree is mounted: the group at the top of what can be seen."""

    def upwards(self) -> Iterator[str]:
        """The folder of this group and of each above it, up to the mount point."""
        path, top = PurePosixPath(self.folder), PurePosixPath(self.mount)
        while path != top and top in path.parents:
            yield str(path)
            path = path.parent
        yield str(top)


@dataclass(frozen=True)
class Limits(Documented):
    """What this process may use; ``None`` is no limit."""

    memory_bytes: int | None
    processors: float | None
    """Processor time per time: 1.5 is one and a half cores."""


def read_limits(system: System) -> Limits:
    """The tightest limits on our group and those above it."""
    return Limits(_memory(system), _processors(system))


def find_group(system: System, controller: str) -> Group | None:
    """The group that limits us by ``controller`` (``memory``, ``cpu``); ``None`` without cgroups."""
    membership = _memberships(system)
    groups = []
    for version, controllers, root, mount in _mounts(system):
        if version == 1 and controller not in controllers:
            continue
        path = membership.get(controller if version == 1 else "")
        if path is None:
            continue
        inner = path.removeprefix(root.rstrip("/")).strip("/") if root != "/" else path.strip("/")
        folder = f"{mount}/{inner}".rstrip("/")
        inside = ".." not in path.split("/") and system.exists(folder)
        groups.append(Group(version, folder if inside else mount, mount))
    # With both versions mounted, a controller that version 1 has is not in version 2.
    return min(groups, key=lambda group: group.version, default=None)


def _memory(system: System) -> int | None:
    group = find_group(system, "memory")
    if group is None:
        return None
    file = "memory.limit_in_bytes" if group.version == 1 else "memory.max"
    limits = [system.number(f"{folder}/{file}") for folder in group.upwards()]
    return min((n for n in limits if n is not None and 0 < n < _UNLIMITED), default=None)


def _processors(system: System) -> float | None:
    group = find_group(system, "cpu")
    if group is None:
        return None
    quotas = []
    for folder in group.upwards():
        if group.version == 1:
            quota = system.number(f"{folder}/cpu.cfs_quota_us")
            period = system.number(f"{folder}/cpu.cfs_period_us")
        else:
            fields = (system.text(f"{folder}/cpu.max", 64) or "").split()
            quota, period = (as_int(fields[0]), as_int(fields[1])) if len(fields) == 2 else (None, None)
        if quota and period and quota > 0 and period > 0:
            quotas.append(quota / period)
    return min(quotas, default=None)


def whole_processors(limits: Limits) -> int | None:
    """How many threads can be kept busy under the quota: at least one, rounded up."""
    return None if limits.processors is None else max(1, math.ceil(limits.processors))


def _memberships(system: System) -> dict[str, str]:
    """Controller -> path of our group; the empty name stands for version 2."""
    found: dict[str, str] = {}
    for line in (system.text("/proc/self/cgroup") or "").splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3:
            for controller in parts[1].split(","):
                found[controller] = parts[2]
    return found


def _mounts(system: System) -> Iterator[tuple[int, frozenset[str], str, str]]:
    """(version, controllers, root of the mounted subtree, mount point) of each mounted tree."""
    for line in (system.text("/proc/self/mountinfo") or "").splitlines():
        left, mark, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if mark and len(fields) >= 5 and kind and kind[0] in ("cgroup", "cgroup2"):
            options = frozenset(kind[-1].split(","))
            yield (2 if kind[0] == "cgroup2" else 1), options, fields[3], fields[4]
