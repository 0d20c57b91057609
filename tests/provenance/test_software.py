"""Packages, compilers and the interpreter."""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import time
from pathlib import Path

import pytest

from autotune.provenance.host.system import System
from autotune.provenance.software import (
    VersionQueries,
    read_operating_system,
    read_packages,
    read_python,
    version_line,
)
from tests.provenance.trees import build, desktop


def test_packages_are_those_of_importlib() -> None:
    expected = {
        re.sub(r"[-_.]+", "-", found.name).lower(): found.version
        for found in importlib.metadata.distributions()
    }
    assert read_packages() == dict(sorted(expected.items()))


def test_every_kind_of_entry(tmp_path: Path) -> None:
    for name in (
        "Foo_Bar-1.2.dist-info",
        "baz-2.0-py3.11.egg-info",
        "old.egg-info",
        "broken.egg-info",
        "x.py",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / "old.egg-info" / "PKG-INFO").write_text("Name: old\nVersion: 0.3\n")
    later = tmp_path / "later"
    later.mkdir()
    (later / "foo_bar-9.dist-info").mkdir()
    found = read_packages([str(tmp_path), str(later), str(tmp_path / "missing")])
    assert found == {"foo-bar": "1.2", "baz": "2.0", "old": "0.3"}, "the first on the path counts"


def test_compilers_answer_with_their_version() -> None:
    versions = VersionQueries.start(("gcc", "no-such-compiler")).result()
    assert list(versions) == ["gcc"]
    first = subprocess.run(
        ["gcc", "--version"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[0]
    assert versions["gcc"] == first


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_compiler_that_fails_or_hangs_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "hangs", "exec sleep 60")
    script(tmp_path / "waits", "sleep 60\necho waits 1.0")  # killed alone it leaves the sleep, with the pipe
    script(tmp_path / "fails", "echo no licence; exit 1")
    script(tmp_path / "talks", "echo talks 1.0; echo more")
    (tmp_path / "binary").write_bytes(b"\x7fELF nonsense")
    (tmp_path / "binary").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    start = time.monotonic()
    queries = VersionQueries.start(("hangs", "waits", "fails", "talks", "binary"), seconds=0.5)
    for program in ("fails", "talks"):
        queries.running[program].wait()  # however slow the machine is
    versions = queries.result()
    assert versions == {"hangs": "unknown", "waits": "unknown", "fails": "unknown", "talks": "talks 1.0"}
    assert time.monotonic() - start < 30, "the one that hangs was killed, not waited for"


def test_the_line_that_says_the_version() -> None:
    nvcc = "nvcc: NVIDIA (R) Cuda compiler driver\nBuilt\nCuda compilation tools, release 13.0, V13.0.88\n"
    assert version_line(nvcc) == "Cuda compilation tools, release 13.0, V13.0.88"
    assert version_line("\n\n gcc 12\nmore") == "gcc 12"
    assert version_line("") == "unknown"


def test_the_interpreter() -> None:
    python = read_python()
    assert python.version.startswith("3.")
    assert re.fullmatch("[0-9a-f]{16}", python.executable or "")
    assert "/" not in (python.executable or "")


def test_operating_systems(tmp_path: Path) -> None:
    system = read_operating_system(build(tmp_path, desktop()))
    assert system.kernel == "6.1.0-18-amd64"
    assert system.distribution == "Debian GNU/Linux 12 (bookworm)"
    nothing = read_operating_system(System(tmp_path / "empty"))
    assert (nothing.kernel, nothing.distribution, nothing.libc) == (None, None, None)
    assert read_operating_system(System()).kernel
