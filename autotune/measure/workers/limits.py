"""A memory cap that is real: a control group where one can be made, else a limit of the process.

:class:`GroupCap`
    counts what a worker and all its descendants really use, together. At the limit the kernel kills a
    process of the group, and the group's ``oom_kill`` counter says so.
:class:`ProcessCap`
    counts the writable memory that each process has asked for, used or not (``RLIMIT_DATA``). At the
    limit an allocation fails, which Python shows as ``MemoryError``.

A process that was killed at its memory cap and one that was killed at its time limit look the same
from outside (signal 9). The counter of the group tells them apart.

The group is made below the one that this process is in, so that every limit that holds for it holds
for its workers as well (version 1). Version 2 allows that only where the group passes its memory
controller on; then a group beside our own, or beside one further up, serves as well.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autotune.measure.ownership import PREFIX, is_abandoned, owned_name
from autotune.provenance.host.cgroup import find_group
from autotune.provenance.host.system import System


@dataclass(frozen=True)
class GroupCap:
    """A control group of its own with a limit of ``bytes``. Made by one process, entered by another."""

    folder: Path
    version: int
    bytes: int

    def enter(self) -> None:
        """Put the calling process, and all that it will start, below the cap."""
        (self.folder / "cgroup.procs").write_text("0")

    def kills(self) -> int:
        """How many processes the kernel has killed at the limit; 0 where it does not tell."""
        file = "memory.oom_control" if self.version == 1 else "memory.events"
        with suppress(OSError, ValueError):
            for line in (self.folder / file).read_text().splitlines():
                name, _, count = line.partition(" ")
                if name == "oom_kill":
                    return int(count)
        return 0

    def kill_members(self) -> None:
        """Kill all processes in the group. For use where the guardian, which does this better, is dead."""
        _kill_members(self.folder)

    def remove(self) -> bool:
        """Remove the group; ``False`` while a process of it is still dying."""
        return remove_group(self.folder)


@dataclass(frozen=True)
class ProcessCap:
    """A limit on what each process may ask for, used where no control group can be made."""

    bytes: int

    def enter(self) -> None:
        """Limit the calling process, and whatever it starts (each by itself)."""
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = self.bytes if hard == resource.RLIM_INFINITY else min(self.bytes, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))

    def kills(self) -> int:
        return 0

    def remove(self) -> bool:
        return True


MemoryCap = GroupCap | ProcessCap


def make_cap(size: int, name: str) -> MemoryCap:
    """A cap of ``size`` bytes: by a control group of its own where this process may make one."""
    for parent, version in parents("memory"):
        try:
            # A new name: this process may have several workers called ``name``.
            folder = Path(tempfile.mkdtemp(prefix=owned_name(f"{name}-"), dir=parent))
        except OSError:
            continue  # read-only, not ours, or not there
        try:
            _limit(folder, version, size)
        except OSError:
            remove_group(folder)
            continue
        return GroupCap(folder, version, size)
    return ProcessCap(size)


def sweep_groups(controller: str = "memory") -> None:
    """Kill the processes in groups of this controller that dead owners left, and remove these groups."""
    for parent, _ in parents(controller):
        with suppress(OSError):
            for folder in list(parent.glob(f"{PREFIX}*")):
                if is_abandoned(folder.name):
                    _kill_members(folder)
                    remove_group(folder)


def parents(controller: str) -> Iterator[tuple[Path, int]]:
    """``(folder, version)`` of groups below which one with this controller can be made, the best first."""
    group = find_group(System(), controller)
    if group is None:
        return
    if group.version == 1:
        yield Path(group.folder), 1
        return
    yield from ((Path(folder), 2) for folder in group.upwards() if _passes_on(controller, folder))


def _passes_on(controller: str, folder: str) -> bool:
    try:
        return controller in Path(folder, "cgroup.subtree_control").read_text().split()
    except OSError:
        return False


def _limit(folder: Path, version: int, size: int) -> None:
    if version == 1:
        (folder / "memory.limit_in_bytes").write_text(str(size))
        with suppress(OSError):  # kernels that do not count swap lack the file
            (folder / "memory.memsw.limit_in_bytes").write_text(str(size))
        return
    (folder / "memory.max").write_text(str(size))
    for file, text in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
        with suppress(OSError):
            (folder / file).write_text(text)


def _kill_members(folder: Path) -> None:
    for inner in folder.glob(f"{PREFIX}*"):
        _kill_members(inner)
    with suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            with suppress(OSError):  # it was quicker
                os.kill(int(pid), signal.SIGKILL)


def remove_group(folder: Path) -> bool:
    """Remove a group, and groups of ours inside it; ``False`` while a process of it is still dying."""
    for inner in folder.glob(f"{PREFIX}*"):
        remove_group(inner)
    try:
        folder.rmdir()
    except OSError as error:
        return error.errno == errno.ENOENT
    return True
