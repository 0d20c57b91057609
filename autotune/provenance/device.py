"""Facts of a device for the rules of a space: ``device.l1_bytes``, ``device.warp_size`` ...

On a machine with a GPU the facts of its CPU and of its first GPU stand side by side, so that one
machine serves spaces of both kinds. Where a name exists for both, it is the CPU's; ``gpu_memory_bytes``,
``gpu_l2_bytes`` and ``gpu_name`` are the GPU's everywhere. :data:`autotune.provenance.profiles.FACTS`
lists all names with their meaning.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotune.errors import InputError, Problem
from autotune.provenance import asking
from autotune.provenance.host import cuda_query
from autotune.provenance.host.cgroup import read_limits, whole_processors
from autotune.provenance.host.machine import memory_bytes
from autotune.provenance.host.processor import allowed_threads, core_groups, read_processor, vector_bytes
from autotune.provenance.host.system import System
from autotune.provenance.profiles import complete, profile
from autotune.space.configuration import FrozenMap, Value

GENERIC = "generic-cpu"
_QUERY_SECONDS = 20.0
"""The driver of a node with eight GPUs and no persistence daemon takes seconds to wake up."""


def device_facts(which: str | Path | None = None) -> FrozenMap:
    """Facts of this machine (``None``), of its ``cpu`` or a GPU such as ``cuda:0`` alone, of a shipped
    profile (``h100``) or of a profile file. Raises :class:`~autotune.errors.InputError` for anything else.
    """
    if which is None:
        return _machine_facts()
    if which == "cpu":
        return FrozenMap(cpu_facts(System(), query_gpus()))
    if isinstance(which, str) and which.startswith("cuda:") and which[5:].isdecimal():
        gpus, index = query_gpus(), int(which[5:])
        if index >= len(gpus):
            found = ", ".join(_names(len(gpus)))
            hint = "a device that is elsewhere is checked with its profile, such as h100"
            raise InputError(Problem(f"this machine has no device {which}", expected=found, hint=hint))
        return complete(_gpu(gpus[index], len(gpus)))
    return profile(which)


def _machine_facts() -> FrozenMap:
    """The CPU of this machine and, where there is one, its first GPU."""
    gpus = query_gpus()
    facts = dict(cpu_facts(System(), gpus))
    if gpus:
        gpu = complete(_gpu(gpus[0], len(gpus)))
        facts = {**{name: gpu[name] for name in gpu if name not in ("kind", "name")}, **facts}
    return FrozenMap(facts)


def cpu_facts(system: System, gpus: Sequence[Mapping[str, object]] = ()) -> Mapping[str, Value]:
    """What a program may use of a machine's CPU, with the limits of its container and affinity.

    Caches are those of one core, the smallest where cores differ. What cannot be found out is taken
    from the generic profile and named in ``assumed``.
    """
    processor, limits, usable = read_processor(system), read_limits(system), allowed_threads(system)
    quota = whole_processors(limits) or sys.maxsize
    threads = min(len(usable) or processor.threads or 1, quota)
    cores = min(len(core_groups(system, usable)) or processor.cores or threads, threads)
    caches = {level: processor.cache(level) for level in (1, 2, 3)}
    first, third = caches[1], caches[3]
    memory = memory_bytes(system)
    known: dict[str, Value | None] = {
        "l1_bytes": first.bytes if first else None,
        "l2_bytes": caches[2].bytes if caches[2] else None,
        # Where the caches are known, a missing third level is a fact and not a gap.
        "l3_bytes": third.bytes if third else 0 if first else None,
        "cache_line_bytes": first.line_bytes if first else None,
        "memory_bytes": min(memory, limits.memory_bytes or memory) if memory else limits.memory_bytes,
        "vector_bytes": vector_bytes(processor, system),
    }
    facts: dict[str, Value] = {"kind": "cpu", "name": processor.name, "cores": cores, "threads": threads}
    assumed = tuple(name for name, value in known.items() if value is None)
    generic = profile(GENERIC) if assumed else FrozenMap({})
    for name, value in known.items():
        facts[name] = generic[name] if value is None else value
    if assumed:
        facts["assumed"] = assumed
    return {**facts, "names": _names(len(gpus))}


def _names(gpus: int) -> tuple[str, ...]:
    """What work can be placed on: ``cpu``, then ``cuda:0`` ..."""
    return ("cpu", *(f"cuda:{index}" for index in range(gpus)))


def query_gpus() -> tuple[Mapping[str, object], ...]:
    """What the CUDA driver says of each visible GPU; empty without a driver."""
    return ask_driver() if _driver_present() else ()


def ask_driver() -> tuple[Mapping[str, object], ...]:
    """Run :mod:`autotune.provenance.host.cuda_query` in a child process, for at most some seconds."""
    try:
        started = asking.start([sys.executable, "-I", "-S", cuda_query.__file__])
        done = asking.answer(started, _QUERY_SECONDS)
        return () if done is None or done.returncode else tuple(json.loads(done.stdout))
    except (OSError, ValueError):
        return ()


def _driver_present() -> bool:
    """Whether asking is worth a child process; on a machine without a GPU it is not."""
    system = System()
    nodes = ("/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/proc/driver/nvidia/version", "/dev/nvhost-ctrl")
    return any(system.exists(node) for node in nodes)


def _gpu(found: Mapping[str, object], count: int) -> Mapping[str, Value]:
    facts: dict[str, Value] = {"kind": "gpu"}
    for name in ("name", "memory_bytes", *cuda_query.ATTRIBUTES):
        value = found.get(name)
        if isinstance(value, (int, str)) and name not in ("major", "minor"):
            facts[name] = value
    if "major" in found:
        facts["compute_capability"] = float(f"{found['major']}.{found.get('minor', 0)}")
    return {**facts, "names": _names(count)}
