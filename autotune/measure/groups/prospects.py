"""What this machine can give objectives of several processes: quotas, and links between ranks."""

from __future__ import annotations

import subprocess
import sys

from autotune.measure.groups.device import quota_works
from autotune.provenance.probe import Capability
from autotune.ready import ready_root

_SECONDS = 30.0
"""The time limit for trying whether links can be made."""

_LINKS = "import testbed; print(testbed.unable(), end='')"


def group_prospects() -> tuple[Capability, ...]:
    """Try each of them, and undo it."""
    return _quota(), _links()


def _quota() -> Capability:
    name, needed = "processor quota", "devices of unequal speed, in objectives of several processes"
    if why := quota_works():
        return Capability(name, False, why, needed, "run as root, or let systemd delegate a group")
    return Capability(name, True, "by a control group", needed)


def _links() -> Capability:
    name, needed = "links", "comm-*, async-sgd and placement-*: bandwidth and latency between ranks"
    remedy = "run as root, with /dev/net/tun and gcc; without it ranks talk over the loopback interface"
    path = [str(ready_root() / "objectives" / "distributed"), *(entry or "." for entry in sys.path)]
    code = f"import sys; sys.path[:] = {path!r}\n{_LINKS}"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Capability(name, False, str(error), needed, remedy)
    why = done.stdout.strip()
    if done.returncode:
        why = f"exit code {done.returncode}: {done.stderr.strip()[-200:]}"
    if why:
        return Capability(name, False, why, needed, remedy)
    return Capability(name, True, "network namespaces, TUN interfaces, a switch in user space", needed)
