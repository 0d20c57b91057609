"""What works here: tried for real, and failing for real where it is made to fail."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from autotune.provenance import probe
from autotune.provenance.host.cgroup import Group, find_group
from autotune.provenance.host.system import System
from autotune.provenance.probe import Capability


@pytest.fixture(scope="module")
def capabilities() -> dict[str, Capability]:
    return {capability.name: capability for capability in probe.probe()}


def test_everything_is_covered(capabilities: dict[str, Capability]) -> None:
    asked = {"gcc", "make", "git", "python", "memory cgroup", "RLIMIT_AS", "core pinning", "perf counters"}
    asked |= {"torch", "ray", "optuna", "skopt", "pyarrow", "postgresql"}
    assert asked <= set(capabilities)
    assert len(capabilities) == len(probe.PROBES)


def test_what_is_missing_says_for_what_and_what_to_do(capabilities: dict[str, Capability]) -> None:
    for capability in capabilities.values():
        assert capability.detail and capability.needed_for, capability
        assert capability.available or capability.remedy, capability


def test_what_these_tests_need_is_found(capabilities: dict[str, Capability]) -> None:
    assert capabilities["python"].available
    assert capabilities["gcc"].available == (shutil.which("gcc") is not None)
    assert capabilities["optuna"].available
    assert capabilities["sqlite"].available


def test_nothing_is_left_behind(capabilities: dict[str, Capability]) -> None:
    affinity = os.sched_getaffinity(0)
    probe.core_pinning()
    assert os.sched_getaffinity(0) == affinity
    group = find_group(System(), "memory")
    for folder in group.upwards() if group else ():
        assert not Path(folder, f"autotune-probe-{os.getpid()}").exists()


def fake(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    found = probe.gcc()
    assert (found.available, found.detail) == (False, "no C compiler on PATH: install gcc")
    assert probe.tool("make", "x", "apt install make") == Capability(
        "make", False, "not on PATH", "x", "apt install make"
    )


def test_a_compiler_of_several_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "cached", 'exec "$@"')
    monkeypatch.setenv("CC", f"{tmp_path}/cached gcc")
    assert probe.gcc().available


def test_a_compiler_that_cannot_compile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "gcc", "echo 'stdlib.h: No such file' >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "gcc")
    found = probe.gcc()
    assert not found.available
    assert "stdlib.h: No such file" in found.detail


def test_a_compiler_whose_output_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "gcc", 'for last; do :; done; echo nonsense > "$last"')
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "gcc")
    found = probe.gcc()
    assert not found.available
    assert "cannot be loaded" in found.detail and "TMPDIR" in found.remedy


def test_a_tool_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(tmp_path, "nvcc", "echo 'no licence' >&2; exit 3")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = probe.tool("nvcc", "x", "y")
    assert not found.available
    assert "exit code 3: no licence" in found.detail


def test_without_a_folder_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe.tempfile, "tempdir", str(tmp_path / "missing"))
    found = {capability.name: capability for capability in probe.probe()}
    assert not found["sqlite"].available
    assert "No such file or directory" in found["sqlite"].detail


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_without_the_controller(tmp_path: Path, version: int) -> None:
    # An ordinary folder takes the child but offers no limit in it, as an undelegated group does.
    why = probe._try_group(Group(version, str(tmp_path), str(tmp_path)), str(tmp_path))
    assert why == "the memory controller is not passed on to its children"
    assert list(tmp_path.iterdir()) == [], "the child is removed again"


def test_a_group_that_is_not_there(tmp_path: Path) -> None:
    assert probe._try_group(Group(2, "/x", "/x"), str(tmp_path / "no")) == "No such file or directory"


def test_packages_are_found_without_importing_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "heavy_one.py").write_text("raise SystemExit('imported')\n")
    (tmp_path / "heavy_one-3.1.dist-info").mkdir()
    (tmp_path / "heavy_one-3.1.dist-info" / "METADATA").write_text("Name: heavy-one\nVersion: 3.1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert probe.package("heavy_one", "heavy-one", "x", "y") == Capability("heavy_one", True, "3.1", "x")
    assert not probe.package("no_such_package_at_all", "no", "x", "y").available
    assert not probe.package("json.tool.deeper", "no", "x", "y").available


def test_the_version_of_the_postgresql_client_is_said_to_be_that() -> None:
    pytest.importorskip("psycopg")
    assert probe.postgresql().detail.startswith("psycopg 3")
