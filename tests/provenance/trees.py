"""Machines as folders: the few files of /proc and /sys that describe them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from autotune.provenance.host.system import System

CPU = "/sys/devices/system/cpu"


def build(root: Path, files: Mapping[str, str]) -> System:
    """A machine below ``root`` with these files."""
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return System(root)


def cache(cpu: int, index: int, level: int, kind: str, size: str, shared: str) -> dict[str, str]:
    folder = f"{CPU}/cpu{cpu}/cache/index{index}"
    return {
        f"{folder}/level": f"{level}\n",
        f"{folder}/type": f"{kind}\n",
        f"{folder}/size": f"{size}\n",
        f"{folder}/coherency_line_size": "64\n",
        f"{folder}/shared_cpu_list": f"{shared}\n",
    }


def desktop() -> dict[str, str]:
    """An x86 machine: one socket, two cores with two threads each, turbo on, on bare metal."""
    info = (
        "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 158\n"
        "model name\t: Intel(R) Core(TM)   i3-7100 CPU @ 3.90GHz\nstepping\t: 9\nmicrocode\t: 0xf0\n"
        "flags\t\t: fpu sse sse2 avx avx2\n\nprocessor\t: 1\nmodel name\t: another\n"
    )
    files = {
        "/proc/cpuinfo": info,
        "/proc/meminfo": "MemTotal:       16303428 kB\nMemAvailable:   9000000 kB\nSwapTotal: 0 kB\n",
        "/proc/self/status": "Name:\tpython\nCpus_allowed_list:\t0-3\n",
        "/proc/self/cgroup": "0::/user.slice\n",
        "/proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "/proc/sys/kernel/hostname": "desk\n",
        "/proc/sys/kernel/osrelease": "6.1.0-18-amd64\n",
        "/proc/sys/kernel/version": "#1 SMP Debian\n",
        "/etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n',
        f"{CPU}/online": "0-3\n",
        f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave\n",
        f"{CPU}/intel_pstate/no_turbo": "0\n",
        f"{CPU}/vulnerabilities/meltdown": "Mitigation: PTI\n",
        "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "/sys/devices/system/node/node0/cpulist": "0-3\n",
        "/sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
        "/sys/class/dmi/id/product_name": "OptiPlex\n",
        "/sys/bus/pci/devices/0000:01:00.0/class": "0x030000\n",
        "/sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
        "/sys/bus/pci/devices/0000:01:00.0/device": "0x2204\n",
        "/sys/bus/pci/devices/0000:02:00.0/class": "0x020000\n",
    }
    for cpu in range(4):
        core = cpu % 2
        files[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = "0\n"
        files[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = f"{core},{core + 2}\n"
        files |= cache(cpu, 0, 1, "Data", "32K", f"{core},{core + 2}")
        files |= cache(cpu, 1, 1, "Instruction", "32K", f"{core},{core + 2}")
        files |= cache(cpu, 2, 2, "Unified", "256K", f"{core},{core + 2}")
        files |= cache(cpu, 3, 3, "Unified", "3072K", "0-3")
    return files


def arm() -> dict[str, str]:
    """An ARM machine in a container: no name, no caches, one core, 2 GiB of 8 by its control group."""
    return {
        "/proc/cpuinfo": "processor\t: 0\nFeatures\t: fp asimd sve\nCPU implementer\t: 0x41\n"
        "CPU architecture: 8\nCPU part\t: 0xd40\nCPU revision\t: 1\n",
        "/proc/meminfo": "MemTotal:        8000000 kB\n",
        "/proc/self/cgroup": "0::/\n",
        "/proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
        "/proc/sys/abi/sve_default_vector_length": "32\n",
        "/sys/fs/cgroup/memory.max": f"{2 << 30}\n",
        "/sys/fs/cgroup/cpu.max": "max 100000\n",
        "/run/.containerenv": "",
        f"{CPU}/online": "0\n",
    }
