"""Objectives whose ranks have numbers and no names: their devices and links, as the workload says them.

Workload:

* ``world``: how many ranks;
* ``link``: ``{bandwidth: bits a second, latency: seconds one way}``, the same for all; left out: the
  loopback interface as it is;
* ``devices``: a list with what single ranks have, by their order: ``cpu`` (processor time per time),
  ``memory`` (bytes), ``link``; left out: no limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from linked_objective import LinkedObjective, number
from testbed import ShapedNetwork, links_of
from testbed.wire import Traffic

from autotune.measure.groups.device import Device, Link
from autotune.measure.groups.group import STALL_SECONDS, ProcessGroup
from autotune.measure.groups.network import Loopback
from autotune.measure.loading.facts import require_known
from autotune.measure.objective import Context, Infeasible, size_in

MOST_RANKS = 64
"""Each is a process. Seeds of ranks are told apart up to so many."""


class DistributedObjective(LinkedObjective):
    """Base class. Subclasses run functions on :meth:`ranks`."""

    preload = ("torch",)
    device_facts: ClassVar[tuple[str, ...]] = ("world", "link", "devices")
    """What a workload may say of devices and links: a part of a subclass's ``workload_facts``."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.devices = devices_of(context.workload)
        links_of(self.devices)  # an error in the space file is one before the first trial

    def ranks(self, busy: float = 0.0) -> ProcessGroup:
        """The group on the workload's devices. ``busy``: seconds that a rank may well be silent for."""
        return self.group(self.devices, stall=STALL_SECONDS + busy)

    @property
    def bandwidth(self) -> float:
        """Bits a second of the slowest link; infinite without links."""
        rates = [device.link.bandwidth for device in self.devices if device.link is not None]
        return min(rates, default=float("inf"))

    def traffic(self) -> Traffic | None:
        """What went over the links since the last call; ``None`` without links."""
        network = self._group.network if self._group is not None else Loopback()
        return network.traffic() if isinstance(network, ShapedNetwork) else None


def devices_of(workload: Mapping[str, Any]) -> tuple[Device, ...]:
    """Raises :class:`Infeasible` for what is no description of devices, or no number of them."""
    world = size_in(workload, "world", 2)
    if world > MOST_RANKS:
        raise Infeasible(f"{world:,} ranks are more than one machine starts; {MOST_RANKS} at most")
    own = workload.get("devices") or []
    if not isinstance(own, list | tuple) or not all(isinstance(device, Mapping) for device in own):
        raise Infeasible(f"devices should be a list like [{{}}, {{cpu: 0.5}}], by ranks, and is {own!r}")
    if len(own) > world:
        raise Infeasible(f"there are {world} ranks, and devices for {len(own)}")
    shared = _link(workload.get("link"), "workload.link")
    devices = []
    for rank in range(world):
        said, where = (dict(own[rank]) if rank < len(own) else {}), f"workload.devices[{rank}]"
        link = _link(said.pop("link"), f"{where}.link") if "link" in said else shared
        require_known([*said], ("cpu", "memory", "link"), where)
        cpu, memory = number(said, "cpu", where), number(said, "memory", where)
        devices.append(Device(cpu=cpu, memory=None if memory is None else int(memory), link=link))
    return tuple(devices)


def _link(said: Any, where: str) -> Link | None:
    if said is None:
        return None
    if not isinstance(said, Mapping) or set(said) != {"bandwidth", "latency"}:
        raise Infeasible(f"a link is {{bandwidth: bits/s, latency: s}}, not {said!r}")
    bandwidth, latency = number(said, "bandwidth", where), number(said, "latency", where)
    if bandwidth is None or latency is None:
        raise Infeasible(f"a link is {{bandwidth: bits/s, latency: s}}, not {said!r}")
    return Link(bandwidth, latency)
