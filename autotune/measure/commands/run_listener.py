"""The worker's end of a program's :func:`autotune.run`: gives knobs, takes reports, tells it to stop."""

from __future__ import annotations

import json
import math
import mmap
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from autotune.measure.commands.heard import Heard, numbers
from autotune.measure.commands.run_protocol import (
    ANSWER,
    BOARD,
    BOARD_BYTES,
    DOCUMENT,
    FORMAT,
    LARGEST_BYTES,
    ORDER,
    READ,
    socket_address,
)
from autotune.measure.libc import watch_openings
from autotune.measure.reports import Reporter
from autotune.measure.stopped import Stopped
from autotune.space.configuration import Value, plain
from autotune.status import Status

GRACE_SECONDS = 10.0
"""How long a program that was told to stop may take, unless twice its longest time between reports is
more."""

LOOK_SECONDS = 0.2
"""The time between two looks for messages: waking up for each would interrupt the program while it sends."""

_EVENTS_BYTES = 4096

_AT_ONCE = 10_000
"""How many packets are taken before something else has its turn."""

_UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""What reading a packet may raise that some other program has sent."""


class Overlong(Exception):  # noqa: N818 - no error, but an end
    """The program has taken as long as it was allowed to (:meth:`RunListener.give`)."""


class RunListener:
    """A context in which a program may open runs. ``with RunListener(...) as listener: start the program``

    :meth:`attend` never waits. When a report ends the trial it does not raise: the program is told to stop,
    and has some time of grace to do so. After that :meth:`attend` raises :class:`Stopped`.
    """

    def __init__(
        self,
        parent: Path,
        knobs: Mapping[str, Value],
        report: Reporter,
        goals: Collection[str] = (),
        note_facts: Callable[[Mapping[str, object]], None] | None = None,
    ) -> None:
        """Reports go to ``report``, and facts also to ``note_facts``. Where the report follows no curve, one
        of ``goals`` that is NaN or infinite ends the trial all the same."""
        parent.mkdir(parents=True, exist_ok=True)
        self.heard = Heard()
        self.stopped: Stopped | None = None
        self.was_read = False
        """Whether a program has read the knobs; known once this context is left."""
        self.report = report
        self._goals = goals
        self._note_facts = note_facts
        self._folder = Path(tempfile.mkdtemp(prefix="run-", dir=parent))
        try:
            self._board = self._make_board()
            self._server = self._make_socket()
            self._write_document(knobs)
            self._openings = self._watch()
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._connections: list[socket.socket] = []
        self._next_look = math.inf
        self._last_report = time.monotonic()
        self._longest = 0.0
        self._deadline = math.inf
        self._over = math.inf

    def give(self, seconds: float) -> None:
        """Let :meth:`attend` raise :class:`Overlong` after so many seconds from now."""
        self._over = time.monotonic() + seconds

    @property
    def document(self) -> str:
        """The value for the variable ``AUTOTUNE_RUN``: the path of the file with the knobs."""
        return str(self._folder / DOCUMENT)

    def fileno(self) -> int:
        """Readable when a run begins or is at a rung. Other messages do not wake us: see :meth:`timeout`."""
        return self._server.fileno()

    def timeout(self) -> float | None:
        """Seconds until :meth:`attend` has to be called; ``None``: only when something comes.

        This process shares its core with the program, so waking up for a message would interrupt the very
        report that sends it. So while a run is open, messages are looked for only now and then, and at a
        rung: there the run opens a new connection, since it soon has to know whether to go on.
        """
        due = min(self._deadline, self._next_look, self._over)
        return None if due == math.inf else max(due - time.monotonic(), 0.0)

    def attend(self) -> None:
        """Take the messages that have come, and raise where the trial must end."""
        with suppress(BlockingIOError):
            while True:
                connection, _ = self._server.accept()
                connection.setblocking(False)
                self._connections.append(connection)
        self._connections = [connection for connection in self._connections if self._receive(connection)]
        self._next_look = time.monotonic() + LOOK_SECONDS if self._connections else math.inf
        now = time.monotonic()
        if self.stopped is not None and now >= self._deadline:
            raise self.stopped
        if now >= self._over:
            raise Overlong

    def __enter__(self) -> RunListener:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._connections:
            connection.close()
        self.was_read = self._was_read()
        if self._openings is not None:
            os.close(self._openings)
        self._server.close()
        self._board.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _was_read(self) -> bool:
        """Whether the knobs were read: by an open run, by one that cannot reach us, or by anybody else.

        Other readers are noticed when they open the document. Where that cannot be watched, it may have been
        read.
        """
        if self.heard.runs or (self._folder / READ).exists() or self._openings is None:
            return True
        try:
            return bool(os.read(self._openings, _EVENTS_BYTES))  # also where the folder was cleared away
        except BlockingIOError:
            return False

    # -- hearing -------------------------------------------------------------------------------

    def _receive(self, connection: socket.socket) -> bool:
        """Take the packets that have come; returns whether more may come."""
        for _ in range(_AT_ONCE):
            try:
                packet = connection.recv(LARGEST_BYTES)
            except BlockingIOError:
                return True
            except OSError:
                packet = b""
            if not packet:
                connection.close()
                return False
            message: object = None
            with suppress(*_UNREADABLE):
                message = json.loads(packet)
                self._take(message)
            if isinstance(message, dict) and message.get("awaits"):
                with suppress(OSError):
                    connection.send(ANSWER)
        return True

    def _take(self, message: Any) -> None:
        match message["kind"]:
            case "hello":
                self.heard.begin()
            case "report":
                step, values = int(message["step"]), numbers(message["values"])
                self.heard.values |= values
                self.heard.unfinished &= self.report.steps is None or step < self.report.steps
                self._reported(step, values)
            case "facts":
                facts = dict(message["facts"])
                if self._note_facts is not None:
                    self._note_facts(facts)
                self.heard.given |= facts
            case "end":
                self.heard.end(message)

    def _reported(self, step: int, values: Mapping[str, float]) -> None:
        """Pass a report on to the session, if it continues the curve."""
        now = time.monotonic()
        self._longest = max(self._longest, now - self._last_report)
        self._last_report = now
        curve, last = self.report.curve, self.report.last
        if self.stopped is not None:
            return
        if curve is None:
            self._end_if_diverged(step, values)
            return
        if curve.metric not in values:
            return
        if step < 0 or (last is not None and step <= last.step):
            return
        try:
            self.report(step, values)
        except Stopped as stopped:
            self._stop(stopped)

    def _end_if_diverged(self, step: int, values: Mapping[str, float]) -> None:
        lost = [name for name in self._goals if not math.isfinite(values.get(name, 0.0))]
        if lost:
            self._stop(Stopped(Status.DIVERGED, f"{lost[0]} is {values[lost[0]]} at step {step}"))

    def _stop(self, stopped: Stopped) -> None:
        self.stopped = stopped
        self._deadline = time.monotonic() + max(GRACE_SECONDS, 2 * self._longest)
        memoryview(self._board).cast("q")[ORDER] = 1

    # -- making --------------------------------------------------------------------------------

    def _make_board(self) -> mmap.mmap:
        with (self._folder / BOARD).open("x+b") as file:
            file.truncate(BOARD_BYTES)
            return mmap.mmap(file.fileno(), BOARD_BYTES)

    def _make_socket(self) -> socket.socket:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server.setblocking(False)
        with socket_address(str(self._folder)) as address:
            server.bind(address)
        server.listen(64)
        return server

    def _write_document(self, knobs: Mapping[str, Value]) -> None:
        curve = self.report.curve
        document = {
            "format": FORMAT,
            "knobs": {name: plain(value) for name, value in knobs.items()},
            "metric": curve.metric if curve else None,
            "goals": list(self._goals),
            "steps": curve.steps if curve else None,
            "decide_at": [rung for rung in curve.decide_at or () if rung > curve.done] if curve else [],
            "kept_at": [rung for rung in curve.rungs if rung > curve.done] if curve else [],
            "pauses": curve is not None and curve.pauses,
        }
        (self._folder / DOCUMENT).write_text(json.dumps(document))

    def _watch(self) -> int | None:
        """Watch whether anybody opens the document from now on; ``None`` where that is not possible."""
        try:
            return watch_openings(self.document)
        except OSError:
            return None
