"""The program's end of a run under a search.

Once a link is open, no function waits longer than its caller says, and none raises, except for a message
that is too large.

A link belongs to one process. If the search goes away, the link is closed and the training goes on. A
process that was forked from the one that opened the link neither sends nor closes anything. A program may
close all its descriptors and open others with the same numbers, so each descriptor is compared by its inode
before it is used.
"""

from __future__ import annotations

import errno
import fcntl
import json
import mmap
import os
import select
import socket
import sys
import time
from contextlib import suppress
from typing import Any, Literal

from autotune.measure.commands.run_protocol import (
    ANSWER,
    BOARD,
    BOARD_BYTES,
    FORMAT,
    LARGEST_BYTES,
    OWNER,
    READ,
    socket_address,
)


class LinkError(Exception):
    """The search cannot be reached; the text is for people."""


class TooLargeError(Exception):
    """The message is larger than a packet may be: it can never be sent, but a smaller one can."""


Role = Literal["reporter", "nested", "other", "silent"]
"""``reporter``: this run reports; ``nested``: another run of this process reports already; ``other``: another
process of the trial reports; ``silent``: this process is a rank above 0."""


class Link:
    """A document of knobs, a board to read from, and a socket to write to."""

    def __init__(self, document: str, reports: bool = True) -> None:
        """Open the link that the search has prepared; ``document`` is the path of its document of knobs.

        ``reports`` is whether this process may report. Raises :class:`LinkError` if the document cannot be
        read.
        """
        self._folder = os.path.dirname(document)  # noqa: PTH120 - pathlib takes longer to load than all this
        self._pid = os.getpid()
        self._dead = False
        self._socket: _Held | None = None
        self._claim: _Held | None = None
        self._memory: mmap.mmap | None = None
        self.dropped = 0
        """How many messages were dropped: the socket was full, or they were too large."""
        self.words: memoryview | None = None
        """The board as 64-bit words; ``None`` if it cannot be opened."""
        self.role: Role = "silent"
        self.again = False
        """Whether an earlier run of this process has reported and was closed."""
        self.facts = _read(document)
        try:
            self._open_board()
            if reports:
                self.role = self._take_role(document)
            if self.role == "reporter":
                self._connect()
        except OSError as error:
            self._lose(f"the search cannot be reached ({error})")
        if not self.open:
            self._leave_word()

    @property
    def board(self) -> str:
        """Path of the board's file."""
        return f"{self._folder}/{BOARD}"

    @property
    def open(self) -> bool:
        """Whether messages can be sent."""
        return self._socket is not None

    @property
    def has_reporter(self) -> bool:
        """Whether a process of the trial has opened a run that reports; also true if that cannot be known."""
        return self.words is None or self.words[OWNER] != 0

    @property
    def own(self) -> bool:
        """Whether this process opened the link, and was not forked from the one that did."""
        return os.getpid() == self._pid

    def _open_board(self) -> None:
        descriptor = os.open(self.board, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._memory = mmap.mmap(descriptor, BOARD_BYTES)
        finally:
            os.close(descriptor)
        self.words = memoryview(self._memory).cast("q")

    def _take_role(self, document: str) -> Role:
        """Become the reporter if no other run is. The claim is a file lock, which ends with the process."""
        assert self.words is not None
        claim = _Held(os.open(document, os.O_RDONLY | os.O_CLOEXEC))
        try:
            fcntl.flock(claim.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            claim.close()
            return "nested" if self.words[OWNER] == self._pid else "other"
        self._claim = claim
        self.again = self.words[OWNER] == self._pid
        self.words[OWNER] = self._pid
        return "reporter"

    def _leave_word(self) -> None:
        """Leave a file that says that the knobs were read, since no message can say so."""
        with suppress(OSError):
            os.close(os.open(f"{self._folder}/{READ}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def _connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = _Held(connection.fileno(), connection)
        connection.setblocking(False)
        with socket_address(self._folder) as address:
            connection.connect(address)

    # -- talking -------------------------------------------------------------------------------

    def send(self, message: dict[str, Any], seconds: float = 0.0) -> bool:
        """Send a message if there is room for it within ``seconds``; returns whether it was sent.

        Raises :class:`TooLargeError` for a message larger than a packet, if the link is open.
        """
        held = self._socket
        if held is None or not self.own:
            return False
        data = json.dumps(message).encode()
        if len(data) > LARGEST_BYTES:  # the receiver would get a truncated message
            raise TooLargeError
        deadline = time.monotonic() + seconds
        while True:
            try:
                held.send(data)
            except BlockingIOError:
                left = deadline - time.monotonic()
                if left <= 0:
                    self.dropped += 1
                    return False
                poll = select.poll()
                poll.register(held.descriptor, select.POLLOUT)
                poll.poll(left * 1000)
            except OSError as error:
                if error.errno == errno.EMSGSIZE:
                    raise TooLargeError from error
                self._lose(f"the search has gone ({error})")
                return False
            else:
                return True

    def await_answer(self, seconds: float) -> bool:
        """Wait up to ``seconds`` for the search's decision on the last message; returns whether it came."""
        held = self._socket
        if held is None or not self.own:
            return False
        poll = select.poll()
        poll.register(held.descriptor, select.POLLIN)
        try:
            return bool(poll.poll(seconds * 1000)) and held.receive() == ANSWER
        except OSError as error:
            self._lose(f"the search has gone ({error})")
            return False

    def knock(self) -> None:
        """Make the search look for messages at once: a message does not wake it up, a connection does."""
        if self._socket is None or not self.own:
            return
        with (
            suppress(OSError),  # without it, the search looks a little later
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as knock,
            socket_address(self._folder) as address,
        ):
            knock.setblocking(False)
            knock.connect(address)

    def close(self) -> None:
        """Close everything, if this process opened it; in a forked child this does nothing."""
        if not self.own:
            return
        self._dead = True
        self._hang_up()
        untouched = self._claim is None or self._claim.release()
        self._claim = None
        if self.words is not None and self._memory is not None:
            self.words.release()
            self.words = None
            _forget(self._memory, untouched)
            self._memory = None

    def _lose(self, why: str) -> None:
        if not self._dead:
            self._dead = True
            warn(f"{why}; the run goes on without it")
        self._hang_up()

    def _hang_up(self) -> None:
        held, self._socket = self._socket, None
        if held is not None:
            held.close()


class _Held:
    """A descriptor that is used and closed only while it is still the one that was opened."""

    def __init__(self, descriptor: int, connection: socket.socket | None = None) -> None:
        self.descriptor = descriptor
        self._connection = connection
        self._identity = _inode(descriptor)

    @property
    def intact(self) -> bool:
        try:
            return _inode(self.descriptor) == self._identity
        except OSError:
            return False

    def send(self, data: bytes) -> None:
        self._open().send(data, socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT)

    def receive(self) -> bytes:
        return self._open().recv(len(ANSWER), socket.MSG_DONTWAIT)

    def _open(self) -> socket.socket:
        if self._connection is None or not self.intact:
            raise OSError("its connection was closed by this program")
        return self._connection

    def release(self) -> bool:
        """Unlock and close it, since a forked child would keep the lock. Returns whether it was intact."""
        intact = self.intact
        if intact:
            with suppress(OSError):
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
        self.close()
        return intact

    def close(self) -> None:
        intact = self.intact
        if self._connection is not None:
            self._connection.detach()
        if intact:
            os.close(self.descriptor)


_KEPT: list[mmap.mmap] = []
"""Mappings that are never closed. Python's mmap has a descriptor of its own; if the program has closed it and
opened another file under its number, closing the mapping would close that file."""


def _forget(memory: mmap.mmap, untouched: bool) -> None:
    if untouched:
        memory.close()
    else:
        _KEPT.append(memory)


def warn(text: str) -> None:
    """Write one line to stderr, if the program has one."""
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"autotune: {text}\n")
        sys.stderr.flush()


def _read(document: str) -> dict[str, Any]:
    try:
        with open(document, "rb") as file:  # noqa: PTH123
            facts: dict[str, Any] = dict(json.loads(file.read()))
    except (OSError, ValueError, TypeError) as error:
        raise LinkError(f"the knobs cannot be read: {error}") from error
    if facts.get("format") != FORMAT or not isinstance(facts.get("knobs"), dict):
        raise LinkError(f"{document} is of another version of autotune than the one that is imported here")
    return facts


def _inode(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino
