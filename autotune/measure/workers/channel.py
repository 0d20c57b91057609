"""Messages between a session and its workers: pickles with their length in front, over a socket.

The session never runs an objective's code, so it does not unpickle an objective's classes either:
:func:`loads_plain` accepts our own data classes and nothing else. What a worker has prepared passes
through the session as bytes that are not unpickled there.
"""

from __future__ import annotations

import enum
import io
import os
import pickle
import socket
import struct
from collections.abc import Iterator
from typing import Any

_LENGTH = struct.Struct("!Q")
_BLOCK = 1 << 20
_LARGEST = 1 << 40
"""The most bytes of a message; a larger length means that the stream is not one of messages."""

_PLAIN = frozenset(
    {
        "autotune.errors",
        "autotune.status",
        "autotune.space.configuration",
        "autotune.measure.objective",
        "autotune.measure.outcome",
        "autotune.measure.workers.endings",
        "autotune.measure.workers.messages",
    }
)
"""The modules that define the data classes of messages."""


class BrokenChannel(Exception):  # noqa: N818 - named for what has happened
    """The other side went away, or what came is not a message."""


class _PlainPickler(pickle.Pickler):
    def reducer_override(self, obj: object) -> Any:
        # Python 3.11.0 to 3.11.3 write a member of an enumeration as a call of getattr, which has no
        # place in a message; the others as this.
        if isinstance(obj, enum.Enum):
            return type(obj), (obj.value,)
        return NotImplemented


def frame(message: object) -> bytes:
    """The bytes of a message."""
    payload = io.BytesIO()
    _PlainPickler(payload, protocol=pickle.HIGHEST_PROTOCOL).dump(message)
    return _LENGTH.pack(payload.tell()) + payload.getbuffer()


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module in _PLAIN:
            found = super().find_class(module, name)
            # A class that one of our modules has only imported is not accepted.
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a message")


def loads_plain(payload: bytes | memoryview) -> Any:
    """Unpickle a message of our own data classes; :class:`BrokenChannel` for anything else."""
    try:
        return _PlainUnpickler(io.BytesIO(payload)).load()
    except Exception as error:  # garbage makes pickle raise almost anything
        raise BrokenChannel(f"not a message: {error}") from error


class Splitter:
    """Cuts a stream of bytes into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The payloads that are complete now. :class:`BrokenChannel` for an impossible length."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > _LARGEST:
                raise BrokenChannel(f"a message of {length} bytes")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(memoryview(self._buffer)[_LENGTH.size : end])
            del self._buffer[:end]
            yield payload


class Channel:
    """The session's end: never blocks; :attr:`unsent` says whether there is something left to write."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._splitter = Splitter()
        self._outbox = memoryview(b"")

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def unsent(self) -> bool:
        return len(self._outbox) > 0

    def send(self, message: object) -> None:
        """Send what the socket takes now; :meth:`flush` sends the rest."""
        self.send_raw(frame(message))

    def send_raw(self, data: bytes) -> None:
        """Send bytes that are no message."""
        self._outbox = memoryview(bytes(self._outbox) + data)
        self.flush()

    def flush(self) -> None:
        """Send on. Where the other side is gone this does nothing: :meth:`receive` will say so."""
        while self._outbox:
            try:
                sent = self._socket.send(self._outbox)
            except BlockingIOError:
                return
            except OSError:
                self._outbox = memoryview(b"")
                return
            self._outbox = self._outbox[sent:]

    def receive(self) -> list[Any]:
        """The messages that have come. :class:`BrokenChannel` where the other side is gone."""
        messages: list[Any] = []
        while True:
            try:
                data = self._socket.recv(_BLOCK)
            except BlockingIOError:
                return messages
            except OSError:  # it went with words of ours unread, which resets the connection
                data = b""
            if not data:
                if messages:
                    return messages  # the end will be seen again by the next call
                raise BrokenChannel("closed")
            messages.extend(map(loads_plain, self._splitter.feed(data)))


class BlockingChannel:
    """The worker's end: waits for the next message, which may hold an objective's own classes.

    An objective may close every descriptor, and files that it then opens get the same numbers. So the inode
    of the socket is compared before each use, and no message is ever written into such a file.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._identity = self._inode()
        self._splitter = Splitter()
        self._waiting: list[bytes] = []

    def receive(self) -> Any:
        """The next message; :class:`BrokenChannel` where the session is gone."""
        while not self._waiting:
            self._verify()
            try:
                data = os.read(self._descriptor, _BLOCK)
            except OSError as error:
                raise BrokenChannel(str(error)) from error
            if not data:
                raise BrokenChannel("closed")
            self._waiting.extend(self._splitter.feed(data))
        return pickle.loads(self._waiting.pop(0))

    def send(self, message: object) -> None:
        """Send all of a message; :class:`BrokenChannel` where the session is gone."""
        rest = memoryview(frame(message))
        while rest:
            self._verify()
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except OSError as error:
                raise BrokenChannel(str(error)) from error

    def _verify(self) -> None:
        try:
            intact = self._inode() == self._identity
        except OSError:
            intact = False
        if not intact:
            raise BrokenChannel("the objective has closed the connection to the session")

    def _inode(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_dev, status.st_ino
