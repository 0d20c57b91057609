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

from autotune.measure.outcome import NETWORK, NOT_SHAPED


@dataclass(frozen=True)
class Joined:
    """How a rank is reached: its address, the interface that has it, descriptors for the starter."""

    address: str
    interface: str
    descriptors: tuple[int, ...] = ()


class Port(Protocol):
    """One rank's way into the network; pickled, and entered in the rank's process."""

    def enter(self) -> Joined:
        """Join. The process has a single thread and no sockets yet but the one to its starter."""
        ...


class Network(Protocol):
    """Connects ranks; made anew, by the same object, whenever its group is."""

    @property
    def facts(self) -> Mapping[str, object]:
        """What the ranks are connected by, as JSON; kept with each trial."""
        ...

    @property
    def processes(self) -> frozenset[int]:
        """Processes of its own."""
        ...

    def ports(self, world: int) -> Sequence[Port]: ...

    def connect(self, joined: Sequence[Joined]) -> None:
        """All ranks have joined; ``joined`` has their descriptors as they are in this process."""
        ...

    def failure(self) -> str:
        """Why it does not work any more; empty while it does."""
        ...

    def close(self) -> None:
        """Nothing of it is left afterwards. May be called twice."""
        ...


@dataclass(frozen=True)
class LoopbackPort:
    def enter(self) -> Joined:
        return Joined("127.0.0.1", "lo")


@dataclass(frozen=True)
class Loopback:
    """The machine's own loopback interface: as fast as it copies memory, whatever links were asked for."""

    reason: str = ""
    """Why it is not the network that was asked for; empty: it is."""

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
