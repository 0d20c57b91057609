"""The processor: its name, instruction sets, cores and caches, as the kernel describes them."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass

from autotune.provenance.document import Documented
from autotune.provenance.host.system import System, as_bytes, as_int, cpu_list

CPU = "/sys/devices/system/cpu"

ARM_PARTS = {
    (0x41, 0xD03): "Cortex-A53",
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4F): "Neoverse-V2",
}
"""Names of ARM cores by (implementer, part), for kernels that print only the numbers."""


@dataclass(frozen=True)
class Cache(Documented):
    """One cache as a core sees it. ``kind`` is ``data``, ``instruction`` or ``unified``."""

    level: int
    kind: str
    bytes: int
    line_bytes: int | None
    shared_by: int | None
    """Hardware threads that share it."""


@dataclass(frozen=True)
class Processor(Documented):
    """What the hardware is, whoever may use how much of it. ``None`` is unknown."""

    name: str
    vendor: str | None
    family: str | None
    model: str | None
    stepping: str | None
    microcode: str | None
    flags: tuple[str, ...]
    """Instruction-set flags, sorted."""
    sockets: int | None
    cores: int | None
    """Physical cores that are online."""
    threads: int | None
    """Hardware threads that are online."""
    numa_nodes: int | None
    caches: tuple[Cache, ...]
    """Where cores differ (hybrid processors), the smaller of the first and the last core's."""

    def cache(self, level: int) -> Cache | None:
        """The data or unified cache of a level."""
        return next((c for c in self.caches if c.level == level and c.kind != "instruction"), None)


def read_processor(system: System) -> Processor:
    """Read it from ``/proc/cpuinfo`` and ``/sys``, else from the C library and psutil."""
    # The first processor's entry is enough; the whole file costs milliseconds on a large machine.
    info = system.fields("/proc/cpuinfo", 16 * 1024)
    online = online_threads(system)
    cores = core_groups(system, online)
    sockets = {system.text(f"{CPU}/cpu{cpu}/topology/physical_package_id", 16) for cpu in online} - {None}
    nodes = [name for name in system.names("/sys/devices/system/node") if name[4:].isdigit()]
    return Processor(
        name=_name(system, info),
        vendor=info.get("vendor_id") or info.get("CPU implementer"),
        family=info.get("cpu family") or info.get("CPU architecture"),
        model=info.get("model") or info.get("CPU part"),
        stepping=info.get("stepping") or info.get("CPU revision"),
        microcode=info.get("microcode"),
        flags=tuple(sorted((info.get("flags") or info.get("Features") or "").split())),
        sockets=len(sockets) or None,
        cores=len(cores) or _psutil_cores(system),
        threads=len(online) or (os.cpu_count() if system.live else None),
        numa_nodes=len(nodes) or None,
        caches=read_caches(system, online),
    )


def online_threads(system: System) -> tuple[int, ...]:
    """The hardware threads that are online."""
    listed = cpu_list(system.text(f"{CPU}/online", 4096))
    if listed:
        return listed
    numbered = (name[3:] for name in system.names(CPU) if name.startswith("cpu") and name[3:].isdigit())
    return tuple(sorted(int(number) for number in numbered))


def allowed_threads(system: System) -> tuple[int, ...]:
    """The hardware threads that this process may run on (affinity and cpuset)."""
    status = system.fields("/proc/self/status")
    allowed = cpu_list(status.get("Cpus_allowed_list"))
    online = set(online_threads(system))
    usable = tuple(cpu for cpu in allowed if not online or cpu in online)
    return usable or tuple(sorted(online)) or (tuple(sorted(os.sched_getaffinity(0))) if system.live else ())


def core_groups(system: System, threads: tuple[int, ...]) -> frozenset[str]:
    """One entry for each physical core that ``threads`` belong to; empty where that is unknown."""
    groups = set()
    for cpu in threads:
        folder = f"{CPU}/cpu{cpu}/topology"
        siblings = system.text(f"{folder}/core_cpus_list", 256) or system.text(
            f"{folder}/thread_siblings_list", 256
        )
        if siblings:
            groups.add(siblings)
    return frozenset(groups)


def read_caches(system: System, threads: tuple[int, ...]) -> tuple[Cache, ...]:
    """The caches that a core sees, from ``/sys`` or else from the C library."""
    # Performance and efficiency cores are numbered in blocks, so the two ends show both kinds.
    seen: dict[tuple[int, str], Cache] = {}
    for cpu in {*threads[:1], *threads[-1:]}:
        for cache in _sysfs_caches(system, cpu):
            known = seen.get((cache.level, cache.kind))
            if known is None or cache.bytes < known.bytes:
                seen[cache.level, cache.kind] = cache
    found = tuple(seen[key] for key in sorted(seen))
    return found or _sysconf_caches(system)


def vector_bytes(processor: Processor, system: System) -> int | None:
    """The width of a vector register by the instruction-set flags; ``None`` where there are none."""
    flags = set(processor.flags)
    if "avx512f" in flags:
        return 64
    if "avx" in flags:
        return 32
    if "sve" in flags:
        return max(16, system.number("/proc/sys/abi/sve_default_vector_length") or 16)
    return 16 if flags & {"sse", "sse2", "asimd", "neon", "altivec", "vsx", "vx", "lsx"} else None


def _name(system: System, info: dict[str, str]) -> str:
    for key in ("model name", "cpu model", "Model", "uarch"):
        if info.get(key):
            return " ".join(info[key].split())
    implementer, part = _hex(info.get("CPU implementer")), _hex(info.get("CPU part"))
    if implementer is not None and part is not None:
        return ARM_PARTS.get((implementer, part), f"ARM implementer {implementer:#04x} part {part:#05x}")
    if info.get("cpu"):  # POWER
        return info["cpu"]
    fallback = platform.processor() or platform.machine() if system.live else ""
    return system.text("/proc/device-tree/model", 256) or fallback or "unknown"


def _hex(text: str | None) -> int | None:
    try:
        return int(text, 16) if text else None
    except ValueError:
        return None


def _psutil_cores(system: System) -> int | None:
    if not system.live:
        return None
    import psutil

    return psutil.cpu_count(logical=False) or os.cpu_count()


def _sysfs_caches(system: System, cpu: int) -> list[Cache]:
    folder = f"{CPU}/cpu{cpu}/cache"
    caches = []
    for index in system.names(folder):
        if not index.startswith("index"):
            continue
        level = system.number(f"{folder}/{index}/level")
        size = as_bytes(system.text(f"{folder}/{index}/size", 64))
        if level and size:
            kind = (system.text(f"{folder}/{index}/type", 64) or "unified").lower()
            line = as_int(system.text(f"{folder}/{index}/coherency_line_size", 64))
            shared = len(cpu_list(system.text(f"{folder}/{index}/shared_cpu_list", 4096))) or None
            caches.append(Cache(level, kind, size, line, shared))
    return caches


def _sysconf_caches(system: System) -> tuple[Cache, ...]:
    named = ((1, "data", "LEVEL1_DCACHE"), (2, "unified", "LEVEL2_CACHE"), (3, "unified", "LEVEL3_CACHE"))
    caches = []
    for level, kind, name in named:
        size = system.sysconf(f"SC_{name}_SIZE")
        if size:
            caches.append(Cache(level, kind, size, system.sysconf(f"SC_{name}_LINESIZE"), None))
    return tuple(caches)
