"""Whether a link comes out as asked: its round trip and its bandwidth, measured through sockets."""

from __future__ import annotations

import socket
import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from meeting_ports import publish, published, withdraw

from autotune.measure.groups.group import ProcessGroup
from autotune.measure.groups.rank import Rank

TRYING = "trying"
_BLOCK = 1 << 18
_STREAMS = 4
_PINGS = 30


@dataclass(frozen=True)
class Tried:
    """What rank 0 and rank 1 of a group found between them."""

    round_trip: float
    """Seconds, the median of small messages sent there and back."""
    bandwidth: float
    """Bits a second that rank 1 got, once under way."""


def try_link(group: ProcessGroup, seconds: float = 0.5) -> Tried:
    """Measure the link between the first two ranks of a group."""
    return Tried(*group.run(_try, seconds).results[1])


def _try(rank: Rank, seconds: float) -> tuple[float, float]:
    if rank.rank > 1:
        return 0.0, 0.0
    rank.beat("connect")
    connections = _connect(rank, 1 + _STREAMS)
    rank.beat("round trip")
    trip = _ping(rank, connections[0])
    rank.beat("bandwidth")
    rate = _send(connections[1:]) if rank.rank == 0 else _receive(connections[1:], seconds)
    for connection in connections:
        connection.close()
    return trip, rate


def _connect(rank: Rank, count: int) -> list[socket.socket]:
    if rank.rank == 0:
        with socket.create_server((rank.address, 0)) as server:
            publish(rank, TRYING, server.getsockname()[1])
            found = [server.accept()[0] for _ in range(count)]
            withdraw(rank, TRYING)
    else:
        address = (rank.addresses[0], published(rank, TRYING, 0))
        found = [socket.create_connection(address) for _ in range(count)]
    for connection in found:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found


def _ping(rank: Rank, connection: socket.socket) -> float:
    """Rank 1 asks."""
    times = []
    for _ in range(_PINGS):
        begun = time.perf_counter()
        if rank.rank == 1:
            connection.send(b"?")
            connection.recv(1)
        else:
            connection.recv(1)
            connection.send(b"!")
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def _send(connections: Sequence[socket.socket]) -> float:
    """Fill all connections until the other side has had enough."""
    block = bytes(_BLOCK)

    def fill(connection: socket.socket) -> None:
        try:
            while True:
                connection.sendall(block)
        except OSError:
            return

    threads = [threading.Thread(target=fill, args=(one,), daemon=True) for one in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0.0


def _receive(connections: Sequence[socket.socket], seconds: float) -> float:
    """Bits a second, in the second half of the time: by then the senders' windows are open."""
    counts = [0] * len(connections)
    over = time.perf_counter() + seconds

    def drain(number: int) -> None:
        room = bytearray(_BLOCK)
        while time.perf_counter() < over:
            counts[number] += connections[number].recv_into(room)

    threads = [threading.Thread(target=drain, args=(n,), daemon=True) for n in range(len(connections))]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 2)
    begun, before = time.perf_counter(), sum(counts)
    time.sleep(max(0.0, over - time.perf_counter()) * 0.95)
    rate = 8 * (sum(counts) - before) / (time.perf_counter() - begun)
    for thread in threads:
        thread.join()
    for connection in connections:
        connection.close()
    return rate
