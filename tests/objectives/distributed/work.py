"""What ranks run in the tests of the test bed."""

from __future__ import annotations

import os
import signal
import socket
import time

from autotune.measure.groups.rank import Rank

PORT = 29350


def namespace(rank: Rank | None) -> str:
    return os.readlink("/proc/self/ns/net")  # noqa: PTH115


def _connection(rank: Rank) -> socket.socket:
    if "connection" not in rank.state:
        if rank.rank == 0:
            server = socket.create_server((rank.address, PORT))
            (rank.meeting / "listening").touch()
            rank.state["connection"] = server.accept()[0]
        else:
            while not (rank.meeting / "listening").exists():
                time.sleep(0.001)
            rank.state["connection"] = socket.create_connection((rank.addresses[0], PORT))
    found: socket.socket = rank.state["connection"]
    return found


def exchange(rank: Rank, count: int) -> int:
    connection = _connection(rank)
    for step in range(count):
        rank.beat("communicate", step + 1)
        connection.send(b"x")
        connection.recv(1)
    return count


def exchange_until_killed(rank: Rank, wire: int) -> None:
    exchange(rank, 1)
    if rank.rank == 0:
        os.kill(wire, signal.SIGKILL)
    while True:
        exchange(rank, 1)
