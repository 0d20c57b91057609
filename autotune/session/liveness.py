"""The identity of a session's process, and whether that process is alive.

A process id is used again, and means another process in each container; several machines may have the same
host name; and the wall clock can be set. So a session also records the boot id of its machine, its
container's PID namespace, and when its process started by the kernel's own clock.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import psutil

from autotune.measure.process_stat import stat_of
from autotune.store.records import SessionRecord

SAME_SECONDS = 1.0
"""By how much two readings of the start of one process may differ."""


def identity() -> dict[str, object]:
    """What distinguishes this process from any other with the same id; stored with its session."""
    return {"started": _started(os.getpid()), **_numbering()}


def lives(session: SessionRecord) -> bool | None:
    """Whether the process of a session that was not closed is alive; ``None`` if this machine cannot tell."""
    if session.host != socket.gethostname():
        return None
    recorded = session.settings.get("process")
    if isinstance(recorded, dict) and any(recorded.get(name) != told for name, told in _numbering().items()):
        return None
    try:
        if psutil.Process(session.pid).status() == psutil.STATUS_ZOMBIE:
            return False
        if isinstance(recorded, dict):
            began, started = recorded.get("started"), _started(session.pid)
        else:  # an earlier version of autotune recorded the start by the wall clock
            began, started = recorded, psutil.Process(session.pid).create_time()
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return None
    return abs(started - began) <= SAME_SECONDS if isinstance(began, float | int) else None


def _started(pid: int) -> float:
    """When a process started: in seconds since the boot on Linux, elsewhere since the epoch."""
    try:
        return int(stat_of(f"/proc/{pid}")[19]) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return psutil.Process(pid).create_time()


def _numbering() -> dict[str, str]:
    """What makes a process id unique: the machine, its boot and the PID namespace (container)."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return {"boot": boot, "numbers": str(Path("/proc/self/ns/pid").readlink())}
    except OSError:  # not Linux
        return {"boot": "", "numbers": ""}
