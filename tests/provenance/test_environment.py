"""The environment as a whole: its hash, the machine's key, and what differs."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.provenance.document import Json, differences, digest, plain
from autotune.provenance.environment import Environment, State, capture, compare, machine_key, nominal_memory
from autotune.provenance.host.gpus import Gpu, Gpus
from autotune.provenance.host.system import System
from tests.provenance.trees import CPU, arm, build, desktop


def described(root: Path, files: dict[str, str], **variables: str) -> Environment:
    return capture(variables=variables, system=build(root, files))


def test_this_machine_twice_is_the_same_environment() -> None:
    first, second = capture(), capture()
    assert compare(first, second) == ()
    assert first.hash == second.hash
    assert first.machine_key == second.machine_key
    assert len(first.hash) == 16 and len(first.machine_key) == 12
    assert first.packages["numpy"]
    assert first.compilers.get("gcc", "gcc")


def test_it_is_json_and_comes_back_as_the_same_document(tmp_path: Path) -> None:
    environment = described(tmp_path, desktop(), OMP_NUM_THREADS="2")
    document = json.loads(json.dumps(environment.to_document()))
    assert compare(environment, document) == ()
    assert document["variables"] == {"OMP_NUM_THREADS": "2"}
    assert digest({name: part for name, part in document.items() if name != "state"}) == environment.hash


def test_the_state_is_in_no_hash(tmp_path: Path) -> None:
    environment = described(tmp_path, desktop())
    later = dataclasses.replace(environment, state=State(at=0.0, pressure={"load1": 99.0}))
    assert later.hash == environment.hash
    assert later.to_document() != environment.to_document()
    assert compare(environment, later) == ()


def test_what_differs_is_said(tmp_path: Path) -> None:
    before = described(tmp_path / "a", desktop(), CUDA_VISIBLE_DEVICES="0")
    faster = {f"{CPU}/cpu0/cpufreq/scaling_governor": "performance\n", "/proc/sys/kernel/hostname": "other\n"}
    after = described(tmp_path / "b", desktop() | faster, OMP_NUM_THREADS="4")
    after = dataclasses.replace(after, packages={**after.packages, "numpy": "9"})
    found = {difference.path: (difference.before, difference.after) for difference in compare(before, after)}
    assert found == {
        "machine.hostname": ("desk", "other"),
        "machine.tuning.governor": ("powersave", "performance"),
        "packages.numpy": (before.packages["numpy"], "9"),
        "variables.CUDA_VISIBLE_DEVICES": ("0", None),
        "variables.OMP_NUM_THREADS": (None, "4"),
    }
    assert "packages.numpy: " in str(compare(before, after)[2])
    assert before.hash != after.hash
    assert before.machine_key == after.machine_key, "the same hardware under another name and governor"


def test_variables_of_autotune_itself_make_no_other_environment(tmp_path: Path) -> None:
    """Where the store lies was said to be a difference, also of what an earlier version had recorded."""
    one, other = (described(tmp_path, desktop(), AUTOTUNE_STORE=store) for store in ("a.db", "b.db"))
    assert one.hash == other.hash
    recorded = {**one.to_document(), "variables": {"AUTOTUNE_STORE": "a.db", "OMP_NUM_THREADS": "8"}}
    assert [difference.path for difference in compare(recorded, other)] == ["variables.OMP_NUM_THREADS"]


def test_the_key_is_of_the_hardware(tmp_path: Path) -> None:
    key = described(tmp_path / "a", desktop()).machine_key
    same = {
        "/proc/meminfo": "MemTotal: 16100000 kB\n",  # a newer kernel keeps more for itself
        "/proc/sys/kernel/osrelease": "6.9.9\n",
        "/proc/self/status": "Cpus_allowed_list:\t2\n",
        "/sys/fs/cgroup/memory.max": "1000000\n",
        "/proc/loadavg": "50 50 50 9/9 9\n",
    }
    assert described(tmp_path / "b", desktop() | same).machine_key == key
    for number, other in enumerate(
        [
            {"/proc/meminfo": "MemTotal: 32600000 kB\n"},
            {f"{CPU}/online": "0-1\n"},
            {f"{CPU}/cpu0/cache/index3/size": "2048K\n"},
            {"/proc/cpuinfo": desktop()["/proc/cpuinfo"].replace("158", "165")},
        ]
    ):
        assert described(tmp_path / f"c{number}", desktop() | other).machine_key != key, other


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({"name": "another"}, False),
        ({"vendor": "another"}, False),
        ({"family": "99"}, False),
        ({"model": "99"}, False),
        ({"sockets": 2}, False),
        ({"cores": 99}, False),
        ({"threads": 99}, False),
        ({"caches": ()}, False),
        ({"stepping": "99"}, True),
        ({"microcode": "0xff"}, True),
        ({"flags": ()}, True),
        ({"numa_nodes": 2}, True),
    ],
)
def test_what_makes_it_another_processor(tmp_path: Path, other: dict[str, object], same: bool) -> None:
    """Of what may change with its firmware or a setting, nothing does."""
    environment = described(tmp_path, desktop())
    processor = dataclasses.replace(environment.machine.processor, **other)  # type: ignore[arg-type]
    changed = dataclasses.replace(environment.machine, processor=processor)
    assert (machine_key(changed, environment.gpus) == environment.machine_key) is same
    assert dataclasses.replace(environment, machine=changed).hash != environment.hash


def test_another_architecture_or_kind_of_cache_is_another_machine(tmp_path: Path) -> None:
    environment = described(tmp_path, desktop())
    machine, processor = environment.machine, environment.machine.processor
    first, *rest = processor.caches
    assert machine_key(dataclasses.replace(machine, architecture="other"), environment.gpus) != (
        environment.machine_key
    )
    for other in ({"kind": "another"}, {"level": 9}, {"bytes": 1}):
        caches = (dataclasses.replace(first, **other), *rest)  # type: ignore[arg-type]
        changed = dataclasses.replace(machine, processor=dataclasses.replace(processor, caches=caches))
        assert machine_key(changed, environment.gpus) != environment.machine_key, other


def test_the_state_of_the_machine_is_captured(tmp_path: Path) -> None:
    system = build(tmp_path, desktop() | {"/proc/loadavg": "0.5 0.4 0.3 2/95 8595\n"})
    environment = capture(variables={}, system=system)
    assert environment.state.pressure["load1"] == 0.5 and environment.state.at > 0
    assert environment.state.memory_available_bytes == 9_000_000 << 10
    assert environment.code is None, "no folder was named"


def test_gpus_are_a_part_of_the_machine(tmp_path: Path) -> None:
    environment = described(tmp_path, desktop())
    gpu = Gpu(0, "NVIDIA H200", "GPU-1", *[None] * 11)  # type: ignore[arg-type]
    with_gpu = dataclasses.replace(environment, gpus=Gpus(devices=(gpu,)))
    swapped = dataclasses.replace(gpu, uuid="GPU-2")
    another = dataclasses.replace(environment, gpus=Gpus(devices=(swapped,)))
    assert with_gpu.machine_key != environment.machine_key
    assert with_gpu.machine_key == another.machine_key, "a card of the same kind"
    assert with_gpu.hash != another.hash


def test_an_empty_machine_is_captured(tmp_path: Path) -> None:
    environment = capture(variables={}, system=System(tmp_path))
    assert environment.machine.processor.name == "unknown"
    assert json.dumps(environment.to_document())


def test_an_arm_machine_is_captured(tmp_path: Path) -> None:
    environment = described(tmp_path, arm())
    assert environment.container.kind == "podman"
    assert json.dumps(environment.to_document())


def test_secrets_are_in_no_document(tmp_path: Path) -> None:
    environment = described(
        tmp_path,
        desktop(),
        AUTOTUNE_STORE="postgresql://me:hunter22@db/tune",
        NVIDIA_API_KEY="nvapi-hunter22",
        PYTHONSTARTUP="https://x/?token=hunter22",
    )
    assert "hunter22" not in json.dumps(environment.to_document())


def test_variables_that_are_no_text(tmp_path: Path) -> None:
    environment = described(tmp_path, desktop(), LD_LIBRARY_PATH="/caf\udce9")
    assert environment.to_document()["variables"] == {"LD_LIBRARY_PATH": "/caf?"}
    assert environment.hash


def test_importing_loads_nothing_heavy() -> None:
    code = """
import sys
import autotune.provenance.environment, autotune.provenance.code.frozen
import autotune.provenance.host.noise, autotune.provenance.probe
heavy = {"pynvml", "numpy", "psutil", "ruamel.yaml", "torch"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("kib", "gib"),
    [
        (16303428, 16),
        (16100000, 16),
        (24684092, 24),
        (65000000, 64),
        (131900000, 128),
        (197000000, 192),
        (1 << 24, 16),
    ],
)
def test_nominal_memory(kib: int, gib: int) -> None:
    assert nominal_memory(kib << 10) == gib << 30


@given(st.one_of(st.none(), st.integers(0, 1 << 50)))
def test_nominal_memory_is_never_less(size: int | None) -> None:
    nominal = nominal_memory(size)
    assert nominal is None if size is None else nominal is not None and size <= nominal <= size * 1.125 + 1


documents = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(documents)
def test_nothing_differs_from_itself(document: Json) -> None:
    assert list(differences(document, document)) == []


@given(
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)),
    st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)),
)
def test_differences_are_exactly_those(before: dict[str, int], after: dict[str, int]) -> None:
    found = {d.path: (d.before, d.after) for d in differences(plain(before), plain(after))}
    names = {*before, *after}
    assert found == {n: (before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)}


def test_kinds_are_told_apart() -> None:
    before, after = {"a": True, "b": [1, 2], "c": [{}, {"d": 2}]}, {"a": 1, "b": [1], "c": [{}]}
    assert [str(d) for d in differences(before, after)] == [
        "a: true -> 1",
        "b: [1, 2] -> [1]",
        'c.1: {"d": 2} -> nothing',
    ]
