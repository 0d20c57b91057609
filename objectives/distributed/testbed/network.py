"""The network of a process group whose devices have links; the loopback interface where none can be made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from autotune.measure.groups.device import Device, Link
from autotune.measure.groups.network import Joined, Loopback, Network
from testbed.tunnel import MTU, TunPort
from testbed.wire import Traffic, Wire, WireError, compile_wire

TOGETHER_SECONDS = 100e-6
"""What is handed over together is at most so long on its link, so that bits do not arrive in lumps."""

MOST_LINKS = 16
"""``MOST`` of wire.c."""

_HEADERS = 52


class ShapedNetwork:
    """Links of given bandwidth and latency between the ranks of a group."""

    def __init__(self, links: Sequence[Link], program: Path) -> None:
        self.links = tuple(links)
        self._program = program
        self._wire: Wire | None = None
        self._real_time = True

    @property
    def facts(self) -> Mapping[str, object]:
        facts: dict[str, object] = {
            "network": "shaped",
            "links": [{"bandwidth": link.bandwidth, "latency": link.latency} for link in self.links],
        }
        if not self._real_time:
            facts["switch"] = "without real-time priority: latency is kept less well on a busy machine"
        return facts

    @property
    def processes(self) -> frozenset[int]:
        return frozenset() if self._wire is None else frozenset({self._wire.pid})

    def ports(self, world: int) -> Sequence[TunPort]:
        if world != len(self.links):
            raise ValueError(f"{world} ranks, but {len(self.links)} links")
        return [TunPort(number, segments_of(link)) for number, link in enumerate(self.links)]

    def connect(self, joined: Sequence[Joined]) -> None:
        descriptors = [one.descriptors[0] for one in joined]
        latencies = [[(a.latency + b.latency) / 2 for b in self.links] for a in self.links]
        try:
            self._wire = Wire(self._program, descriptors, [link.bandwidth for link in self.links], latencies)
            self._real_time = self._wire.real_time
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def failure(self) -> str:
        ended = self._wire.ended if self._wire is not None else None
        return "" if ended is None else f"its switch ended with code {ended}"

    def traffic(self) -> Traffic | None:
        """What went over the wire since the last call; ``None`` where there is none or it does not answer."""
        with suppress(WireError):
            return self._wire.traffic() if self._wire is not None else None
        return None

    def cut(self, device: int) -> None:
        """Cut a device off."""
        if self._wire is not None:
            self._wire.cut(device)

    def close(self) -> None:
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.close()


def segments_of(link: Link) -> int:
    """How many segments a sender may leave together: at most 64 KiB, and no longer than a moment."""
    moment = link.bandwidth * TOGETHER_SECONDS / 8
    return max(1, min(44, int(moment / (MTU - _HEADERS))))


def links_of(devices: Sequence[Device]) -> list[Link]:
    """The links of all devices, or none.

    Raises ``ValueError`` where some have one and others have not, and where they are too many.
    """
    links = [device.link for device in devices if device.link is not None]
    if links and len(links) < len(devices):
        raise ValueError("some devices have a link and others have none: give each one, or none")
    if len(links) > MOST_LINKS:
        raise ValueError(f"a switch has room for {MOST_LINKS} devices with links, and not for {len(links)}")
    return links


def network_for(devices: Sequence[Device]) -> Network:
    """What connects these devices: links where all have one and they can be made, else loopback.

    The loopback network says in its facts why it is not what was asked for. Raises ``ValueError`` as
    :func:`links_of` does.
    """
    links = links_of(devices)
    if not links:
        return Loopback()
    if why := unable():
        return Loopback(why)
    return ShapedNetwork(links, compile_wire())


@lru_cache(1)
def unable() -> str:
    """Why links cannot be made here; empty where they can. Tried in a process of its own, and undone."""
    code = (
        "from testbed.tunnel import leave_network, open_tun\n"
        "import sys\n"
        "try:\n leave_network(); open_tun()\n"
        "except OSError as error:\n sys.exit(str(error))"
    )
    here = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join([here, *(entry or str(Path.cwd()) for entry in sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it cannot be tried"
    try:
        compile_wire()
    except (WireError, OSError) as error:
        return str(error)
    return ""
