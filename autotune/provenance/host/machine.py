"""The machine: processor, memory, the settings of its kernel that move timings, and virtualisation."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass

from autotune.provenance.document import Document, Documented
from autotune.provenance.host.processor import CPU, Processor, read_processor
from autotune.provenance.host.system import System, as_bytes


@dataclass(frozen=True)
class Virtualisation(Documented):
    """Whether something lies between us and the hardware. ``None`` is unknown."""

    hypervisor: bool | None
    """The processor's own flag."""
    kind: str | None
    """``kvm``, ``xen``, ``vmware``, ``hyper-v``, ``virtualbox``, ``wsl`` ..., where something tells."""
    vendor: str | None
    product: str | None


@dataclass(frozen=True)
class Machine(Documented):
    """What makes the machine; nothing in it changes from one minute to the next."""

    hostname: str
    architecture: str
    processor: Processor
    memory_bytes: int | None
    swap_bytes: int | None
    tuning: Mapping[str, str]
    """Kernel settings that move timings: frequency governor and driver, turbo, SMT, huge pages ..."""
    mitigations: str | None
    """Hash of the kernel's list of vulnerabilities and their mitigations."""
    accelerators: tuple[str, ...]
    """Display and accelerator devices on the PCI bus, as ``vendor:device``, with or without a driver."""
    virtualisation: Virtualisation

    def to_document(self) -> Document:
        """The flags are a hundred words that only matter as a whole: their hash stands for them."""
        flags = self.processor.flags
        processor = self.processor.to_document() | {"flags": _hash(" ".join(flags)) if flags else None}
        return super().to_document() | {"processor": processor}


def read_machine(system: System) -> Machine:
    """Describe the machine that ``system`` shows."""
    memory = system.fields("/proc/meminfo")
    processor = read_processor(system)
    return Machine(
        hostname=(platform.node() if system.live else system.text("/proc/sys/kernel/hostname")) or "unknown",
        architecture=os.uname().machine if system.live else system.text("/proc/sys/kernel/arch") or "unknown",
        processor=processor,
        memory_bytes=memory_bytes(system),
        swap_bytes=as_bytes(memory.get("SwapTotal")),
        tuning=read_tuning(system),
        mitigations=_mitigations(system),
        accelerators=_accelerators(system),
        virtualisation=read_virtualisation(system, processor),
    )


def memory_bytes(system: System) -> int | None:
    """The memory of the machine, whatever part of it this process may use."""
    total = as_bytes(system.fields("/proc/meminfo").get("MemTotal"))
    if total:
        return total
    pages, size = system.sysconf("SC_PHYS_PAGES"), system.sysconf("SC_PAGE_SIZE")
    return pages * size if pages and size else None


TUNING = {
    "governor": f"{CPU}/cpu0/cpufreq/scaling_governor",
    "frequency driver": f"{CPU}/cpu0/cpufreq/scaling_driver",
    "frequency minimum, kHz": f"{CPU}/cpu0/cpufreq/scaling_min_freq",
    "frequency maximum, kHz": f"{CPU}/cpu0/cpufreq/scaling_max_freq",
    "energy preference": f"{CPU}/cpu0/cpufreq/energy_performance_preference",
    "boost": f"{CPU}/cpufreq/boost",
    "no turbo": f"{CPU}/intel_pstate/no_turbo",
    "SMT": f"{CPU}/smt/control",
    "isolated processors": f"{CPU}/isolated",
    "transparent huge pages": "/sys/kernel/mm/transparent_hugepage/enabled",
    "huge pages": "/proc/sys/vm/nr_hugepages",
    "address randomisation": "/proc/sys/kernel/randomize_va_space",
    "NUMA balancing": "/proc/sys/kernel/numa_balancing",
    "swappiness": "/proc/sys/vm/swappiness",
    "overcommit": "/proc/sys/vm/overcommit_memory",
    "clock source": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
}
"""Where each setting is read."""


def read_tuning(system: System) -> Mapping[str, str]:
    """The settings of :data:`TUNING` that exist here and are not empty."""
    found = {}
    for name, path in TUNING.items():
        text = system.text(path, 256)
        if text:
            chosen = text.partition("[")[2].partition("]")[0]  # always [madvise] never
            found[name] = chosen or text
    return found


def read_virtualisation(system: System, processor: Processor) -> Virtualisation:
    """From the processor's flag, the firmware's strings and what hypervisors leave in ``/sys``."""
    vendor = system.text("/sys/class/dmi/id/sys_vendor", 256) or None
    product = system.text("/sys/class/dmi/id/product_name", 256) or None
    clocks = system.text("/sys/devices/system/clocksource/clocksource0/available_clocksource", 256)
    kind = system.text("/sys/hypervisor/type", 64) or _kind(f"{vendor} {product}") or _kind(f"{clocks}")
    if "microsoft" in (system.text("/proc/sys/kernel/osrelease", 256) or "").lower():
        kind = "wsl"
    if kind is None and system.exists("/proc/device-tree/hypervisor"):
        kind = system.text("/proc/device-tree/hypervisor/compatible", 64)
    # The flag exists on x86 only: elsewhere its absence says nothing.
    flag = True if "hypervisor" in processor.flags else False if "fpu" in processor.flags else None
    return Virtualisation(flag if kind is None else True, kind, vendor, product)


def _kind(firmware: str) -> str | None:
    words = {
        "kvm": "kvm",
        "qemu": "kvm",
        "amazon ec2": "nitro",
        "google": "kvm",
        "vmware": "vmware",
        "virtualbox": "virtualbox",
        "innotek": "virtualbox",
        "xen": "xen",
        "hyperv_clocksource": "hyper-v",
        "microsoft corporation virtual": "hyper-v",
        "parallels": "parallels",
        "openstack": "kvm",
    }
    return next((kind for word, kind in words.items() if word in firmware.lower()), None)


def _mitigations(system: System) -> str | None:
    folder = f"{CPU}/vulnerabilities"
    lines = [f"{name}: {system.text(f'{folder}/{name}', 1024)}" for name in system.names(folder)]
    return _hash("\n".join(lines)) if lines else None


def _accelerators(system: System) -> tuple[str, ...]:
    """Class 03: display controllers (which all GPUs are); class 12: processing accelerators."""
    found = []
    for slot in system.names("/sys/bus/pci/devices"):
        folder = f"/sys/bus/pci/devices/{slot}"
        if (system.text(f"{folder}/class", 16) or "")[:4] in ("0x03", "0x12"):
            vendor, device = (
                (system.text(f"{folder}/{part}", 16) or "?").removeprefix("0x")
                for part in ("vendor", "device")
            )
            found.append(f"{vendor}:{device}")
    return tuple(sorted(found))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
