"""Keeps cores awake while ranks with quotas run on them.

A rank that has used up its quota sleeps for some milliseconds in every hundredth of a second. A core with
nothing else to do sleeps as well, and may wake up slow: at a lower clock or, in a virtual machine, with
caches that others have used meanwhile. On the idle machine where this was found, the *processor time* of the
same training steps varied between 50 and 80 ms from one reading to the next. It was 52 to 57 ms beside a
process that never sleeps and only gets processor time that nobody else wants (``SCHED_IDLE``, Linux 2.6.23).
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from autotune.measure.cores.pinning import pin
from autotune.measure.libc import die_with_parent
from autotune.measure.workers.bootstrap import python_command

_DYING_SECONDS = 10.0
"""How long a killed process may take to be gone."""


@dataclass(frozen=True)
class Waker:
    """What a process that keeps a core awake has to know."""

    parent: int
    core: int


class KeptAwake:
    """A process for each of some cores, which runs while the context is entered.

    Nothing is started where the system has no ``SCHED_IDLE``.
    """

    def __init__(self, cores: Iterable[int]) -> None:
        self._by_core: dict[int, subprocess.Popen[bytes]] = {}
        try:
            for core in sorted(cores) if hasattr(os, "SCHED_IDLE") else ():
                self._by_core[core] = subprocess.Popen(
                    python_command(Waker(os.getpid(), core)),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                )
        except BaseException:
            self.close()  # nobody else knows those that have begun
            raise

    @property
    def cores(self) -> tuple[int, ...]:
        """The cores that are kept awake, without those whose process was refused ``SCHED_IDLE`` and ended."""
        return tuple(core for core, process in self._by_core.items() if process.poll() is None)

    @property
    def processes(self) -> frozenset[int]:
        return frozenset(process.pid for process in self._by_core.values())

    def __enter__(self) -> None:
        for process in self._by_core.values():
            if process.stdout and not process.stdout.closed:
                with process.stdout:
                    process.stdout.read()  # until it is closed: from then on the process has SCHED_IDLE
        self._tell(signal.SIGCONT)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tell(signal.SIGSTOP)

    def close(self) -> None:
        self._tell(signal.SIGKILL)
        for process in self._by_core.values():
            if process.stdout:
                process.stdout.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_DYING_SECONDS)

    def _tell(self, what: signal.Signals) -> None:
        for process in self._by_core.values():
            process.send_signal(what)  # does nothing where it has ended and was waited for


def main(waker: Waker) -> None:
    """Keep the core busy with what nobody else wants of its time, until the parent dies."""
    if not die_with_parent(waker.parent):
        return
    try:
        pin((waker.core,))
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except OSError:
        return
    os.close(1)
    while True:
        pass
