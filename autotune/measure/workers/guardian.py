"""The process between a session and the process that runs an objective's code.

It runs none of that code itself, so nothing that an objective does can bring it down by accident. It

* drains what the worker prints and keeps the last lines;
* adopts every orphan among the worker's descendants, however often they fork, so that it can find
  them all;
* kills the worker with all of them: on the session's order, when the worker dies, and when the
  *session* dies, be it by ``kill -9``;
* removes the control groups and folders that the worker had made for processes of its own;
* says how the worker ended: its exit code or signal and its peak memory.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from autotune.measure.capture import Tail
from autotune.measure.libc import adopt_orphans, die_with_parent
from autotune.measure.workers.channel import frame
from autotune.measure.workers.descendants import ask_to_end, descendants, kill_descendants, reap
from autotune.measure.workers.endings import KILL, OUTPUT, SILENT, Ended, Output

_DYING_SECONDS = 1.0
"""How long a worker may take to die once its descriptors are closed; a large one frees its memory first."""


class Guardian:
    """Starts ``work`` in a process of its own and watches over it until it, or the session, has ended.

    ``control`` is the connection to the session; ``group`` a control group to remove where the
    session cannot do it any more; ``grace`` the seconds that the programs which the worker runs get after
    SIGTERM, before all is killed.
    """

    def __init__(self, control: socket.socket, session: int, group: Path | None, grace: float = 0.0) -> None:
        self._control = control
        self._session = session
        self._group = group
        self._grace = grace
        self._worker = 0
        self._status: int | None = None
        self._peak = 0
        self._killed = False
        self._buried = 0
        self._wake, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def run(self, work: Callable[[], None]) -> None:
        adopt_orphans()
        self._listen_to_signals()
        if not die_with_parent(self._session, signal.SIGTERM):
            return
        read, write = os.pipe2(os.O_CLOEXEC)
        guardian = os.getpid()
        self._worker = os.fork()
        if self._worker == 0:
            _become_worker(guardian, write, work, (self._wake, self._waker, read, self._control.fileno()))
        os.close(write)
        tail = Tail(read)
        self._watch(tail)
        self._ask_programs_to_end()
        kill_descendants(self._bury)
        if self._buried > 1:
            _sweep()
        tail.drain()
        self._say_how_it_ended(tail)

    # -- watching ------------------------------------------------------------------------------

    def _watch(self, tail: Tail) -> None:
        """Serve the session until the worker has died or has to be killed."""
        poll = select.poll()
        for descriptor in (self._control.fileno(), self._wake, tail.descriptor):
            poll.register(descriptor, select.POLLIN)
        while self._status is None and self._session_lives():
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._wake in ready:
                self._reap()
            if tail.descriptor in ready:
                tail.drain()
                if not tail.open:
                    poll.unregister(tail.descriptor)
            if self._control.fileno() in ready and not self._obey(tail):
                return

    def _obey(self, tail: Tail) -> bool:
        """Follow the session's orders; returns ``False`` if the worker has to be killed now."""
        try:
            orders = self._control.recv(64)
        except ConnectionError:  # the session has died before it read our last message
            orders = b""
        if not orders or KILL in orders:
            self._reap()
            self._killed = self._status is None
            return False
        if SILENT in orders:
            self._await_death()
            self._killed = self._status is None
            return False
        if OUTPUT in orders:
            tail.drain()
            self._send(Output(tail.take(), int(orders.rpartition(OUTPUT)[2])))
        return True

    def _await_death(self) -> None:
        self._reap()
        while self._status is None:
            if not select.select([self._wake], [], [], _DYING_SECONDS)[0]:
                return
            self._reap()

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._wake, 4096)
        reap(self._bury)

    def _bury(self, pid: int, status: int, peak: int) -> None:
        self._buried += 1
        if pid == self._worker:
            self._status, self._peak = status, peak

    def _session_lives(self) -> bool:
        return os.getppid() == self._session

    def _listen_to_signals(self) -> None:
        """A child's death and the session's death wake the loop up, nothing else."""
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    # -- the end -------------------------------------------------------------------------------

    def _ask_programs_to_end(self) -> None:
        """Give what the worker runs its time to end by itself. The worker stands still, lest it run more."""
        if not self._grace:
            return
        if self._status is None:
            os.kill(self._worker, signal.SIGSTOP)
        guardian = os.getpid()
        ask_to_end(lambda: (pid for pid in descendants(guardian) if pid != self._worker), self._grace)

    def _say_how_it_ended(self, tail: Tail) -> None:
        status = self._status if self._status is not None else 0
        signaled = os.WIFSIGNALED(status)
        ended = Ended(
            exit_code=None if signaled else os.waitstatus_to_exitcode(status),
            signal=os.WTERMSIG(status) if signaled else None,
            peak_memory=self._peak,
            output=tail.take(),
            killed=self._killed,
        )
        self._send(ended)
        if self._group is not None and not self._session_lives():
            with suppress(OSError):
                self._group.rmdir()

    def _send(self, message: Ended | Output) -> None:
        with suppress(OSError):  # the session is gone
            self._control.sendall(frame(message))


def _sweep() -> None:
    """Remove the control groups and folders that a worker may have made for processes of its own."""
    from autotune.measure.groups.device import sweep_device_groups
    from autotune.measure.ownership import sweep_scratch

    sweep_device_groups()
    sweep_scratch()


def _become_worker(guardian: int, output: int, work: Callable[[], None], close: tuple[int, ...]) -> None:
    """In the child: a session of its own, so that a signal to its process group reaches nobody else."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.setsid()
    if not die_with_parent(guardian):
        os._exit(1)
    adopt_orphans()
    os.dup2(output, 1)
    os.dup2(output, 2)
    for descriptor in (*close, output):
        os.close(descriptor)
    code = 1
    try:
        work()
        code = 0
    except BaseException:  # noqa: BLE001 - this process ends here, and says why
        traceback.print_exc()
    finally:
        os._exit(code)
