"""Tensors between ranks: a connection a pair, whose sending and receiving overlap with computing.

A thread a peer sends what is handed to it, in order; another puts what comes into one inbox. So no order of
messages can lock, and nobody waits for a link but who needs what is on it.
"""

from __future__ import annotations

import queue
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from meeting_ports import publish, published

from autotune.measure.groups.rank import Rank

Outbox: TypeAlias = "queue.SimpleQueue[tuple[bytes, Any, Callable[[], None]]]"
"""What is to be sent, and what to call when it has been."""

_HEAD = struct.Struct("=4q4q")
"""Kind, item, micro-batch, dimensions; and their sizes."""
_MOST_DIMENSIONS = 4
PEERS = "peers"

VALUE, GRADIENT, BARRIER, REQUEST = range(4)
"""What a message is: an item's output, the gradient of one, at a barrier, or that something is asked for."""


@dataclass(frozen=True)
class Message:
    kind: int
    item: int
    micro_batch: int
    sender: int
    tensor: torch.Tensor


class PeerLostError(ConnectionError):
    """Another rank has closed its connection."""


class Peers:
    """The connections of one rank to all others, which live as long as the group."""

    def __init__(self, rank: Rank) -> None:
        self._rank = rank.rank
        self._inbox: queue.SimpleQueue[Message | Exception] = queue.SimpleQueue()
        self.serve: Callable[[Message], None] | None = None
        """Answers requests, in the thread that receives them: others compute meanwhile."""
        self._outboxes: dict[int, Outbox] = {}
        self._barriers: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
        for other, connection in _connect_all(rank).items():
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            outbox: Outbox = queue.SimpleQueue()
            self._outboxes[other] = outbox
            for work in (
                lambda c=connection, o=outbox: self._send_all(c, o),
                lambda c=connection, n=other: self._receive_all(c, n),
            ):  # type: ignore[misc]
                threading.Thread(target=work, daemon=True).start()

    def send(
        self,
        to: int,
        kind: int,
        item: int = 0,
        micro_batch: int = 0,
        tensor: torch.Tensor | None = None,
        sent: Callable[[], None] = lambda: None,
    ) -> None:
        """Hand a tensor over; it must not be changed before ``sent`` is called."""
        shape = () if tensor is None else tuple(tensor.shape)
        sizes = (*shape, *([0] * (_MOST_DIMENSIONS - len(shape))))
        head = _HEAD.pack(kind, item, micro_batch, -1 if tensor is None else len(shape), *sizes)
        body = b"" if tensor is None else memoryview(tensor.detach().contiguous().numpy()).cast("B")
        self._outboxes[to].put((head, body, sent))

    def receive(self, block: bool) -> Message | None:
        """The next message; ``None`` where there is none and ``block`` is false."""
        try:
            found = self._inbox.get(block)
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def barrier(self) -> None:
        """Until all ranks are here."""
        others = sorted(self._outboxes)
        if self._rank == 0:
            self._await(len(others))
            for other in others:
                self.send(other, BARRIER)
        else:
            self.send(0, BARRIER)
            self._await(1)

    def _await(self, count: int) -> None:
        for _ in range(count):
            lost = self._barriers.get()
            if lost is not None:
                raise lost

    def _send_all(self, connection: socket.socket, outbox: Outbox) -> None:
        try:
            while True:
                head, body, sent = outbox.get()
                connection.sendall(head)
                if len(body):
                    connection.sendall(body)
                del body
                sent()
        except OSError:
            return  # who receives on the same connection says so

    def _receive_all(self, connection: socket.socket, sender: int) -> None:
        head = bytearray(_HEAD.size)
        try:
            while True:
                _fill(connection, memoryview(head))
                kind, item, micro_batch, dimensions, *sizes = _HEAD.unpack(head)
                tensor = torch.empty(sizes[: max(dimensions, 0)])
                if dimensions >= 0:
                    _fill(connection, memoryview(tensor.numpy()).cast("B"))
                if kind == REQUEST and self.serve is not None:
                    self.serve(Message(kind, item, micro_batch, sender, tensor))
                    continue
                if kind == BARRIER:
                    self._barriers.put(None)
                    continue
                self._inbox.put(Message(kind, item, micro_batch, sender, tensor))
        except Exception as error:  # noqa: BLE001 - the one who waits is to hear of it, whatever it is
            lost = PeerLostError(f"the connection to rank {sender} ended: {error}")
            self._inbox.put(lost)
            self._barriers.put(lost)


def _fill(connection: socket.socket, room: memoryview) -> None:
    while len(room):
        count = connection.recv_into(room)
        if count == 0:
            raise EOFError("closed by the other side")
        room = room[count:]


def _connect_all(rank: Rank) -> dict[int, socket.socket]:
    """By rank: a connection. Each connects to those before it, whose ports lie in the folder that all see."""
    found: dict[int, socket.socket] = {}
    later = rank.world - rank.rank - 1
    with socket.create_server((rank.address, 0), backlog=max(later, 1)) as server:
        publish(rank, PEERS, server.getsockname()[1])
        for other in range(rank.rank):
            connection = socket.create_connection((rank.addresses[other], published(rank, PEERS, other)))
            connection.sendall(bytes([rank.rank]))
            found[other] = connection
        for _ in range(later):
            connection, _address = server.accept()
            found[connection.recv(1)[0]] = connection
    return found


def peers_of(rank: Rank) -> Peers:
    """Those of this rank, connected in its first call."""
    if "peers" not in rank.state:
        rank.state["peers"] = Peers(rank)
    found: Peers = rank.state["peers"]
    return found
