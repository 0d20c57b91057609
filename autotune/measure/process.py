"""A worker as its session sees it: a process that can be killed at any moment, with all that it started."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import TypeVar

from autotune.errors import AutotuneError, InputError
from autotune.measure import endings
from autotune.measure.capture import tail_text
from autotune.measure.channel import BrokenChannel, Channel
from autotune.measure.endings import Ended, Output
from autotune.measure.limits import GroupCap
from autotune.measure.messages import (
    Checked,
    Decided,
    Measured,
    Noted,
    Prepared,
    Ready,
    Refused,
    Reported,
    Request,
    Setup,
)
from autotune.measure.notes import SharedNotes
from autotune.measure.worker import Birth

START_SECONDS = 120.0
"""How long an objective may take to import (torch on a cold disk takes a while)."""

_KILL_SECONDS = 20.0
"""How long a guardian may take to kill a tree; a core of many gigabytes takes seconds to be freed."""

_OUTPUT_SECONDS = 5.0

_LONGEST_POLL_SECONDS = 3600.0
"""A poll takes at most 24 days, and a limit may be longer: then it is asked again."""

_BOOTSTRAP = (
    "import json, sys; born = json.loads(sys.argv[1]); sys.path[:] = born.pop('path');"
    " from autotune.measure.worker import Birth, main; main(Birth(**born))"
)
"""The worker's import path is ours. An environment variable would reach the programs it starts as well."""

Answer = Prepared | Checked | Measured

_Kind = TypeVar("_Kind", Ended, Output)


class Cause(Enum):
    """Why a worker has ended."""

    DIED = "it died"
    SILENT = "it closed its connection to the session"
    LIMIT = "it was killed at its time limit"
    ORDER = "it was given up"
    VANISHED = "its guardian was killed"


@dataclass(frozen=True)
class Death:
    """The end of a worker, and what is known of the trial that it was at."""

    cause: Cause
    ended: Ended | None
    noted: Noted
    """What it had written down of its last request."""
    cap_kills: int
    """How many of its processes the kernel had killed at its memory cap."""
    machine_kills: int
    """How many processes the kernel killed for memory on the whole machine while it lived."""
    output: str
    """What it printed while it was at its last request."""
    limit: float
    """Seconds that it had for its last request."""
    cap: int | None
    """Its memory cap in bytes."""


class Worker:
    """A process that makes an objective and then answers requests about it, one at a time.

    Its life::

        born ──▶ starting ──Ready──▶ idle ◀──answer── busy
                    │                 │ └───request────▲ │
                    │ Refused         │                  │
                    ▼                 ▼                  ▼
                 InputError         ended ◀── died, killed at its limit, given up, or closed

    Two processes are born. The *guardian* runs none of the objective's code. The worker proper is its
    child: capped, pinned, in a process group of its own. It adopts the orphans among its descendants, and
    the guardian does after its death. Whenever either the session or the worker ends, the guardian
    kills everything below it and reaps it. Whoever holds a Worker closes it. Only :meth:`wait` waits for the
    objective's code; all else returns at once, or as soon as the guardian has done its work.
    """

    def __init__(
        self,
        setup: Setup,
        environment: Mapping[str, str] | None = None,
        guardian_cores: tuple[int, ...] = (),
    ) -> None:
        """Begin to start. ``environment`` is added to that of this process."""
        self.setup = setup
        self.ready: Ready | None = None
        self.busy = True  # with starting
        self.started = time.monotonic()
        self.limit = START_SECONDS
        self.output = ""
        """What it printed while it was at its last request."""
        self.reported: list[Reported] = []
        """What the trial that it is at has reported and nobody has taken yet."""
        self._death: Death | None = None
        self._said: list[Ended | Output] = []
        self._machine_kills = _machine_kills()
        self._launch(environment or {}, guardian_cores)
        self._channel.send(setup)

    def _launch(self, environment: Mapping[str, str], guardian_cores: tuple[int, ...]) -> None:
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
                birth = self._birth(guardian_end, worker_end, notes, guardian_cores)
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _BOOTSTRAP, _as_json(birth)],
                    env={**os.environ, **environment},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=self._errors,
                    pass_fds=(birth.control, birth.channel, birth.notes),
                    start_new_session=True,
                )
            except OSError as error:  # a limit on files, on their size or on processes
                raise AutotuneError(f"no worker process could be started: {error}") from error
            self._control, self._channel = Channel(control), Channel(channel)
            ours.pop_all()  # it lives: they are closed when it ends

    def _birth(
        self, control: socket.socket, channel: socket.socket, notes: int, guardian_cores: tuple[int, ...]
    ) -> Birth:
        cap = self.setup.cap
        return Birth(
            session=os.getpid(),
            control=control.fileno(),
            channel=channel.fileno(),
            notes=notes,
            cores=self.setup.cores,
            guardian_cores=guardian_cores,
            group=str(cap.folder) if isinstance(cap, GroupCap) else "",
        )

    # -- asking and answering ------------------------------------------------------------------

    @property
    def name(self) -> str:
        """Host and process, as they are written down with a trial."""
        return f"{os.uname().nodename}:{self.pid}"

    @property
    def pid(self) -> int:
        """Of the guardian, whose descendant all else is."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._death is None

    @property
    def deadline(self) -> float:
        """When it will be killed if it has not answered (monotonic); infinite while it is idle."""
        return self.started + self.limit if self.busy and self.alive else float("inf")

    def ask(self, request: Request, seconds: float) -> None:
        """Send a request to an idle worker, to be answered within ``seconds``."""
        assert self.ready is not None and not self.busy, "a worker answers one request at a time"
        self.busy = True
        self.started, self.limit = time.monotonic(), seconds
        self._channel.send(request)

    def answer(self, decided: Decided) -> None:
        """Answer a report that waits."""
        if self.alive:
            self._channel.send(decided)

    def watch(self, poll: select.poll) -> None:
        """Register all that something can come from."""
        if self.alive:
            unsent = select.POLLOUT if self._channel.unsent else 0
            poll.register(self._channel.fileno(), select.POLLIN | unsent)
            poll.register(self._control.fileno(), select.POLLIN)

    def attend(self) -> Answer | Ready | Death | None:
        """What has come since the last call, if anything; never waits for the worker.

        Raises :class:`InputError` where the objective cannot be used at all.
        """
        if self._death is not None:
            return self._death
        try:
            self._channel.flush()
            messages = self._channel.receive()
        except BrokenChannel:
            return self._end(Cause.SILENT, endings.SILENT)
        self.reported += [message for message in messages if isinstance(message, Reported)]
        if answers := [message for message in messages if not isinstance(message, Reported)]:
            return self._take(answers)
        try:
            self._said += self._control.receive()
        except BrokenChannel:
            return self._end(Cause.VANISHED, endings.KILL)
        if self._has_ended():
            return self._end(Cause.SILENT, endings.SILENT)
        if time.monotonic() >= self.deadline:
            return self._end(Cause.LIMIT, endings.KILL)
        return None

    def forgive(self, seconds: float) -> None:
        """So many seconds do not count as its own: nobody could have heard its answer."""
        self.started += seconds

    def wait(self) -> Answer | Ready | Death:
        """Wait for the answer, at most until the deadline."""
        while (came := self.attend()) is None:
            poll = select.poll()
            self.watch(poll)
            left = max(0.0, self.deadline - time.monotonic())
            poll.poll(min(left, _LONGEST_POLL_SECONDS) * 1000 + 1)
        return came

    def _take(self, answers: list[object]) -> Answer | Ready | Death:
        message = answers[0]
        if isinstance(message, Refused):
            self.close()
            raise InputError(message.problems)
        if not self.busy or len(answers) > 1 or not isinstance(message, Ready | Answer):
            return self._end(Cause.SILENT, endings.KILL)  # who says what nobody has asked is not believed
        printed = self._order(endings.OUTPUT, Output, _OUTPUT_SECONDS)
        self.output = printed.text if printed is not None else ""
        self.busy = False
        if isinstance(message, Ready):
            self.ready = message
        return message

    # -- ending --------------------------------------------------------------------------------

    def kill(self) -> Death:
        """Kill it with all that it started, and wait until they are dead."""
        return self._death or self._end(Cause.ORDER, endings.KILL)

    def close(self) -> None:
        """Kill it where it is alive. Nothing of it is left afterwards."""
        self.kill()

    def memory_kills(self) -> int:
        """How many of its processes the kernel has killed at its memory cap."""
        return self.setup.cap.kills() if self.setup.cap is not None else 0

    def _end(self, cause: Cause, order: bytes) -> Death:
        now = time.monotonic()
        ended = self._order(order, Ended, _KILL_SECONDS)
        if ended is None:
            cause = Cause.VANISHED
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            if isinstance(self.setup.cap, GroupCap):
                self.setup.cap.kill_members()
        elif cause in (Cause.SILENT, Cause.LIMIT) and not ended.killed:
            cause = Cause.DIED
        self._process.wait()
        self.output = ended.output if ended is not None else _read_all(self._errors)
        self._death = Death(
            cause=cause,
            ended=ended,
            noted=self._notes.read(now),
            cap_kills=self.memory_kills(),
            machine_kills=_machine_kills() - self._machine_kills,
            output=self.output,
            limit=self.limit,
            cap=self.setup.cap.bytes if self.setup.cap is not None else None,
        )
        self._control.close()
        self._channel.close()
        self._notes.close()
        os.close(self._errors)
        if self.setup.cap is not None:
            self.setup.cap.remove()  # or the next session will, where the kernel is not done with it
        return self._death

    def _order(self, order: bytes, kind: type[_Kind], seconds: float) -> _Kind | None:
        """Send an order to the guardian and wait for what it says; ``None`` where it is gone."""
        self._control.send_raw(order)
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._control.fileno(), select.POLLIN)
        while True:
            for message in self._said:
                if isinstance(message, kind):
                    self._said = [other for other in self._said if other is not message]
                    return message
            left = deadline - time.monotonic()
            if left <= 0 or self._has_ended():
                return None
            poll.poll(left * 1000 + 1)
            try:
                self._said += self._control.receive()
            except BrokenChannel:
                return None

    def _has_ended(self) -> bool:
        return any(isinstance(message, Ended) for message in self._said)


def _pair(ours: ExitStack, given: ExitStack) -> tuple[socket.socket, socket.socket]:
    """Our end of a connection, and the one that is given away."""
    own, other = socket.socketpair()
    ours.callback(own.close)
    given.callback(other.close)
    return own, other


def _as_json(birth: Birth) -> str:
    path = [entry or os.getcwd() for entry in sys.path]  # noqa: PTH109
    return json.dumps({**asdict(birth), "path": path})


def _read_all(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return tail_text(os.read(descriptor, 1 << 20))


def _machine_kills() -> int:
    """How many processes the kernel has killed for memory since the machine started."""
    with suppress(OSError, ValueError):
        for line in Path("/proc/vmstat").read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
