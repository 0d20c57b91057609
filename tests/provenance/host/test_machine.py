"""The machine as a whole: settings, virtualisation, container."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.provenance.host.container import read_container
from autotune.provenance.host.machine import memory_bytes, read_machine
from autotune.provenance.host.system import System
from tests.provenance.trees import CPU, arm, build, desktop


def test_a_desktop(tmp_path: Path) -> None:
    machine = read_machine(build(tmp_path, desktop()))
    assert machine.hostname == "desk"
    assert machine.memory_bytes == 16303428 << 10
    assert machine.tuning == {"governor": "powersave", "no turbo": "0", "transparent huge pages": "madvise"}
    assert machine.accelerators == ("10de:2204",), "the network card is none"
    assert machine.virtualisation.hypervisor is False
    assert machine.virtualisation.kind is None
    assert machine.virtualisation.vendor == "Dell Inc."
    document = machine.to_document()
    assert isinstance(document["processor"], dict)
    assert isinstance(document["processor"]["flags"], str), "a hash stands for a hundred flags"


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"/sys/class/dmi/id/sys_vendor": "QEMU"}, "kvm"),
        ({"/sys/class/dmi/id/sys_vendor": "Amazon EC2"}, "nitro"),
        ({"/sys/class/dmi/id/product_name": "VirtualBox"}, "virtualbox"),
        ({"/sys/hypervisor/type": "xen\n"}, "xen"),
        ({"/proc/sys/kernel/osrelease": "5.15.90.1-microsoft-standard-WSL2"}, "wsl"),
        ({"/proc/device-tree/hypervisor/compatible": "linux,kvm\0"}, "linux,kvm"),
        ({"/sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc kvm-clock"}, "kvm"),
    ],
)
def test_virtual_machines(tmp_path: Path, files: dict[str, str], kind: str) -> None:
    virtualisation = read_machine(build(tmp_path, desktop() | files)).virtualisation
    assert (virtualisation.hypervisor, virtualisation.kind) == (True, kind)


def test_a_flag_alone_says_that_there_is_something(tmp_path: Path) -> None:
    files = {"/proc/cpuinfo": "flags: fpu sse2 hypervisor\n"}
    virtualisation = read_machine(build(tmp_path, files)).virtualisation
    assert (virtualisation.hypervisor, virtualisation.kind) == (True, None)


def test_an_empty_machine(tmp_path: Path) -> None:
    machine = read_machine(System(tmp_path))
    assert machine.hostname == "unknown"
    assert (machine.memory_bytes, machine.tuning, machine.mitigations) == (None, {}, None)
    assert machine.virtualisation.hypervisor is None


def test_settings_that_differ_show(tmp_path: Path) -> None:
    other = desktop() | {f"{CPU}/vulnerabilities/meltdown": "Vulnerable\n"}
    here, there = build(tmp_path / "a", desktop()), build(tmp_path / "b", other)
    assert read_machine(here).mitigations != read_machine(there).mitigations


def test_memory_of_this_machine() -> None:
    assert (memory_bytes(System()) or 0) > 64 << 20


@pytest.mark.parametrize(
    ("files", "variables", "kind"),
    [
        ({}, {}, None),
        ({"/.dockerenv": ""}, {}, "docker"),
        ({"/proc/self/cgroup": "0::/system.slice/docker-0123.scope\n"}, {}, "docker"),
        ({"/proc/1/cgroup": "1:name=systemd:/kubepods/burstable/pod1/2\n"}, {}, "kubernetes"),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"/run/.containerenv": ""}, {}, "podman"),
        ({}, {"APPTAINER_CONTAINER": "/x.sif"}, "singularity"),
        ({}, {"container": "lxc"}, "lxc"),
        (
            {"/proc/self/mountinfo": "1 0 0:1 / / rw - overlay o rw,lowerdir=/var/lib/docker/x\n"},
            {},
            "docker",
        ),
    ],
)
def test_containers(
    tmp_path: Path, files: dict[str, str], variables: dict[str, str], kind: str | None
) -> None:
    assert read_container(build(tmp_path, desktop() | files), variables).kind == kind


def test_the_limits_of_a_container(tmp_path: Path) -> None:
    container = read_container(build(tmp_path, arm()), {})
    assert (container.cgroup, container.limits.memory_bytes, container.affinity) == (2, 2 << 30, (0,))
