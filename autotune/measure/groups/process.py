"""The starter's side of one rank: its process, its connection, its limits."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from autotune.measure.groups.board import Board
from autotune.measure.groups.device import DeviceLimits
from autotune.measure.groups.failures import RankState
from autotune.measure.groups.messages import Call, Done, Entered, Raised
from autotune.measure.groups.network import Joined, Port
from autotune.measure.groups.rank import RankBirth
from autotune.measure.process_stat import stat_of
from autotune.measure.workers.bootstrap import python_command
from autotune.measure.workers.channel import BrokenChannel, Splitter, frame
from autotune.measure.workers.descendants import descendants

_MOST_DESCRIPTORS = 16
"""The most descriptors that come with one message."""
_DESCRIPTOR = struct.Struct("i")
_FLAGS = socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC
_DYING_SECONDS = 10.0
"""How long a killed process may take to be gone."""


class RankProcess:
    """The process of a rank. Only :meth:`bury` waits for it."""

    def __init__(
        self, birth: RankBirth, port: Port, limits: DeviceLimits, environment: Mapping[str, str]
    ) -> None:
        """``birth`` comes without the channel, which is made here."""
        self.number = birth.rank
        self.limits = limits
        self.answer: Done | Raised | None = None
        """Its answer to the last call; ``None``: it has not answered yet."""
        self._joined: Joined | None = None
        self._descriptors: list[int] = []
        """Descriptors that it has sent, and nobody has taken yet."""
        self._splitter = Splitter()
        self._connection, theirs = socket.socketpair()
        try:
            self._process = subprocess.Popen(
                python_command(replace(birth, channel=theirs.fileno())),
                env={**os.environ, **_threads(len(birth.cores)), **environment},
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), birth.board),
                start_new_session=True,
            )
        finally:
            theirs.close()
        self.pid = self._process.pid
        module = sys.modules[type(port).__module__]
        file = getattr(module, "__file__", None) or ""
        self.send((limits, (module.__name__, file, pickle.dumps(port))))

    def fileno(self) -> int:
        return self._connection.fileno()

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def send(self, message: object) -> None:
        """Send a message. If the process is dead, nothing happens here; :attr:`exit_code` shows it."""
        with suppress(OSError):
            self._connection.sendall(frame(message))

    def call(self, call: Call) -> None:
        """Begin a call; :meth:`take` receives its answer."""
        self.answer = None
        self.send(call)

    def take(self) -> None:
        """Receive what has come, without waiting; nothing where the connection is closed."""
        room = socket.CMSG_SPACE(_MOST_DESCRIPTORS * _DESCRIPTOR.size)
        try:
            # Not socket.recv_fds, which drops the flags that it is given.
            data, extras, _, _ = self._connection.recvmsg(1 << 20, room, _FLAGS)
            messages = [pickle.loads(payload) for payload in self._splitter.feed(data)]
        except (BlockingIOError, BrokenChannel, ConnectionError):
            return
        for _, kind, content in extras:
            if kind == socket.SCM_RIGHTS:
                self._descriptors += [number for (number,) in _DESCRIPTOR.iter_unpack(content)]
        for message in messages:
            if isinstance(message, Entered):
                self._joined = message.joined
            else:
                self.answer = message

    @property
    def has_joined(self) -> bool:
        return self._joined is not None

    def hand_over(self) -> Joined:
        """How it has joined, with the descriptors that it sent, which the caller owns from now on."""
        assert self._joined is not None
        descriptors, self._descriptors = tuple(self._descriptors), []
        return replace(self._joined, descriptors=descriptors)

    def state(self, board: Board) -> RankState:
        """Its present state."""
        cap = self.limits.cap
        return RankState(
            self.number,
            board.read(self.number),
            finished=self.answer is not None and not isinstance(self.answer, Raised),
            exit_code=self.exit_code,
            memory_kills=self.limits.kills(),
            cap=cap.bytes if cap is not None else 0,
            stopped=_state(self.pid) in b"Tt",
            raised=self.answer if isinstance(self.answer, Raised) else None,
        )

    def kill(self) -> None:
        """Kill it with all that it started."""
        if self._process.poll() is None:
            for pid in [*descendants(self.pid), self.pid]:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)

    def bury(self) -> None:
        """Wait until it is dead, and remove its limits."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_DYING_SECONDS)
        self._connection.close()
        for descriptor in self._descriptors:
            os.close(descriptor)
        self._descriptors.clear()
        deadline = time.monotonic() + 1.0
        while not self.limits.remove() and time.monotonic() < deadline:
            time.sleep(0.005)  # the kernel takes a moment to free the group of a dead process


def _threads(cores: int) -> dict[str, str]:
    """Thread counts for numeric libraries, where the user has set none."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return {name: str(max(1, cores)) for name in names if name not in os.environ}


def _state(pid: int) -> bytes:
    try:
        return stat_of(f"/proc/{pid}")[0]
    except (OSError, IndexError):
        return b"?"
