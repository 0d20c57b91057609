"""What ranks run in the tests of process groups."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from autotune.measure.groups.rank import Rank
from autotune.measure.objective import Diverged, WrongAnswer


def who(rank: Rank, *arguments: Any) -> tuple[Any, ...]:
    rank.state["calls"] = rank.state.get("calls", 0) + 1
    return rank.rank, rank.world, os.getpid(), rank.state["calls"], arguments


def cores(rank: Rank) -> tuple[int, ...]:
    return tuple(sorted(os.sched_getaffinity(0)))


def ring(rank: Rank, port: int) -> int:
    """The sum of all ranks, passed on from one to the next."""
    server = socket.create_server((rank.address, port + rank.rank))
    (rank.meeting / str(rank.rank)).touch()
    while len(list(rank.meeting.iterdir())) < rank.world:
        os.sched_yield()
    right = (rank.rank + 1) % rank.world
    out = socket.create_connection((rank.addresses[right], port + right))
    inlet, _ = server.accept()
    total, passed = rank.rank, rank.rank
    for step in range(rank.world - 1):
        rank.beat("communicate", step)
        out.sendall(bytes([passed]))
        passed = inlet.recv(1)[0]
        total += passed
    for one in (server, out, inlet):
        one.close()
    (rank.meeting / str(rank.rank)).unlink()
    return total


def fault(rank: Rank, what: str) -> str:
    """Rank 1 misbehaves, the others wait for it for ever."""
    rank.beat("reduce", 2 if rank.rank == 1 else 3)
    if rank.rank != 1:
        rank.beat("wait")
        if what != "hang in a loop that lives":
            time.sleep(600)
        while True:
            rank.beat()
    match what:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            os._exit(3)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "hang":
            time.sleep(600)
        case "hang in a loop that lives":
            while True:
                rank.beat()
        case "raise":
            raise ValueError("what is this?")
        case "diverge":
            raise Diverged("the loss is nan")
        case "wrong":
            raise WrongAnswer("not the sum", {"error": 0.5})
        case "wrong beyond words":
            raise WrongAnswer("not the sum", {"error": 0.5, "why": lambda: None})  # type: ignore[dict-item]
        case "unpicklable":
            return lambda: None  # type: ignore[return-value]
        case "eat memory":
            eaten = []
            while True:
                eaten.append(bytearray(os.urandom(1 << 20)))
                rank.beat()
        case "leave a child":
            if os.fork() == 0:
                time.sleep(600)
            raise ValueError("with a child")
    return what


def busy(rank: Rank, seconds: float) -> None:
    rank.beat("compute")
    end = time.process_time() + (seconds if rank.rank == 1 else 0.0)
    while time.process_time() < end:
        rank.beat()
    rank.beat("wait")


class Late:
    """An argument that takes the first rank that unpickles it ``seconds``, and is then that number."""

    def __init__(self, folder: str, seconds: float) -> None:
        self.folder = folder
        self.seconds = seconds

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrive, (self.folder, self.seconds)


def _arrive(folder: str, seconds: float) -> float:
    try:
        Path(folder).mkdir()
    except FileExistsError:
        return 0.0
    time.sleep(seconds)
    return seconds


def given(rank: Rank, value: float) -> float:
    return value


def processor_share(rank: Rank, seconds: float) -> float:
    """What share of a core this rank gets."""
    begun, used = time.monotonic(), time.process_time()
    while time.monotonic() - begun < seconds:
        rank.beat("compute")
    return (time.process_time() - used) / (time.monotonic() - begun)


def fork(rank: Rank, number: int) -> int:
    """Its child comes back as well."""
    if os.fork() != 0:
        os.wait()
    return number


def close_output(rank: Rank) -> int:
    sys.stdout.close()
    return rank.rank


def say(rank: Rank) -> int:
    print("something", file=sys.stdout)
    return rank.rank
