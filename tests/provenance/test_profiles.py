"""Device profiles: those shipped, and a user's own with everything that can be wrong with it."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from autotune.errors import InputError
from autotune.provenance.device import device_facts
from autotune.provenance.profiles import FACTS, SHIPPED

NAMES = sorted(YAML(typ="safe").load(SHIPPED))


def problems(path: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        device_facts(path)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("name", NAMES)
def test_each_shipped_profile_is_valid(name: str) -> None:
    facts = device_facts(name)
    assert set(facts) <= set(FACTS)
    wanted = {"warp_size", "shared_memory_bytes", "sm_count", "gpu_memory_bytes"}
    assert wanted <= set(facts) if facts["kind"] == "gpu" else "l1_bytes" in facts


def test_the_promised_profiles_exist() -> None:
    promised = {"a100", "h100", "h200", "rtx3090", "titanrtx", "mi250x", "w7800", "generic-cpu"}
    assert promised <= set(NAMES)


def test_facts_that_follow_from_the_compute_capability() -> None:
    # CUDA C++ programming guide, "Technical specifications per compute capability": KiB a block.
    shared = {7.5: 64, 8.0: 163, 8.6: 99, 9.0: 227}
    for name in NAMES:
        facts = device_facts(name)
        if "compute_capability" in facts:
            assert facts["shared_memory_bytes"] == shared[facts["compute_capability"]] * 1024  # type: ignore[index]
            assert (facts["warp_size"], facts["registers"], facts["max_threads"]) == (32, 65536, 1024)


def test_a_users_profile(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("kind: gpu\nname: Mine\nmemory_bytes: 0x1_0000\nwarp_size: 32\ncompute_capability: 12\n")
    facts = device_facts(path)
    assert facts["memory_bytes"] == facts["gpu_memory_bytes"] == 65536
    assert facts["compute_capability"] == 12.0
    assert facts["names"] == ("cpu", "cuda:0")
    assert {type(value) for value in facts.values()} <= {str, int, float, tuple}, "no types of the reader"
    assert pickle.loads(pickle.dumps(facts)) == facts


def test_json_does_as_well(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"kind": "cpu", "cores": 8, "names": ["cpu", "fpga"]}, indent="\t"))
    assert device_facts(path)["names"] == ("cpu", "fpga")


def test_a_profile_written_from_this_machines_facts_is_read_back(tmp_path: Path) -> None:
    from autotune.space.configuration import plain

    path = tmp_path / "here.json"
    facts = device_facts()
    path.write_text(json.dumps(plain(facts)))
    assert device_facts(path) == facts


def test_every_problem_is_reported_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(
        "kind: tpu\nwarpsize: 32\nsm_count: 0\ncores: true\n7: 8\nnames: [cpu, cpu]\nl3_bytes: 0\n"
    )
    found = problems(path)
    assert len(found) == 6
    assert found[0].startswith(f"{path}:1:1: kind") and "cpu or gpu" in found[0]
    assert f"{path}:2:1: no device has a fact 'warpsize'" in found[1] and "'warp_size'" in found[1]
    assert "sm_count" in found[2] and "cannot be 0" in found[2]
    assert "cores" in found[3] and "True" in found[3]
    assert "7" in found[4]
    assert "names" in found[5]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not a device profile"),
        ("[1, 2]", "not a device profile"),
        ("kind: cpu\nkind: gpu\n", "kind"),
        ("kind: [cpu\n", "bad.yaml:2:1"),
        ("cores: 4\n", "'kind' is missing"),
        ("kind: !!python/object:os.system {}\n", "kind"),
        ("a: b: c\n", "bad.yaml:1:5"),
        ("[" * 1000, "nested too deeply"),
    ],
)
def test_broken_files(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    assert says in "\n".join(problems(path))


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"kind: \xff\xfe\n")
    assert "cannot be read" in problems(path)[0]


def test_an_unknown_profile_names_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        device_facts("h1000")
    assert "'h100'" in str(caught.value)
    with pytest.raises(InputError, match="may be given as well"):
        device_facts("no/such/file")
    with pytest.raises(InputError, match="no device profile"):
        device_facts("a" * 300)
