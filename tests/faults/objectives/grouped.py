"""An objective of two linked ranks, one of which misbehaves."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from autotune.measure.groups.device import Device, Link
from autotune.measure.groups.network import Network
from autotune.measure.groups.objective import GroupObjective
from autotune.measure.groups.rank import Rank

sys.path.append(str(Path(__file__).parents[3] / "objectives" / "distributed"))

import testbed

PORT = 29360
LINK = Link(bandwidth=1e9, latency=1e-4)
DEVICES = (Device(link=LINK, memory=256 << 20, cpu=0.9), Device(link=LINK, memory=128 << 20, cpu=0.9))


class Grouped(GroupObjective):
    """Says 0.01 s plus something for the knob ``number``; knows nothing of faults but what rank 1 is told."""

    def network(self, devices: Sequence[Device]) -> Network:
        return testbed.network_for(devices)

    def measure(self, loaded: Any, rng: np.random.Generator) -> float:
        group = self.group(DEVICES, stall=3.0)
        group.run(exchange, "none", 3)
        if loaded["fault"] == "cut the link":
            group.network.cut(1)  # type: ignore[attr-defined]
        if loaded["fault"] == "die itself":
            os.kill(os.getpid(), signal.SIGKILL)
        group.run(exchange, loaded["fault"], 20)
        return 0.01 + 1e-4 * float(loaded["number"])


def exchange(rank: Rank, fault: str, count: int) -> None:
    connection = rank.state.get("connection") or _connect(rank)
    rank.state["connection"] = connection
    for step in range(count):
        rank.beat("compute", step + 1)
        if rank.rank == 1 and step == 5:
            _misbehave(rank, fault)
        rank.beat("communicate")
        connection.send(b"x")
        if not connection.recv(1):
            raise ConnectionError("the peer is gone")


def _connect(rank: Rank) -> socket.socket:
    if rank.rank == 0:
        server = socket.create_server((rank.address, PORT))
        (rank.meeting / "listening").touch()
        return server.accept()[0]
    while not (rank.meeting / "listening").exists():
        time.sleep(0.001)
    return socket.create_connection((rank.addresses[0], PORT))


def _misbehave(rank: Rank, fault: str) -> None:
    match fault:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "hang":
            time.sleep(600)
        case "fill its memory":
            eaten = []
            while True:
                eaten.append(b"x" * (8 << 20))  # at once: the other rank is silent for as long
                rank.beat()
