"""Runs a program to its end: bounded output, the exit told from a signal, no orphan left behind.

The program stays in the process group of the process that started it, so it is killed along with a worker
that is killed with its group; it also asks the kernel to be killed should its parent die alone. Only the
program itself is waited for: a grandchild that keeps the pipes open does not hold up the reading.
"""

from __future__ import annotations

import mmap
import os
import selectors
import signal
import struct
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from autotune.measure.diagnostics import is_of_memory, signal_name, telling_line
from autotune.measure.libc import dying_with_parent
from autotune.measure.memory import PeakMemory
from autotune.measure.workers.descendants import ask_to_end, descendants, signal_all

HEAD_BYTES = 1 << 16
TAIL_BYTES = 1 << 20
"""How much of a long output is kept: so many bytes of its beginning, and so many of its end."""

PASSED_ON = 1 << 13
"""How many bytes at the end of a piece of output are passed on; no more is kept with a trial."""


@dataclass(frozen=True)
class Finished:
    """How a program ended. ``exit_code`` is ``None`` where a signal ended it, and the other way round."""

    exit_code: int | None
    signal: int | None
    stdout: str
    stderr: str
    seconds: float
    """Wall clock, from just before ``exec`` to the end of the program."""

    @property
    def succeeded(self) -> bool:
        return self.exit_code == 0

    @property
    def how(self) -> str:
        """``exit code 3``, or ``killed by SIGSEGV``."""
        if self.signal is None:
            return f"exit code {self.exit_code}"
        return f"killed by {signal_name(self.signal)}"

    @property
    def last_words(self) -> str:
        """``: `` and the line of stderr, or else of stdout, that says most; to be put after a message."""
        found = self._reason
        return f": {found[:300]}" if found else ""

    @property
    def ran_out_of_memory(self) -> bool:
        """Whether it failed, and gives a lack of memory as the reason.

        A lack of memory that it reported, survived and then failed for another reason does not count.
        """
        return not self.succeeded and is_of_memory(self._reason)

    @property
    def _reason(self) -> str:
        return telling_line(self.stderr) or telling_line(self.stdout)


class Attendant(Protocol):
    """Called now and then while a program runs. An exception that it raises ends the program."""

    def fileno(self) -> int:
        """A descriptor that is readable when there is something to do."""

    def timeout(self) -> float | None:
        """Seconds after which it is called in any case; ``None``: never."""

    def attend(self) -> None:
        """Do what there is to do now, without waiting for more."""


def run_program(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    on_line: Callable[[str], None] | None = None,
    attendant: Attendant | None = None,
    memory: PeakMemory | None = None,
    grace: float = 0.0,
) -> Finished:
    """Run ``arguments`` in ``folder`` and wait. Raises ``OSError`` where it cannot be started.

    ``on_line`` is called with each line of stdout as it comes; an exception that it raises ends the program.
    All output of the program is also written to the stderr of this process at once: that of a worker is kept
    with its trial, however the trial ends. The peak of the program is noted in ``memory``, also where it was
    killed. Where an exception ends it, it gets ``grace`` seconds after SIGTERM, and so does what it started.
    """
    began = _Moment()
    process = subprocess.Popen(
        list(arguments),
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=_becoming(began),
    )
    assert process.stdout is not None and process.stderr is not None
    out = Bounded() if on_line is None else Lines(on_line)
    err = Bounded()
    try:
        with process.stdout, process.stderr:
            try:
                ended = _collect(process.pid, {process.stdout: out, process.stderr: err}, attendant)
            except BaseException:
                _end(process, grace)
                raise
            code = _reaped(process, memory)
            seconds = (ended or time.perf_counter()) - began.at
    except BaseException:
        process.kill()
        _reaped(process, memory)
        raise
    return Finished(
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        stdout=out.text,
        stderr=err.text,
        seconds=seconds,
    )


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """End it and what it started. What it says at its end is only passed on, lest it wait for a reader."""
    streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]

    def tree() -> list[int]:
        return [process.pid, *descendants(process.pid)]

    def listen() -> None:
        for stream in streams:
            _read_all(stream.fileno(), Bounded())

    if grace:
        ask_to_end(tree, grace, listen)
        listen()
    signal_all(tree(), signal.SIGKILL)


def _reaped(process: subprocess.Popen[bytes], memory: PeakMemory | None) -> int:
    """Wait for its end and note its peak of memory; returns its exit code as :mod:`subprocess` has it."""
    if process.returncode is None:
        _, status, usage = os.wait4(process.pid, 0)
        if memory is not None:
            memory.note(1024 * usage.ru_maxrss)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode


class _Moment:
    """A time that a child notes, in memory that is shared with it."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _TIME.size)

    def note(self) -> None:
        self._memory[:] = _TIME.pack(time.perf_counter())

    @property
    def at(self) -> float:
        return float(_TIME.unpack_from(self._memory)[0])


_TIME = struct.Struct("=d")


def _becoming(began: _Moment) -> Callable[[], None]:
    """What the child does just before it becomes the program.

    The time is noted here, since forking a process that has loaded large libraries takes longer than many a
    program, and is not part of the program's time.
    """
    die_with_us = dying_with_parent()

    def become() -> None:
        die_with_us()
        began.note()

    return become


class Bounded:
    """Keeps the beginning and the end of a stream of bytes."""

    def __init__(self, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self._head, self._tail = head, tail
        self._first = bytearray()
        self._last = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        _pass_on(data)
        room = self._head - len(self._first)
        self._first += data[:room] if room > 0 else b""
        self._last += data[max(room, 0) :]
        if len(self._last) > 2 * self._tail:  # cut now and then, not at every piece
            self._cut()

    def end(self) -> None:
        """Nothing more will come."""

    def _cut(self) -> None:
        surplus = max(len(self._last) - self._tail, 0)
        self._dropped += surplus
        del self._last[:surplus]

    @property
    def text(self) -> str:
        """What was kept, with a line in the place of what was not."""
        self._cut()
        gap = f"\n... {self._dropped} bytes left out ...\n".encode() if self._dropped else b""
        return bytes(self._first + gap + self._last).decode("utf-8", errors="replace")


def _pass_on(data: bytes) -> None:
    """Write it to our own stderr; where that is closed or full, it is dropped."""
    with suppress(OSError):
        os.write(2, data[-PASSED_ON:])


class Lines(Bounded):
    """Passes each line of a stream on when it is complete, and keeps it as well."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell
        self._begun = b""

    def add(self, data: bytes) -> None:
        super().add(data)
        *lines, begun = (self._begun + data).split(b"\n")
        self._begun = begun[:TAIL_BYTES]
        for line in lines:
            self._tell(line.decode("utf-8", errors="replace"))

    def end(self) -> None:
        if self._begun:
            self._tell(self._begun.decode("utf-8", errors="replace"))


def _collect(pid: int, streams: Mapping[IO[bytes], Bounded], attendant: Attendant | None) -> float | None:
    """Read the streams until the process has ended; on an old kernel until all of them are closed.

    Returns the time at which its end was seen, before the rest of its output was read; ``None`` on an old
    kernel.
    """
    ended: float | None = None
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ)
        try:
            process = os.pidfd_open(pid)
        except OSError:  # a kernel before 5.3
            process = -1
        else:
            selector.register(process, selectors.EVENT_READ)
        if attendant is not None:
            selector.register(attendant, selectors.EVENT_READ)
        open_streams = len(streams)
        try:
            waiting = True
            while waiting and (process >= 0 or open_streams):
                events = selector.select(attendant.timeout() if attendant else None)
                seen = time.perf_counter()
                for key, _ in events:
                    if key.fd == process:
                        waiting, ended = False, seen
                    elif key.fileobj is not attendant and not _read(key.fd, streams[key.fileobj]):  # type: ignore[index]
                        selector.unregister(key.fileobj)
                        open_streams -= 1
                if attendant is not None:
                    attendant.attend()
        finally:
            if process >= 0:
                os.close(process)
    for stream, kept in streams.items():
        _read_all(stream.fileno(), kept)
        kept.end()
    return ended


def _read(descriptor: int, kept: Bounded) -> bool:
    """Read what is there; returns whether more may come."""
    try:
        data = os.read(descriptor, 1 << 16)
    except BlockingIOError:
        return True
    kept.add(data)
    return bool(data)


def _read_all(descriptor: int, kept: Bounded) -> None:
    """Read what is left in a pipe after the end, but not for ever: a grandchild may still be writing."""
    for _ in range(TAIL_BYTES >> 12):
        try:
            data = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            return
        kept.add(data)
