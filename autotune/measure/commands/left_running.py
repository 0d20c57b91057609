"""Processes that a run of a program leaves running: no other run is to meet them.

A server that went into the background holds its port. The next one then cannot start, and what asks it
measures the one before: of another configuration, where several are read in turns.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autotune.measure.workers.descendants import descendants, signal_all

GRACE_SECONDS = 0.2
"""How long one may take that was told to end, and does."""
_NAP_SECONDS = 0.005


@contextmanager
def ended_with_run() -> Iterator[list[str]]:
    """Kill what was started below this process meanwhile; their names are added to the list that is given.

    For a process that adopts orphans. What processes start that were there before is theirs, and stays.
    """
    before = _children()
    names: list[str] = []
    try:
        yield names
    finally:
        deadline = time.monotonic() + GRACE_SECONDS
        while (left := _alive(_children() - before)) and time.monotonic() < deadline:
            time.sleep(_NAP_SECONDS)
        names += sorted({_name(pid) for pid in left})
        while left:  # children of what is killed come to this process
            signal_all(left, signal.SIGKILL)
            time.sleep(_NAP_SECONDS)
            left = _alive(_children() - before)


def _children() -> frozenset[int]:
    """Of this process. That there is none is told at once."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return frozenset()
    return frozenset(filter(_is_child, descendants(os.getpid())))


def _is_child(pid: int) -> bool:
    try:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _alive(children: frozenset[int]) -> frozenset[int]:
    """Those that have not ended; the others are reaped."""
    return frozenset(pid for pid in children if not os.waitpid(pid, os.WNOHANG)[0])


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip()
    except OSError:
        return "a process"
