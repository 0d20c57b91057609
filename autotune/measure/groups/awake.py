"""Cores are kept awake while ranks with quotas run on them.

A rank that has used up its quota sleeps for some milliseconds in every hundredth of a second. A core with
nothing else to do sleeps with it, and may come back slow: at a lower clock, or, in a virtual machine, with
caches that somebody else has used. Where this was found the same training steps took between 50 and 80 ms of
*processor time* in one reading and the next, on an idle machine; 52 to 57 ms with a process beside them that
never sleeps and gets only what nobody else wants (``SCHED_IDLE``, Linux 2.6.23).
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
    """What a process knows that keeps a core awake."""

    parent: int
    core: int


class KeptAwake:
    """A process for each of some cores, which runs until the context is left, and whenever it is entered.

    Nothing is started where the system has no class of such a kind.
    """

    def __init__(self, cores: Iterable[int]) -> None:
        self._by_core = {
            core: subprocess.Popen(
                python_command(Waker(os.getpid(), core)),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
            for core in sorted(cores)
            if hasattr(os, "SCHED_IDLE")
        }

    @property
    def cores(self) -> tuple[int, ...]:
        """Those that are kept awake: not where the process may not step back so far, and has ended."""
        return tuple(core for core, process in self._by_core.items() if process.poll() is None)

    @property
    def processes(self) -> frozenset[int]:
        return frozenset(process.pid for process in self._by_core.values())

    def __enter__(self) -> None:
        for process in self._by_core.values():
            if process.stdout and not process.stdout.closed:
                with process.stdout:
                    process.stdout.read()  # its end: it asks for nothing but what is left over from here on
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
    """Be busy on the core with what nobody else wants of it, until the parent dies."""
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
