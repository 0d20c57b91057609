"""Ending a process's descendants, all of them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from autotune.measure.process_stat import stat_of

_ROUNDS = 50
"""Rounds of stopping, after which a tree that still grows faster than it can be read is simply killed."""

_NAP_SECONDS = 0.005

Buried = Callable[[int, int, int], None]
"""Called with the pid, the wait status and the peak memory in bytes of each child that was reaped."""


def kill_descendants(buried: Buried) -> None:
    """Kill and reap until there is no descendant left.

    They are stopped first, so that none starts another one unseen. The caller is a child subreaper: a process
    that loses its parent becomes its child, so 'no child left' means 'no descendant left'.
    """
    me = os.getpid()
    while True:
        _stop_all(me)
        signal_all(descendants(me), signal.SIGKILL)
        if not reap(buried, wait=True):
            return


def ask_to_end(
    processes: Callable[[], Iterable[int]], seconds: float, meanwhile: Callable[[], object] = int
) -> None:
    """Send SIGTERM to each of them, and wait until all have ended, for at most so many seconds.

    Parents are to be named before their children: a script whose child ends before it has the signal itself
    goes on. What is named only later is waited for as well, but sent nothing: it may be what cleans up.
    """
    deadline = time.monotonic() + seconds
    asked = list(processes())
    for number in (signal.SIGTERM, signal.SIGCONT):  # one that was stopped has to run for it
        signal_all(asked, number)
    while any(map(runs, {*asked, *processes()})) and time.monotonic() < deadline:
        meanwhile()
        time.sleep(_NAP_SECONDS)


def runs(pid: int) -> bool:
    """Whether it has not ended; one that waits to be reaped has."""
    try:
        return stat_of(f"/proc/{pid}")[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def reap(buried: Buried, *, wait: bool = False) -> bool:
    """Reap dead children, with ``wait`` at least one. Returns whether there are children left."""
    options = 0 if wait else os.WNOHANG
    while True:
        try:
            pid, status, usage = os.wait4(-1, options)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        buried(pid, status, 1024 * usage.ru_maxrss)
        options = os.WNOHANG


def descendants(root: int) -> list[int]:
    """The processes below ``root``, nearest first; those that have ended and wait to be reaped included."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                children.setdefault(int(stat_of(f"/proc/{name}")[1]), []).append(int(name))
    found = list(children.get(root, []))
    for pid in found:  # grows while it is gone through
        found.extend(children.get(pid, []))
    return found


def _stop_all(root: int) -> None:
    stopped: set[int] = set()
    for _ in range(_ROUNDS):
        new = set(descendants(root)) - stopped
        if not new:
            return
        signal_all(new, signal.SIGSTOP)
        stopped |= new


def signal_all(processes: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each of them that is there."""
    for pid in processes:
        with suppress(OSError):  # it was quicker
            os.kill(pid, number)
