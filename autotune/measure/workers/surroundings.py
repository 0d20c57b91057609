"""The state of a process that serves one configuration after another: restored, so each finds the same."""

from __future__ import annotations

import gc
import os
import resource
import signal
import sys
from contextlib import suppress

from autotune.measure.cores.pinning import pin
from autotune.measure.libc import flush_c_output
from autotune.measure.workers.streams import Streams

_LIMITS = tuple(number for name, number in vars(resource).items() if name.startswith("RLIMIT_"))
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)


class Surroundings:
    """Working folder, variables, limits, signals and streams as they are now, for :meth:`restore`."""

    def __init__(self, cores: tuple[int, ...]) -> None:
        self._cores = cores
        self._streams = Streams()
        self._folder = os.open(".", os.O_PATH | os.O_CLOEXEC)  # it may be removed, or get another name
        self._mask = os.umask(0)
        os.umask(self._mask)
        self._variables = os.environ.copy()
        self._limits = {number: resource.getrlimit(number)[0] for number in _LIMITS}
        self._handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
        self._blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._collects = gc.isenabled()
        self._depth = sys.getrecursionlimit()
        self._trace, self._profile = sys.gettrace(), sys.getprofile()

    def restore(self) -> None:
        """Undo what the code of a configuration has changed, as far as possible.

        Limits that it has raised stay, and so do signal handlers: they may have been set for all
        configurations.
        """
        sys.setrecursionlimit(max(self._depth, sys.getrecursionlimit()))  # first: the rest may need it
        sys.settrace(self._trace)
        sys.setprofile(self._profile)
        (gc.enable if self._collects else gc.disable)()
        flush_c_output()
        self._streams.restore()
        for timer in _TIMERS:
            signal.setitimer(timer, 0)
        self._hear_signals()
        for number, before in self._limits.items():
            soft, hard = resource.getrlimit(number)
            if _is_lower(soft, before):
                with suppress(OSError, ValueError):  # if it has lowered the hard limit, that cannot be undone
                    resource.setrlimit(number, (before, hard))
        for name in os.environ.keys() - self._variables.keys():
            del os.environ[name]
        os.environ.update(self._variables)
        os.umask(self._mask)
        os.fchdir(self._folder)
        pin(self._cores)

    def _hear_signals(self) -> None:
        """Ignore and block only what was before. With SIGCHLD ignored, every child seems to succeed."""
        for number, before in self._handlers.items():
            if signal.getsignal(number) is signal.SIG_IGN and before not in (signal.SIG_IGN, None):
                signal.signal(number, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._blocked)


def _is_lower(limit: int, before: int) -> bool:
    unlimited = resource.RLIM_INFINITY
    return limit != unlimited and (before == unlimited or limit < before)
