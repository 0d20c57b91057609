"""Processors of several kinds, each a folder with a few files."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.provenance.host.processor import allowed_threads, read_processor, vector_bytes
from autotune.provenance.host.system import System
from tests.provenance.trees import CPU, arm, build, cache, desktop


def test_a_desktop(tmp_path: Path) -> None:
    processor = read_processor(build(tmp_path, desktop()))
    assert processor.name == "Intel(R) Core(TM) i3-7100 CPU @ 3.90GHz"
    assert (processor.sockets, processor.cores, processor.threads, processor.numa_nodes) == (1, 2, 4, 1)
    assert [(c.level, c.kind, c.bytes) for c in processor.caches] == [
        (1, "data", 32 << 10),
        (1, "instruction", 32 << 10),
        (2, "unified", 256 << 10),
        (3, "unified", 3 << 20),
    ]
    first = processor.cache(1)
    assert first is not None and first.kind == "data" and first.shared_by == 2
    assert processor.microcode == "0xf0"


def test_an_arm_machine_is_named_by_its_numbers(tmp_path: Path) -> None:
    processor = read_processor(build(tmp_path, arm()))
    assert processor.name == "Neoverse-V1"
    assert processor.caches == ()
    unknown = build(tmp_path / "b", arm() | {"/proc/cpuinfo": "CPU implementer: 0x61\nCPU part: 0x022\n"})
    assert read_processor(unknown).name == "ARM implementer 0x61 part 0x022"


def test_a_hybrid_processor_shows_its_smaller_caches(tmp_path: Path) -> None:
    files = desktop() | cache(3, 0, 1, "Data", "24K", "3") | cache(3, 2, 2, "Unified", "2048K", "2-3")
    processor = read_processor(build(tmp_path, files))
    assert [c.bytes for c in processor.caches if c.kind == "data"] == [24 << 10]
    second = processor.cache(2)
    assert second is not None and second.bytes == 256 << 10, "the smaller of the two kinds of core"


def test_an_empty_machine(tmp_path: Path) -> None:
    processor = read_processor(System(tmp_path))
    assert processor.name == "unknown"
    assert (processor.cores, processor.threads, processor.caches, processor.flags) == (None, None, (), ())


def test_this_machine() -> None:
    processor = read_processor(System())
    assert processor.name != "unknown"
    assert processor.threads is not None and processor.cores is not None
    assert 1 <= processor.cores <= processor.threads


def test_only_online_threads_are_allowed(tmp_path: Path) -> None:
    status = {"/proc/self/status": "Cpus_allowed_list:\t1-255\n"}
    assert allowed_threads(build(tmp_path, desktop() | status)) == (1, 2, 3)


def test_threads_without_a_list_of_those_online(tmp_path: Path) -> None:
    system = build(tmp_path, {f"{CPU}/cpu0/x": "", f"{CPU}/cpu1/x": "", f"{CPU}/cpufreq/boost": "1"})
    assert allowed_threads(system) == (0, 1)


@pytest.mark.parametrize(
    ("flags", "width"),
    [("fpu sse2 avx avx2 avx512f", 64), ("sse2 avx", 32), ("sse sse2", 16), ("fp asimd", 16), ("fp", None)],
)
def test_vector_width(tmp_path: Path, flags: str, width: int | None) -> None:
    system = build(tmp_path, {"/proc/cpuinfo": f"flags : {flags}\n"})
    assert vector_bytes(read_processor(system), system) == width


def test_scalable_vectors_ask_the_kernel(tmp_path: Path) -> None:
    system = build(tmp_path, arm())
    assert vector_bytes(read_processor(system), system) == 32
