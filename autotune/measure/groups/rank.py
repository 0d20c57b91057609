"""A rank of a process group: the process that runs an objective's function, and what the function is given.

:mod:`autotune.measure.groups.life` starts and ends it.
"""

from __future__ import annotations

import importlib
import os
import pickle
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.measure.clocks import monotonic
from autotune.measure.cores.pinning import pin
from autotune.measure.forked import forks_end_here
from autotune.measure.groups.board import Board
from autotune.measure.libc import die_with_parent
from autotune.measure.workers.channel import BlockingChannel, BrokenChannel, frame
from autotune.measure.workers.streams import Streams

if TYPE_CHECKING:
    from autotune.measure.groups.device import DeviceLimits
    from autotune.measure.groups.messages import Call, Done, Raised
    from autotune.measure.groups.network import Port

CALLED = "call"
"""The phase of a rank that has been called and has given no sign of its own yet."""


@dataclass(frozen=True)
class RankBirth:
    """What a rank knows before it has loaded anything."""

    parent: int
    rank: int
    world: int
    board: int
    """Descriptor of the shared memory for signs of life."""
    meeting: str
    cores: tuple[int, ...]
    preload: tuple[str, ...]
    """Modules to import before the quota counts: a tenth of a core would take a minute for it."""
    channel: int = -1
    """Descriptor: rank and starter. Made with the rank's process."""


@dataclass
class Rank:
    """What a function that runs in a rank is given, the same object in every call.

    ``beat`` is to be called at least every few seconds: a rank without a sign of life for longer than the
    group's ``stall`` ends the trial. What a function keeps between calls, a connection say, is in ``state``.
    """

    rank: int
    world: int
    address: str
    """Its own address in the network."""
    interface: str
    """The interface with that address, for backends that are told one."""
    addresses: tuple[str, ...]
    """Those of all ranks."""
    meeting: Path
    """An empty folder that all ranks see: for a rendezvous through files, which needs no network."""
    board: Board
    state: dict[str, Any] = field(default_factory=dict)
    """Kept from call to call, as long as the group lives."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds in each phase of the call so far."""
    step: int = 0
    _phase: str = "start"
    _since: float = 0.0

    def beat(self, phase: str = "", step: int | None = None, within: float = 0.0) -> None:
        """Give a sign of life: the rank is now in ``phase`` (empty: in the same one as before), at ``step``.

        ``within``: seconds until the next sign, where the function needs longer than the group's ``stall``.
        Time in phases whose names begin with ``wait`` or ``communicate`` is not counted as work when the slow
        ranks are named.
        """
        if step is not None:
            self.step = step
        now = self.board.write(self.rank, self.step, phase or self._phase, within)
        self.phases[self._phase] = self.phases.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase or self._phase, now

    def begin(self) -> None:
        """A call begins: its phases are counted anew."""
        self._phase, self._since, self.step = CALLED, monotonic(), 0
        self.phases = {}
        self.beat()


def main(birth: RankBirth) -> None:
    """Join the network, and answer calls until the starter closes its end."""
    from autotune.measure.groups.messages import Entered, Go

    if not die_with_parent(birth.parent):
        return
    pin(birth.cores)
    sys.dont_write_bytecode = True  # of code that may be edited meanwhile, as in `measure.loading.importing`
    board = Board(birth.board, birth.world)
    board.write(birth.rank, 0, "start")
    connection = socket.socket(fileno=birth.channel)
    channel = BlockingChannel(birth.channel)
    try:
        limits, packed = channel.receive()
        _enter(limits, birth.preload)
        port: Port = _port(packed)
        joined = port.enter()
        # Who changes what a process may do, a namespace of users say, loses the order to die with its parent.
        if not die_with_parent(birth.parent):
            return
        message = frame(Entered(joined))
        sent = socket.send_fds(connection, [message], list(joined.descriptors))
        connection.sendall(message[sent:])
        for descriptor in joined.descriptors:
            os.close(descriptor)
        go: Go = channel.receive()
        rank = Rank(
            birth.rank,
            birth.world,
            joined.address,
            joined.interface,
            go.addresses,
            Path(birth.meeting),
            board,
        )
        streams = Streams()
        while True:
            answer = _answer(rank, channel.receive())
            streams.restore()
            channel.send(answer)
    except (BrokenChannel, ConnectionError):
        return  # whoever started it is gone


def _enter(limits: DeviceLimits, preload: tuple[str, ...]) -> None:
    limits.enter_cap()
    for module in preload:
        importlib.import_module(module)
    limits.enter_quota()


def _port(packed: tuple[str, str, bytes]) -> Port:
    """The port, whose module a rank finds as it finds that of a function."""
    from autotune.measure.groups.messages import load_module

    module, file, port = packed
    load_module(module, file)
    return pickle.loads(port)  # type: ignore[no-any-return]


def _answer(rank: Rank, call: Call) -> Done | Raised:
    from autotune.measure.groups.messages import Done

    rank.begin()
    try:
        work, arguments = call.find(), pickle.loads(call.arguments)
        rank.begin()  # anew: a rank that took longer to import what it calls is no slow one
        with forks_end_here():
            result = work(rank, *arguments)
        rank.beat("done")
        return Done(pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL), dict(rank.phases))
    except BaseException as error:  # noqa: BLE001 - whatever an objective raises is an answer
        return _raised(error)


def _raised(error: BaseException) -> Raised:
    from autotune.measure.groups.messages import Raised
    from autotune.measure.phases.raised import failed

    at = monotonic()
    found = failed(error)
    return Raised(str(found.status), found.message, at, found.stderr, dict(found.metrics))
