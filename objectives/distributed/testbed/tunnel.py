"""A rank's end of a link: a network namespace of its own with one TUN interface in it."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autotune.measure.groups.network import Joined
from autotune.measure.libc import leave_namespace

INTERFACE = "link0"
TUN = "/dev/net/tun"

_CLONE_NEWNET = 0x40000000
_TUNSETIFF, _TUNSETOFFLOAD = 0x400454CA, 0x400454D0
_IFF_TUN, _IFF_NO_PI, _IFF_VNET_HDR = 0x0001, 0x1000, 0x4000
_TUN_F_CSUM, _TUN_F_TSO4 = 0x01, 0x02
_SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK = 0x8914, 0x8916, 0x891C
_IFF_UP = 0x1
_RTM_NEWLINK, _NLM_F_REQUEST, _NLM_F_ACK, _NLMSG_ERROR = 16, 1, 4, 2
_IFLA_MTU, _IFLA_TXQLEN, _IFLA_GSO_MAX_SEGS = 4, 13, 40

MTU = 1500
QUEUE = 20000
"""Packets that wait in the sender's interface. It never overflows before TCP's own windows are full, as the
interface of a real sender holds its socket back in place of dropping."""


@dataclass(frozen=True)
class TunPort:
    """Enters a namespace with the address ``10.77.0.(number + 1)``.

    ``segments``: how many the kernel may leave together; what goes together arrives together.
    """

    number: int
    segments: int

    def enter(self) -> Joined:
        leave_network()
        descriptor = open_tun()
        address = address_of(self.number)
        _set_up("lo")
        _assign(address)
        _configure(INTERFACE, {_IFLA_MTU: MTU, _IFLA_TXQLEN: QUEUE, _IFLA_GSO_MAX_SEGS: self.segments})
        _set_up(INTERFACE)
        with suppress(OSError):  # what one connection has learned is no matter of the next trial
            Path("/proc/sys/net/ipv4/tcp_no_metrics_save").write_text("1")
        return Joined(address, INTERFACE, (descriptor,))


def address_of(number: int) -> str:
    return f"10.77.0.{number + 1}"


def leave_network() -> None:
    """Into a network namespace of one's own."""
    leave_namespace(_CLONE_NEWNET, "for a network")


def open_tun() -> int:
    """The far end of a new interface in this namespace."""
    flags = _IFF_TUN | _IFF_NO_PI | _IFF_VNET_HDR
    try:
        descriptor = os.open(TUN, os.O_RDWR | os.O_CLOEXEC)
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", INTERFACE.encode(), flags))
        fcntl.ioctl(descriptor, _TUNSETOFFLOAD, _TUN_F_CSUM | _TUN_F_TSO4)
    except OSError as error:
        raise OSError(error.errno, f"no interface can be made with {TUN}: {error.strerror}") from error
    return descriptor


def _assign(address: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        for request, text in ((_SIOCSIFADDR, address), (_SIOCSIFNETMASK, "255.255.255.0")):
            packed = struct.pack("16sHH4s16x", INTERFACE.encode(), socket.AF_INET, 0, socket.inet_aton(text))
            fcntl.ioctl(asking, request, packed)


def _set_up(interface: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        fcntl.ioctl(asking, _SIOCSIFFLAGS, struct.pack("16sH22x", interface.encode(), _IFF_UP))


def _configure(interface: str, attributes: dict[int, int]) -> None:
    """Set 32-bit attributes of an interface, over netlink."""
    index = socket.if_nametoindex(interface)
    body = struct.pack("=BBHiII", socket.AF_UNSPEC, 0, 0, index, 0, 0)
    body += b"".join(struct.pack("=HHI", 8, kind, value) for kind, value in attributes.items())
    head = struct.pack("=IHHII", 16 + len(body), _RTM_NEWLINK, _NLM_F_REQUEST | _NLM_F_ACK, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as link:
        link.send(head + body)
        answer = link.recv(1 << 16)
    kind, error = struct.unpack_from("=4xH10xi", answer)
    if kind == _NLMSG_ERROR and error:
        raise OSError(-error, f"{interface} cannot be configured: {os.strerror(-error)}")
