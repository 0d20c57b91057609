"""Memory caps: made, entered, counted, removed, and swept after a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from autotune.measure.workers.limits import GroupCap, ProcessCap, make_cap, sweep_groups

MIB = 1 << 20
EAT = "eaten = []\nwhile True: eaten.append(bytearray(b'x' * 1_000_000))"


def group_cap() -> GroupCap:
    cap = make_cap(64 * MIB, "test")
    if not isinstance(cap, GroupCap):
        pytest.skip("this process may not make control groups with a memory limit")
    return cap


def python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


def entering(cap: GroupCap | ProcessCap) -> str:
    if isinstance(cap, GroupCap):
        make = f"GroupCap(Path({str(cap.folder)!r}), {cap.version}, {cap.bytes})"
    else:
        make = f"ProcessCap({cap.bytes})"
    return (
        "from pathlib import Path\nfrom autotune.measure.workers.limits import GroupCap, ProcessCap\n"
        f"{make}.enter()\n"
    )


def test_a_group_kills_at_its_limit_and_counts_it() -> None:
    cap = group_cap()
    assert cap.kills() == 0
    done = python(entering(cap) + EAT)
    assert done.returncode == -9
    assert cap.kills() == 1
    assert cap.remove() and not cap.folder.exists()
    assert cap.remove(), "removing it again is no error"


def test_a_group_counts_no_other_death() -> None:
    cap = group_cap()
    assert python(entering(cap) + "import os; os.kill(os.getpid(), 9)").returncode == -9
    assert cap.kills() == 0 and cap.remove()


def test_two_workers_of_one_role_have_a_group_each() -> None:
    first, second = group_cap(), make_cap(64 * MIB, "test")
    assert first.remove()
    assert isinstance(second, GroupCap) and second.folder.exists(), "it is not the one that was removed"
    assert second.remove()


def test_a_limit_of_the_process_raises() -> None:
    done = python(
        entering(ProcessCap(256 * MIB)) + f"try:\n    exec({EAT!r})\nexcept MemoryError: print('caught')"
    )
    assert done.stdout == "caught\n", done.stderr


def test_the_group_of_a_dead_session_is_swept() -> None:
    group_cap().remove()
    code = "from autotune.measure.workers.limits import make_cap\nprint(make_cap(1 << 26, 'left').folder)"
    folder = Path(python(code).stdout.strip())
    own = group_cap()
    assert folder.exists()
    sweep_groups()
    assert not folder.exists()
    assert own.folder.exists(), "a living session's group stays"
    own.remove()
