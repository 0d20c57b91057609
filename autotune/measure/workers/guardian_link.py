"""The session's side of a guardian: starts it and the worker below it, gives it orders, hears its answers."""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import TypeVar

from autotune.errors import AutotuneError
from autotune.measure.capture import tail_text
from autotune.measure.workers.bootstrap import python_command
from autotune.measure.workers.channel import BrokenChannel, Channel
from autotune.measure.workers.endings import OUTPUT, Ended, Output
from autotune.measure.workers.limits import GroupCap
from autotune.measure.workers.messages import Noted, Setup
from autotune.measure.workers.notes import SharedNotes
from autotune.measure.workers.worker import Birth
from autotune.space.spec import CommandObjective

_KILL_SECONDS = 20.0
"""How long a guardian may take to kill a tree; a core of many gigabytes takes seconds to be freed."""

_OUTPUT_SECONDS = 5.0

HASH_SEED = "PYTHONHASHSEED"

_LIMITS = {
    errno.EFBIG: ": raise the limit on the size of files (ulimit -f)",
    errno.EMFILE: ": raise the limit on open files (ulimit -n)",
    errno.EAGAIN: ": raise the limit on processes (ulimit -u)",
}
"""What ends the message where the user's own limit is the reason."""

_Kind = TypeVar("_Kind", Ended, Output)


class GuardianLink:
    """The session's connections to a guardian and its worker, from their start until :meth:`close`."""

    def __init__(self, setup: Setup, environment: Mapping[str, str], guardian_cores: tuple[int, ...]) -> None:
        """Raises :class:`AutotuneError` where they cannot be started; then nothing is left open."""
        self._cap = setup.cap
        self._grace = setup.objective.grace if isinstance(setup.objective, CommandObjective) else 0.0
        self._said: list[Ended | Output] = []
        self._asked = 0
        """How often it was asked for the output of the worker."""
        with ExitStack() as ours, ExitStack() as given:
            try:
                self._errors = os.memfd_create("autotune-guardian", os.MFD_CLOEXEC)
                ours.callback(os.close, self._errors)
                notes = SharedNotes.make()
                given.callback(os.close, notes)
                control, guardian_end = _pair(ours, given)
                channel, worker_end = _pair(ours, given)
                self._notes = SharedNotes(notes)
                ours.callback(self._notes.close)
                given_env = {**os.environ, **environment}
                own_env = {} if HASH_SEED in given_env else {HASH_SEED: str(setup.hash_seed)}
                birth = Birth(
                    session=os.getpid(),
                    control=guardian_end.fileno(),
                    channel=worker_end.fileno(),
                    notes=notes,
                    cores=setup.cores,
                    guardian_cores=guardian_cores,
                    group=str(setup.cap.folder) if isinstance(setup.cap, GroupCap) else "",
                    grace=self._grace,
                    unset=tuple(own_env),
                )
                self._process = subprocess.Popen(
                    python_command(birth),
                    env=given_env | own_env,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._errors,
                    pass_fds=(birth.control, birth.channel, birth.notes),
                    start_new_session=True,
                )
            except OSError as error:  # a limit on files, on their size or on processes
                hint = _LIMITS.get(error.errno or 0, "")
                raise AutotuneError(f"no worker process could be started: {error}{hint}") from error
            self._control = Channel(control)
            self.channel = Channel(channel)
            """The channel to the worker."""
            self._open = ours.pop_all()  # both processes run: close all of this once they have ended

    @property
    def pid(self) -> int:
        """The process id of the guardian, of which all others are descendants."""
        return self._process.pid

    def fileno(self) -> int:
        """A descriptor that is readable when the guardian has sent something."""
        return self._control.fileno()

    def hear(self) -> bool:
        """Receive what it sent; whether the worker has ended. :class:`BrokenChannel` if it is gone."""
        self._said += self._control.receive()
        return any(isinstance(message, Ended) for message in self._said)

    def output(self) -> str:
        """What was printed since the last time."""
        self._asked += 1
        deadline = time.monotonic() + _OUTPUT_SECONDS
        order = OUTPUT + b"%d" % self._asked
        while (printed := self._order(order, Output, deadline)) is not None:
            if printed.order == self._asked:
                return printed.text
            order = b""  # a late answer, about a trial that has ended: wait on
        return ""

    def end(self, order: bytes) -> Ended | None:
        """Order it to end the worker, and wait until all are dead; ``None`` where the guardian is dead.

        In that case its process group, and the processes in the control group of the cap, are killed from
        here.
        """
        ended = self._order(order, Ended, time.monotonic() + _KILL_SECONDS + self._grace)
        if ended is None:
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            if isinstance(self._cap, GroupCap):
                self._cap.kill_members()
        self._process.wait()
        return ended

    def noted(self, now: float) -> Noted:
        """What the worker has noted about its last request, up to ``now`` (monotonic)."""
        return self._notes.read(now)

    def waited(self) -> float:
        """How many seconds the worker has waited for another search during its request."""
        return self._notes.waited(time.monotonic())

    def own_errors(self) -> str:
        """What the guardian itself has printed, while it started or as it died."""
        os.lseek(self._errors, 0, os.SEEK_SET)
        return tail_text(os.read(self._errors, 1 << 20))

    def close(self) -> None:
        """Close all descriptors, once both processes have ended."""
        self._open.close()

    def _order(self, order: bytes, kind: type[_Kind], deadline: float) -> _Kind | None:
        """Give an order and wait for the answer of this ``kind``; ``None`` where the guardian is gone."""
        self._control.send_raw(order)
        poll = select.poll()
        poll.register(self._control.fileno(), select.POLLIN)
        has_ended = False
        while True:
            for message in self._said:
                if isinstance(message, kind):
                    self._said = [other for other in self._said if other is not message]
                    return message
            left = deadline - time.monotonic()
            if left <= 0 or has_ended:
                return None
            poll.poll(left * 1000 + 1)
            try:
                has_ended = self.hear()
            except BrokenChannel:
                return None


def _pair(ours: ExitStack, given: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Our end of a connection, and the end that a child gets."""
    own, other = socket.socketpair()
    ours.callback(own.close)
    given.callback(other.close)
    return own, other
