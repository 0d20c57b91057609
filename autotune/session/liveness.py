"""Which process a session is, and whether it lives: told by what no other process can share with it.

A number is used again, and stands for another process in each container; a host's name may be that of
several machines; and the clock by which a process began can be set. So a session also names the start of its
machine's kernel and its container's numbering, and says when it began by the kernel's own clock.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import psutil

from autotune.store.records import SessionRecord

SAME_SECONDS = 1.0
"""How far two statements of one process's start may lie apart."""


def identity() -> dict[str, object]:
    """What tells this process from any other that has its number; kept with its session."""
    return {"started": _started(os.getpid()), **_numbering()}


def lives(session: SessionRecord) -> bool | None:
    """Whether the process of a session that was not closed is there; ``None``: nobody can tell from here."""
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
        else:  # of an earlier version, which said it by the clock that can be set
            began, started = recorded, psutil.Process(session.pid).create_time()
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return None
    return abs(started - began) <= SAME_SECONDS if isinstance(began, float | int) else None


def _started(pid: int) -> float:
    """Seconds from the start of the kernel, where it tells them, else from the epoch."""
    try:
        told = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return psutil.Process(pid).create_time()
    # The name of the program comes second, in parentheses, and may hold anything (proc_pid_stat(5)).
    return int(told.rpartition(b")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")


def _numbering() -> dict[str, str]:
    """What makes a process id unique: the machine, its boot and the PID namespace (container)."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return {"boot": boot, "numbers": str(Path("/proc/self/ns/pid").readlink())}
    except OSError:  # not Linux
        return {"boot": "", "numbers": ""}
