"""The environment of a measurement: captured once, hashed, stored once, and compared part by part.

What changes from minute to minute (load, clocks, temperatures) is its *state*: recorded, but in no hash.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

from autotune.provenance.code.repository import Commit, read_commit
from autotune.provenance.document import Difference, Document, Documented, differences, digest, plain
from autotune.provenance.host.container import Container, read_container
from autotune.provenance.host.gpus import Gpus, GpuState, read_gpus
from autotune.provenance.host.machine import Machine, read_machine
from autotune.provenance.host.pressure import pressure
from autotune.provenance.host.system import System, as_bytes
from autotune.provenance.software import (
    OperatingSystem,
    Python,
    VersionQueries,
    read_operating_system,
    read_packages,
    read_python,
)
from autotune.provenance.variables import relevant


@dataclass(frozen=True)
class State(Documented):
    """How the machine stood when the environment was captured; no part of its identity."""

    at: float
    """Seconds since the epoch."""
    pressure: Mapping[str, float] = field(default_factory=dict)
    """See :func:`autotune.provenance.host.pressure.pressure`."""
    memory_available_bytes: int | None = None
    gpus: tuple[GpuState, ...] = ()


@dataclass(frozen=True)
class Environment(Documented):
    """The captured machine and software. Everything but ``state`` is identity."""

    machine: Machine
    container: Container
    system: OperatingSystem
    python: Python
    packages: Mapping[str, str]
    compilers: Mapping[str, str]
    gpus: Gpus
    variables: Mapping[str, str]
    code: Commit | None
    """Where the repository around the space file stood; ``None`` outside of one."""
    state: State

    @cached_property
    def hash(self) -> str:
        """Over everything but the state: 16 hexadecimal digits."""
        return digest(_identity(self))

    @cached_property
    def machine_key(self) -> str:
        """See :func:`machine_key`."""
        return machine_key(self.machine, self.gpus)


def machine_key(machine: Machine, gpus: Gpus) -> str:
    """What makes it the same machine for a study, as 12 hexadecimal digits.

    Processor, cores, caches, memory (rounded up to a size that memory is sold in) and GPUs; not the
    name of the host, the kernel, its load, nor the share of the machine that this process may use.
    """
    processor = machine.processor
    caches = [[cache.level, cache.kind, cache.bytes] for cache in processor.caches]
    return digest(
        {
            "architecture": machine.architecture,
            "processor": [processor.name, processor.vendor, processor.family, processor.model],
            "cores": [processor.sockets, processor.cores, processor.threads],
            "caches": plain(caches),
            "memory": nominal_memory(machine.memory_bytes),
            "gpus": plain(sorted(gpu.name for gpu in gpus.devices)),
        },
        length=12,
    )


def capture(
    folder: Path | None = None,
    *,
    variables: Mapping[str, str] | None = None,
    system: System | None = None,
) -> Environment:
    """Capture the environment; some 100 ms. What cannot be found out is ``None``, never an error.

    ``folder`` is where the study's files lie: the state of the git repository around it is recorded.
    ``variables`` are the environment variables to look at (default: this process's), and ``system``
    the machine's files (default: this machine's).
    """
    system = System() if system is None else system
    variables = os.environ if variables is None else variables
    compilers = VersionQueries.start()  # they answer while the rest is read
    gpus, gpu_states = read_gpus()
    return Environment(
        machine=read_machine(system),
        container=read_container(system, variables),
        system=read_operating_system(system),
        python=read_python(),
        packages=read_packages(),
        gpus=gpus,
        variables=relevant(variables),
        code=read_commit(folder) if folder is not None else None,
        state=State(
            at=time.time(),
            pressure=pressure(system.root),
            memory_available_bytes=as_bytes(system.fields("/proc/meminfo").get("MemAvailable")),
            gpus=gpu_states,
        ),
        compilers=compilers.result(),
    )


def compare(
    before: Environment | Mapping[str, object], after: Environment | Mapping[str, object]
) -> tuple[Difference, ...]:
    """What differs between two environments, or their stored documents; their states are not compared."""
    found = differences(_identity(before), _identity(after))
    return tuple(difference for difference in found if not difference.path.startswith(_OWN))


_OWN = "variables.AUTOTUNE_"
"""Variables of autotune's own, which earlier versions recorded: they change no measurement."""


def _identity(environment: Environment | Mapping[str, object]) -> Document:
    """The part of the document that the hash covers."""
    document = cast(Document, plain(environment))
    return {name: value for name, value in document.items() if name != "state"}


def nominal_memory(size: int | None) -> int | None:
    """The memory rounded up to an eighth of its power of two.

    Kernels keep between one and six per cent of the memory for themselves, another part with every
    release; rounding up takes 15.6 and 15.4 GiB for the same 16.
    """
    if not size or size < 8:
        return size
    step = 1 << (math.floor(math.log2(size)) - 3)
    return -(-size // step) * step
