"""Processes that a run of a program leaves running, which must not affect the next run.

A server in the background keeps its port. The next server then cannot start, and its client measures the
earlier one: that of another configuration, where several are read in turns.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from autotune.measure.workers.descendants import ask_to_end, descendants, signal_all

GRACE_SECONDS = 0.2
"""How long a process that ends by itself may take to do so."""
_NAP_SECONDS = 0.005


@contextmanager
def ended_with_run(grace: float = 0.0) -> Iterator[list[str]]:
    """End the processes that were started inside and still run; their names are added to the list it yields.

    They get ``grace`` seconds after SIGTERM before they are killed. For a process that adopts orphans.
    Processes started by those that existed before are left alone.
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
        if left and grace:
            ask_to_end(lambda: _with_descendants(_children() - before), grace)
            left = _alive(_children() - before)
        while left:  # children of what is killed come to this process
            signal_all(left, signal.SIGKILL)
            time.sleep(_NAP_SECONDS)
            left = _alive(_children() - before)


def _children() -> frozenset[int]:
    """The children of this process; fast where there are none."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return frozenset()
    return frozenset(filter(_is_child, descendants(os.getpid())))


def _with_descendants(processes: Iterable[int]) -> Iterator[int]:
    for pid in processes:
        yield from (pid, *descendants(pid))


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
