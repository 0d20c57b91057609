"""What trials leave in the process that serves them, and nothing but a new process undoes."""

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

from autotune.measure.cores.oversubscription import ready_threads
from autotune.measure.libc import trim_heap
from autotune.measure.memory import resident
from autotune.measure.workers.descendants import descendants, reap, signal_all

WATCHED_SECONDS = 0.01
"""How long threads that were left behind are watched: idle ones, as of a pool, do no harm."""

BUSY = 0.2
"""The share of a core above which threads count as at work; a timer that wakes up now and then takes less."""

_ANY_CORE = frozenset(range(os.sysconf("SC_NPROCESSORS_CONF")))


class Residue:
    """Of the trials since it was made, in this process. ``cap``: bytes that it may have at all."""

    def __init__(self, cap: int | None = None) -> None:
        self._standing = frozenset(descendants(os.getpid()))
        """Processes that the objective started when it was made, to serve all configurations."""
        self._stopped: frozenset[int] = frozenset()
        self._threads = frozenset(threading.enumerate())
        self._files = _open_files()
        self._cap = cap
        self._done: set[str] = set()
        self._held = 0
        """Bytes in use once each kind of work was done, with the data sets that are loaded once for all."""

    def found(self, work: str, standing: frozenset[int]) -> str:
        """Why the next trial needs another process, after ``work`` of some kind; empty where it does not.

        ``standing``: processes that the objective keeps. All others below this one are killed.
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
        """Stop the processes left behind that are at work, until :meth:`go_on`.

        All contenders of a finale have processes on the same cores. Processes that wait are left alone: they
        may be a pool that the next reading needs, or servers that watch each other.
        """
        left = self._left(standing)
        self._stopped = frozenset(pid for pid in left if ready_threads(pid, _ANY_CORE))
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
        """Whether threads of Python are at work that were not there when this was made.

        They would take the core, and Python's lock, from what is measured next.
        """
        left = [t.native_id for t in threading.enumerate() if t not in self._threads and t.native_id]
        if not left:
            return False
        before = [_ran(thread) for thread in left]
        time.sleep(WATCHED_SECONDS)
        used = (_ran(thread) - then for thread, then in zip(left, before, strict=True))
        return sum(used) > BUSY * WATCHED_SECONDS

    def _fills_up(self, work: str, cap: int) -> bool:
        """Whether more than half of the memory that was free after the first ``work`` of its kind is used."""
        if work not in self._done:
            self._done.add(work)
            self._held = resident()
        enough = self._held + (cap - self._held) / 2
        if resident() <= enough:
            return False
        gc.collect()  # it takes long, so not after each trial
        trim_heap()
        return resident() > enough


def _ran(thread: int) -> float:
    """Seconds for which a thread of this process has had a core; 0 where it has ended, or nobody tells."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0]) / 1e9
    return 0.0


def _open_files() -> float:
    """How many descriptors this process has."""
    try:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    except OSError:  # there is none left to look with
        return math.inf


def _helpers_of_python() -> frozenset[int]:
    """Processes that :mod:`multiprocessing` keeps once it was used. They wait, and do nothing else."""
    found = (
        getattr(getattr(sys.modules.get(module), name, None), pid, None) for module, name, pid in _HELPERS
    )
    return frozenset(pid for pid in found if isinstance(pid, int))


_HELPERS = (
    ("multiprocessing.resource_tracker", "_resource_tracker", "_pid"),
    ("multiprocessing.forkserver", "_forkserver", "_forkserver_pid"),
)
"""Module, object and attribute. They are not documented; a process that is not found so was left behind."""
