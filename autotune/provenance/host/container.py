"""The container around this process, if any, and what it may use of the machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from autotune.provenance.document import Documented
from autotune.provenance.host.cgroup import Limits, find_group, read_limits
from autotune.provenance.host.processor import allowed_threads
from autotune.provenance.host.system import System

_TRACES = (
    ("kubernetes", re.compile(r"kubepods|kubelet")),
    ("podman", re.compile(r"libpod|podman|containers/storage")),
    ("docker", re.compile(r"docker")),
    ("containerd", re.compile(r"cri-containerd|containerd")),
    ("lxc", re.compile(r"/lxc|lxc\.payload")),
    ("slurm", re.compile(r"slurm")),
)


@dataclass(frozen=True)
class Container(Documented):
    """``kind`` is ``docker``, ``podman``, ``kubernetes``, ``singularity`` ... or ``None``."""

    kind: str | None
    cgroup: int | None
    """The version of control groups that limits memory; ``None`` without any."""
    limits: Limits
    affinity: tuple[int, ...]
    """The hardware threads that this process may run on."""


def read_container(system: System, variables: Mapping[str, str]) -> Container:
    """Describe what encloses the process; ``variables`` are its environment variables."""
    group = find_group(system, "memory")
    return Container(
        kind=_kind(system, variables),
        cgroup=group.version if group else None,
        limits=read_limits(system),
        affinity=allowed_threads(system),
    )


def _kind(system: System, variables: Mapping[str, str]) -> str | None:
    if "KUBERNETES_SERVICE_HOST" in variables:
        return "kubernetes"
    if "SINGULARITY_CONTAINER" in variables or "APPTAINER_CONTAINER" in variables:
        return "singularity"
    traces = (system.text("/proc/self/cgroup") or "") + (system.text("/proc/1/cgroup") or "")
    # With a cgroup namespace the path is "/" and only the root file system's origin tells.
    traces += next(
        (line for line in (system.text("/proc/self/mountinfo") or "").splitlines() if " / / " in line), ""
    )
    for kind, pattern in _TRACES:
        if pattern.search(traces):
            return kind
    if system.exists("/run/.containerenv"):
        return "podman"
    if system.exists("/.dockerenv"):
        return "docker"
    return variables.get("container") or None
