"""Facts for the rules of a space: of this machine, of others, with what a container allows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.provenance.device import ask_driver, cpu_facts, device_facts, query_gpus
from autotune.provenance.host.system import System
from autotune.provenance.profiles import FACTS
from autotune.space.configuration import FrozenMap
from tests.provenance.libraries import compile_library
from tests.provenance.trees import CPU, arm, build, desktop


def test_a_desktop(tmp_path: Path) -> None:
    facts = cpu_facts(build(tmp_path, desktop()))
    assert dict(facts) == {
        "kind": "cpu",
        "name": "Intel(R) Core(TM) i3-7100 CPU @ 3.90GHz",
        "cores": 2,
        "threads": 4,
        "l1_bytes": 32 << 10,
        "l2_bytes": 256 << 10,
        "l3_bytes": 3 << 20,
        "cache_line_bytes": 64,
        "memory_bytes": 16303428 << 10,
        "vector_bytes": 32,
        "names": ("cpu",),
    }


def test_affinity_and_quota_limit_the_cores(tmp_path: Path) -> None:
    pinned = desktop() | {"/proc/self/status": "Cpus_allowed_list:\t1,3\n"}
    facts = cpu_facts(build(tmp_path / "a", pinned))
    assert (facts["cores"], facts["threads"]) == (1, 2), "two threads of one core"
    quota = desktop() | {"/sys/fs/cgroup/cpu.max": "250000 100000\n"}
    facts = cpu_facts(build(tmp_path / "b", quota))
    assert (facts["cores"], facts["threads"]) == (2, 3)
    tiny = desktop() | {"/sys/fs/cgroup/cpu.max": "10000 100000\n"}
    facts = cpu_facts(build(tmp_path / "c", tiny))
    assert (facts["cores"], facts["threads"]) == (1, 1)


def test_what_is_unknown_is_assumed_and_named(tmp_path: Path) -> None:
    facts = cpu_facts(build(tmp_path, arm()))
    assert facts["memory_bytes"] == 2 << 30, "the container's limit"
    assert facts["vector_bytes"] == 32
    assert facts["assumed"] == ("l1_bytes", "l2_bytes", "l3_bytes", "cache_line_bytes")
    generic = device_facts("generic-cpu")
    assert all(facts[name] == generic[name] for name in ("l1_bytes", "l2_bytes", "l3_bytes"))


def test_a_machine_without_a_third_level_says_zero(tmp_path: Path) -> None:
    files = {name: text for name, text in desktop().items() if "index3" not in name}
    facts = cpu_facts(build(tmp_path, files))
    assert facts["l3_bytes"] == 0
    assert "assumed" not in facts


def test_an_empty_machine_still_has_every_fact(tmp_path: Path) -> None:
    facts = cpu_facts(System(tmp_path))
    assert {"cores", "threads", "l1_bytes", "l2_bytes", "l3_bytes", "memory_bytes"} <= set(facts)
    assert facts["cores"] == facts["threads"] == 1
    assert "memory_bytes" in facts["assumed"]  # type: ignore[operator]


def test_offline_and_strange_processors(tmp_path: Path) -> None:
    strange = desktop() | {f"{CPU}/online": "nonsense\n"}
    assert cpu_facts(build(tmp_path, strange))["threads"] == 4


def test_this_machine() -> None:
    facts = device_facts()
    assert isinstance(facts, FrozenMap)
    assert set(facts) <= set(FACTS), "every fact is documented"
    assert facts["kind"] == "cpu"
    assert 1 <= facts["cores"] <= facts["threads"] <= len(os.sched_getaffinity(0))  # type: ignore[operator]
    assert 4096 <= facts["l1_bytes"] <= facts["memory_bytes"]  # type: ignore[operator]
    assert facts["names"] == ("cpu", *(f"cuda:{index}" for index in range(len(query_gpus()))))
    assert device_facts("cpu")["cores"] == facts["cores"]


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no device cuda:97"):
        device_facts("cuda:97")
    with pytest.raises(InputError, match="no device profile"):
        device_facts("cuda:²")


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CUDA driver with two GPUs, found by the real loader."""
    compile_library("fake_cuda.c", tmp_path, "libcuda.so.1")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))


@pytest.mark.usefixtures("driver")
def test_the_driver_is_asked_in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ask_driver()
    assert [gpu["name"] for gpu in found] == ["Big", "Small"]
    assert found[0]["uuid"] == "GPU-28282828-2828-2828-2828-282828282828" != found[1]["uuid"]
    monkeypatch.setattr("autotune.provenance.device.query_gpus", lambda: found)
    assert device_facts("cuda:0") == FrozenMap(
        {
            "kind": "gpu",
            "name": "Big",
            "memory_bytes": 150754820096,
            "max_threads": 1024,
            "warp_size": 32,
            "registers": 65536,
            "sm_count": 132,
            "l2_bytes": 52428800,
            "sm_threads": 2048,
            "sm_shared_memory_bytes": 233472,
            "sm_registers": 65536,
            "shared_memory_bytes": 232448,
            "compute_capability": 9.0,
            "names": ("cpu", "cuda:0", "cuda:1"),
            "gpu_name": "Big",
            "gpu_memory_bytes": 150754820096,
            "gpu_l2_bytes": 52428800,
        }
    )
    small = device_facts("cuda:1")
    assert small["compute_capability"] == 8.6
    assert "shared_memory_bytes" not in small, "a fact that the driver refuses is absent, not zero"
    both = device_facts()
    assert (
        both["kind"] == "cpu"
        and both["warp_size"] == 32
        and both["l1_bytes"] == device_facts("cpu")["l1_bytes"]
    )
    assert both["memory_bytes"] != both["gpu_memory_bytes"] == 150754820096
    assert set(both) <= set(FACTS)


def test_no_driver_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libcuda.so.1").write_text("not a library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert ask_driver() == ()
