"""What carries the messages of a rank: gloo over its interface, with the settings that are tuned."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist

from autotune.measure.groups.rank import Rank
from autotune.measure.objective import Infeasible

_CONGESTION = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

_TIMEOUT = timedelta(seconds=120)
"""Of the backend. The group notices much earlier."""


@dataclass(frozen=True)
class Transport:
    """``threads`` of the backend, of which each carries out one collective at a time; TCP ``connections`` to
    each peer; TCP's ``congestion`` control, ``host``: as the machine has it. The defaults are gloo's."""

    threads: int = 2
    connections: int = 1
    congestion: str = "host"


def backend(rank: Rank, transport: Transport = Transport()) -> Any:
    """The ``ProcessGroupGloo`` with these settings: the one of the last call, where they are the same."""
    made = rank.state.get("transport")
    if made is not None and made[0] == transport:
        return made[1]
    number = rank.state["transports"] = rank.state.get("transports", 0) + 1
    if made is not None:
        rank.state.pop("transport")
        made[1].shutdown()
    rank.beat("connect")
    _set_congestion(rank, transport.congestion)
    gloo = connect(rank, f"store-{number}", rank.rank, rank.world, transport)
    gloo.barrier().wait()
    rank.state["transport"] = transport, gloo
    return gloo


def connect(rank: Rank, store: str, number: int, count: int, transport: Transport) -> Any:
    """A ``ProcessGroupGloo`` of ``count`` ranks that meet in ``store``; this one has the ``number`` there."""
    options = dist.ProcessGroupGloo._Options()
    options._threads = transport.threads
    options._timeout = _TIMEOUT
    options._devices = [
        dist.ProcessGroupGloo.create_device(interface=rank.interface) for _ in range(transport.connections)
    ]
    return dist.ProcessGroupGloo(dist.FileStore(str(rank.meeting / store), count), number, count, options)


def _set_congestion(rank: Rank, name: str) -> None:
    """Of this rank's namespace. On the loopback interface it would be the machine's, and is left alone."""
    before = rank.state.setdefault("congestion", _CONGESTION.read_text().strip())
    wanted = before if name == "host" else name
    if _CONGESTION.read_text().strip() == wanted:
        return
    if rank.interface == "lo":
        raise Infeasible("congestion control can only be chosen on links of the test bed")
    if wanted not in _AVAILABLE.read_text().split():
        raise Infeasible(f"this kernel has no congestion control {wanted!r}")
    try:
        _CONGESTION.write_text(wanted)
    except PermissionError as error:
        raise Infeasible(f"a namespace may not choose the congestion control {wanted!r} here") from error
