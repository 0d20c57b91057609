"""The names by which recipes call this device, and the devices of stored studies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

BOTH = " with "


@dataclass(frozen=True)
class Here:
    """This device; a recipe is for it if its device is one of :attr:`names`."""

    processor: str
    gpus: str
    """The names of the GPUs, each once; empty if there is none."""
    machine: str
    """See :func:`autotune.provenance.environment.machine_key`."""
    driver: str = ""
    """Version of the GPUs' driver."""

    @property
    def names(self) -> tuple[str, ...]:
        """The processor, the GPUs, and both together, for studies that may have used either."""
        if not self.gpus:
            return (self.processor,)
        return (self.processor, self.gpus, self.processor + BOTH + self.gpus)

    def __str__(self) -> str:
        return self.names[-1]


@cache
def this_device() -> Here:
    """This device. Cached, since devices do not change while a process runs."""
    from autotune.provenance.environment import machine_key
    from autotune.provenance.host.gpus import read_gpus
    from autotune.provenance.host.machine import read_machine
    from autotune.provenance.host.system import System

    machine, (gpus, _) = read_machine(System()), read_gpus()
    return Here(
        processor=machine.processor.name,
        gpus=_different(gpu.name for gpu in gpus.devices),
        machine=machine_key(machine, gpus),
        driver=gpus.driver or "",
    )


def device_of(environment: Mapping[str, Any], on_gpu: bool) -> str:
    """The device of a study, from the document of the environment that it ran in.

    ``on_gpu`` says that the study claimed GPUs. One that did not may still have used them, so its device has
    both names.
    """
    from autotune.provenance.document import part_of

    processor = str(part_of(environment, "machine", "processor").get("name") or "unknown")
    found = part_of(environment, "gpus").get("devices") or ()
    gpus = _different(str(gpu.get("name") or "") for gpu in found)
    if not gpus:
        return processor
    return gpus if on_gpu else processor + BOTH + gpus


def _different(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, names)))
