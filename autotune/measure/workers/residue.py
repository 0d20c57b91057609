"""What trials leave behind in their process that only a new process can undo."""

from __future__ import annotations

import gc
import math
import os
import resource
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from autotune.measure.cores.oversubscription import ready_by_process
from autotune.measure.libc import trim_heap
from autotune.measure.memory import resident
from autotune.measure.workers.descendants import descendants, reap, signal_all

WATCHED_SECONDS = 0.01
"""How long threads that were left behind are watched: idle ones, such as those of a pool, do no harm."""

BUSY = 0.2
"""The fraction of a core above which threads count as busy; a timer that wakes up now and then takes less."""

_ANY_CORE = frozenset(range(os.sysconf("SC_NPROCESSORS_CONF")))


class Residue:
    """What trials have left in this process since this was made. ``cap``: its memory cap in bytes."""

    def __init__(self, cap: int | None) -> None:
        self._standing = frozenset(descendants(os.getpid()))
        """Processes that the objective started when it was made, to serve all configurations."""
        self._stopped: frozenset[int] = frozenset()
        self._threads = frozenset(threading.enumerate())
        self._files = _open_files()
        self._cap = cap
        self._done: set[str] = set()
        self._held = 0
        """Bytes in use once each kind of work was done, data sets that are loaded only once included."""

    def found(self, work: str, standing: frozenset[int]) -> str:
        """Why the next trial needs another process; empty where it does not.

        ``work`` is the kind of request that was served, ``standing`` the processes that the objective keeps.
        """
        if self._left(standing):
            return "processes that it left behind were killed"
        if self._works_on():
            return "threads that it left running were ended, with their process"
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if limit != resource.RLIM_INFINITY and _open_files() - self._files > (limit - self._files) / 2:
            return "so many files were left open that the next trials would find too few"
        if self._cap is not None and self._fills_up(work, self._cap):
            return "so much memory was left in use, by it and those before, that the next trials lack it"
        return ""

    def stop(self, standing: frozenset[int]) -> None:
        """Stop the processes left behind that are busy, until :meth:`go_on`.

        All contenders of a finale have processes on the same cores. Processes that only wait are left alone:
        they may be a pool that the next reading needs, or servers that watch each other.
        """
        left = self._left(standing)
        self._stopped = frozenset(pid for pid in left if any(ready_by_process(pid, _ANY_CORE).values()))
        signal_all(self._stopped, signal.SIGSTOP)

    def go_on(self) -> None:
        signal_all(self._stopped, signal.SIGCONT)
        self._stopped = frozenset()

    def _left(self, standing: frozenset[int]) -> frozenset[int]:
        """The processes below this one that nobody keeps."""
        # Orphans come to this process while it lives: no child means that nobody was left behind.
        if not reap(lambda *_: None):
            return frozenset()
        return frozenset(descendants(os.getpid())) - self._standing - standing - _helpers_of_python()

    def _works_on(self) -> bool:
        """Whether Python threads are busy that did not exist when this was made.

        They would compete with the next measurement for the core and for Python's lock.
        """
        left = [t.native_id for t in threading.enumerate() if t not in self._threads and t.native_id]
        if not left:
            return False
        before = [_ran(thread) for thread in left]
        time.sleep(WATCHED_SECONDS)
        used = (_ran(thread) - then for thread, then in zip(left, before, strict=True))
        return sum(used) > BUSY * WATCHED_SECONDS

    def _fills_up(self, work: str, cap: int) -> bool:
        """Whether more than half of the memory that was free after the first such ``work`` is now in use."""
        if work not in self._done:
            self._done.add(work)
            self._held = resident()
        enough = self._held + (cap - self._held) / 2
        if resident() <= enough:
            return False
        gc.collect()  # slow, so not after each trial
        trim_heap()
        return resident() > enough


def _ran(thread: int) -> float:
    """Seconds that a thread of this process has run on a core; 0 where it has ended or that is unknown."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0]) / 1e9
    return 0.0


def _open_files() -> float:
    """How many descriptors this process has."""
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    except OSError:  # no descriptor is left to look with
        return math.inf


def _helpers_of_python() -> frozenset[int]:
    """Processes that :mod:`multiprocessing` keeps once it was used. They only wait."""
    found = (
        getattr(getattr(sys.modules.get(module), name, None), pid, None) for module, name, pid in _HELPERS
    )
    return frozenset(pid for pid in found if isinstance(pid, int))


_HELPERS = (
    ("multiprocessing.resource_tracker", "_resource_tracker", "_pid"),
    ("multiprocessing.forkserver", "_forkserver", "_forkserver_pid"),
)
"""Module, object and attribute. They are undocumented; a process that is not found in them was left
behind."""
