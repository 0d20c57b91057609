"""Whether what is measured has more threads that are ready to run than cores to run them on.

A measurement is pinned to as many cores as its space file says, one by default. A program that starts more
threads than that gains nothing from them, and the search would call them useless. The output of the program
does not show it. So the session looks at the measuring worker during a trial, from another core, and counts
how many of its threads and of those of its descendants are ready to run at once. A thread that waits for a
file or for another thread needs no core. A shell starts process after process and waits for each, but for a
moment both are ready: so a process that was not there at the last look is not added to the others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from statistics import median_low

from autotune.measure.facts import READY_THREADS
from autotune.measure.process_stat import stat_of

FIRST_SECONDS = 0.004
"""From the start to the first look. Earlier, a thread that starts another and waits for it may still be
ready."""

LONGER = 1.5
"""The factor from each wait between looks to the next: so short trials are seen, and long ones mostly
later."""

LONGEST_SECONDS = 0.05
"""The longest wait between looks. Later looks matter more, since a trial begins with loading and checking."""

MOST_LOOKS = 100
"""The last look is five seconds after the start. Each takes some tens of microseconds of a core."""

FEWEST_LOOKS = 5
"""A trial that ended before so many looks, in its first 50 ms, is not judged."""

MOST_TASKS = 1000
"""The most threads that are looked at: hardly any machine has more cores."""


class ReadyThreads:
    """Counts the ready threads of a worker that is pinned to ``cores``, when :meth:`look` is called.

    ``below``: how many generations of processes do not count, beginning with the worker. One that runs
    programs may be busy reading what they print.
    """

    def __init__(self, cores: Sequence[int], below: int = 0) -> None:
        self._cores = frozenset(cores)
        self._below = below
        self._counts: list[int] = []
        self._there: Collection[int] = ()
        """The processes of the last look."""
        self._wait = FIRST_SECONDS
        self._due = time.monotonic() + self._wait

    def timeout(self) -> float | None:
        """Seconds until the next look; ``None``: there is none."""
        return None if len(self._counts) >= MOST_LOOKS else max(self._due - time.monotonic(), 0.0)

    def look(self, pid: int) -> None:
        """Count now, if it is time to; ``pid`` is the worker's, whose descendants count as well."""
        if self.timeout() == 0.0:
            found = ready_by_process(pid, self._cores, self._below)
            self._counts.append(at_once(found, self._there))
            self._there = found.keys()
            self._wait = min(self._wait * LONGER, LONGEST_SECONDS)
            self._due = time.monotonic() + self._wait

    @property
    def facts(self) -> dict[str, object]:
        """Facts of the trial: how many threads were usually ready, where that is more than the cores."""
        usual = median_low(self._counts) if len(self._counts) >= FEWEST_LOOKS else 0
        return {READY_THREADS: usual} if usual > len(self._cores) else {}


def at_once(found: Mapping[int, int], before: Collection[int]) -> int:
    """How many threads are ready at once, of ``found`` by process, of which ``before`` were there already."""
    lasting = sum(ready for pid, ready in found.items() if pid in before)
    return max([lasting, *found.values()])


def ready_by_process(pid: int, cores: Set[int], below: int = 0) -> dict[int, int]:
    """How many threads of a process and each descendant run on ``cores`` or wait for one of them, by pid.

    A thread that its program has pinned to other cores does not wait for these. The first ``below``
    generations, beginning with the process itself, do not count.
    """
    ready: dict[int, int] = {}
    seen = 0
    processes = [pid]
    for _ in range(below):
        processes = [child for process in processes for task in _tasks(process) for child in _children(task)]
    for process in processes:  # grows while it is gone through
        ready[process] = 0
        for task in _tasks(process):
            seen += 1
            with suppress(OSError, IndexError):  # it has ended
                if stat_of(task)[0] == b"R":
                    ready[process] += os.sched_getaffinity(int(task.name)) <= cores
            processes += _children(task)
        if seen > MOST_TASKS:
            break
    return ready


def _tasks(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def _children(task: Path) -> list[int]:
    try:
        return [int(pid) for pid in (task / "children").read_bytes().split()]
    except OSError:  # it has ended
        return []
