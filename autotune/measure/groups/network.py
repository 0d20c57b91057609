"""What connects the ranks of a process group: the contract, and the loopback interface of this machine.

How a network comes up::

    starter   ports()        one port a rank, pickled and sent to it
    rank      port.enter()   before anything else: a namespace of its own, say ─▶ Joined
    starter   connect()      with what all ranks have joined, descriptors included
    ...
    starter   close()        and ports() again where the group is made anew after a fault
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from autotune.measure.facts import NETWORK, NOT_SHAPED


@dataclass(frozen=True)
class Joined:
    """How to reach a rank: its address, the interface that has it, descriptors for the starter."""

    address: str
    interface: str
    descriptors: tuple[int, ...] = ()


class Port(Protocol):
    """A rank's entry to the network; pickled, and entered in the process of the rank."""

    def enter(self) -> Joined:
        """Join. The process still has a single thread, and no socket but the one to its starter."""


class Network(Protocol):
    """Connects ranks. The same object sets the network up again whenever its group is made anew."""

    @property
    def facts(self) -> Mapping[str, object]:
        """How the ranks are connected, as JSON; kept with each trial."""

    @property
    def processes(self) -> frozenset[int]:
        """The ids of its own processes."""

    def ports(self, world: int) -> Sequence[Port]: ...

    def connect(self, joined: Sequence[Joined]) -> None:
        """Connect the ranks, all of which have joined; their descriptors are those of this process."""

    def failure(self) -> str:
        """Why it no longer works; empty while it does."""

    def close(self) -> None:
        """Remove all of it. May be called twice."""


@dataclass(frozen=True)
class LoopbackPort:
    def enter(self) -> Joined:
        return Joined("127.0.0.1", "lo")


@dataclass(frozen=True)
class Loopback:
    """The loopback interface of the machine: as fast as memory, whatever links were asked for."""

    reason: str = ""
    """Why it replaces the links that were asked for; empty: none were."""

    @property
    def facts(self) -> Mapping[str, object]:
        return {NETWORK: "loopback", **({NOT_SHAPED: self.reason} if self.reason else {})}

    @property
    def processes(self) -> frozenset[int]:
        return frozenset()

    def ports(self, world: int) -> Sequence[Port]:
        return [LoopbackPort()] * world

    def connect(self, joined: Sequence[Joined]) -> None:
        return

    def failure(self) -> str:
        return ""

    def close(self) -> None:
        return
