"""Limits in both versions of control groups, on a host and inside a container."""

from __future__ import annotations

from pathlib import Path

from autotune.provenance.host.cgroup import find_group, read_limits, whole_processors
from autotune.provenance.host.system import System
from tests.provenance.trees import build

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = (
    "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
)
TOP = "/sys/fs/cgroup"


def test_the_tightest_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    system = build(
        tmp_path,
        {
            "/proc/self/mountinfo": V2,
            "/proc/self/cgroup": "0::/a/b/c\n",
            f"{TOP}/a/memory.max": "1000000\n",
            f"{TOP}/a/b/memory.max": "max\n",
            f"{TOP}/a/b/c/memory.max": "5000000\n",
            f"{TOP}/a/cpu.max": "max 100000\n",
            f"{TOP}/a/b/c/cpu.max": "150000 100000\n",
        },
    )
    limits = read_limits(system)
    assert (limits.memory_bytes, limits.processors) == (1000000, 1.5)
    assert whole_processors(limits) == 2


def test_version_1_and_its_way_to_say_no_limit(tmp_path: Path) -> None:
    files = {
        "/proc/self/mountinfo": V1,
        "/proc/self/cgroup": "4:memory:/job\n3:cpu,cpuacct:/job\n",
        f"{TOP}/memory/job/memory.limit_in_bytes": "2147483648\n",
        f"{TOP}/memory/memory.limit_in_bytes": "9223372036854771712\n",
        f"{TOP}/cpu,cpuacct/job/cpu.cfs_quota_us": "50000\n",
        f"{TOP}/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
    }
    limits = read_limits(build(tmp_path / "a", files))
    assert (limits.memory_bytes, limits.processors) == (2 << 30, 0.5)
    assert whole_processors(limits) == 1
    free = files | {
        f"{TOP}/memory/job/memory.limit_in_bytes": "9223372036854771712\n",
        f"{TOP}/cpu,cpuacct/job/cpu.cfs_quota_us": "-1\n",
    }
    limits = read_limits(build(tmp_path / "b", free))
    assert (limits.memory_bytes, limits.processors, whole_processors(limits)) == (None, None, None)


def test_inside_a_container_whose_path_is_the_hosts(tmp_path: Path) -> None:
    # The path of the host does not exist below the mount point, which is the container's own group.
    mount = "31 23 0:27 /docker/0123 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
    for number, path in enumerate(["/docker/0123", "/docker/0123/inner", "/elsewhere", "/../other"]):
        system = build(
            tmp_path / str(number),
            {
                "/proc/self/mountinfo": mount,
                "/proc/self/cgroup": f"4:memory:{path}\n",
                f"{TOP}/memory/memory.limit_in_bytes": "4096\n",
            },
        )
        assert read_limits(system).memory_bytes == 4096, path


def test_the_old_version_wins_where_both_are_mounted(tmp_path: Path) -> None:
    system = build(
        tmp_path,
        {
            "/proc/self/mountinfo": V1 + V2.replace(TOP, f"{TOP}/unified"),
            "/proc/self/cgroup": "4:memory:/x\n0::/x\n",
            f"{TOP}/memory/x/tasks": "",
        },
    )
    group = find_group(system, "memory")
    assert group is not None and group.version == 1
    assert list(group.upwards()) == [f"{TOP}/memory/x", f"{TOP}/memory"]


def test_no_groups_at_all(tmp_path: Path) -> None:
    system = System(tmp_path)
    assert find_group(system, "memory") is None
    assert read_limits(system).memory_bytes is None


def test_nonsense_is_no_limit(tmp_path: Path) -> None:
    system = build(
        tmp_path,
        {
            "/proc/self/mountinfo": V2 + "broken line\n - \n",
            "/proc/self/cgroup": "0::/\nnonsense\n",
            f"{TOP}/memory.max": "plenty\n",
            f"{TOP}/cpu.max": "1 0\n",
        },
    )
    assert read_limits(system).memory_bytes is None
    assert read_limits(system).processors is None


def test_this_machine_has_readable_groups() -> None:
    limits = read_limits(System())
    assert limits.memory_bytes is None or limits.memory_bytes > 1 << 20
