"""A rank of a process group: the process that runs a function of an objective, and the argument it is given.

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
"""The phase of a rank that was called and has given no sign of life yet."""


@dataclass(frozen=True)
class RankBirth:
    """What a rank is given when it starts, before it loads anything."""

    parent: int
    rank: int
    world: int
    board: int
    """Descriptor of the shared memory for signs of life."""
    meeting: str
    cores: tuple[int, ...]
    preload: tuple[str, ...]
    """Modules to import before the quota counts, which would take a minute with a tenth of a core."""
    channel: int = -1
    """Descriptor of the connection to the starter, which is made when the process is."""


@dataclass
class Rank:
    """The first argument of a function that runs in a rank; the same object in every call.

    Call ``beat`` at least every few seconds: a rank without a sign of life for longer than the ``stall`` of
    the group ends the trial. Keep what is needed in later calls, such as a connection, in ``state``.
    """

    rank: int
    world: int
    address: str
    """Its own address in the network."""
    interface: str
    """The interface with that address, for backends that need its name."""
    addresses: tuple[str, ...]
    """The addresses of all ranks."""
    meeting: Path
    """A folder that all ranks see, empty at first, for a rendezvous through files, which needs no network."""
    board: Board
    state: dict[str, Any] = field(default_factory=dict)
    """Kept from call to call, as long as the group lives."""
    phases: dict[str, float] = field(default_factory=dict)
    """Seconds in each phase of the call so far."""
    step: int = 0
    _phase: str = "start"
    _since: float = 0.0

    def beat(self, phase: str = "", step: int | None = None, within: float = 0.0) -> None:
        """Give a sign of life: the rank is now in ``phase`` (empty: the same as before), at ``step``.

        ``within``: the most seconds until the next sign, where that takes longer than the ``stall`` of the
        group. Time in phases whose names begin with ``wait`` or ``communicate`` does not count as work when
        slow ranks are looked for.
        """
        if step is not None:
            self.step = step
        now = self.board.write(self.rank, self.step, phase or self._phase, within)
        self.phases[self._phase] = self.phases.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = phase or self._phase, now

    def begin(self) -> None:
        """Begin a call: its phases are counted from zero."""
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
        # A process whose privileges change, as in a user namespace, loses the order to die with its parent.
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
        return  # the starter is gone


def _enter(limits: DeviceLimits, preload: tuple[str, ...]) -> None:
    limits.enter_cap()
    for module in preload:
        importlib.import_module(module)
    limits.enter_quota()


def _port(packed: tuple[str, str, bytes]) -> Port:
    """The port; its module is found in the same way as that of a function."""
    from autotune.measure.groups.messages import load_module

    module, file, port = packed
    load_module(module, file)
    return pickle.loads(port)  # type: ignore[no-any-return]


def _answer(rank: Rank, call: Call) -> Done | Raised:
    from autotune.measure.groups.messages import Done

    rank.begin()
    try:
        work, arguments = call.find(), pickle.loads(call.arguments)
        rank.begin()  # again: a rank that took longer to import the function does not count as slow
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
