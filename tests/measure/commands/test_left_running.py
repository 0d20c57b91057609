"""Processes that a run leaves behind are ended with it; those that were there before stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHILD = """
import os
import signal
import subprocess
from autotune.measure.commands.left_running import ended_with_run
from autotune.measure.libc import adopt_orphans

adopt_orphans()
standing = subprocess.Popen(["sh", "-c", "read go; sleep 1000 & echo $!; wait"], stdin=-1, stdout=-1)
with ended_with_run({grace}) as left:
    subprocess.run({run!r}, shell=True, check=True)
    standing.stdin.write(b"go\\n")
    standing.stdin.flush()
    its_own = int(standing.stdout.readline())
state = open(f"/proc/{{its_own}}/stat").read().rpartition(")")[2].split()[0]
print(*left, standing.poll(), "gone" if state in "ZX" else "there")
os.kill(its_own, signal.SIGKILL)
standing.wait()
"""
"""A process that was there before, and starts another one during the run."""


def left_by(run: str, folder: Path, grace: float = 0.0) -> str:
    script = folder / "child.py"
    script.write_text(CHILD.format(run=run, grace=grace))
    return subprocess.run([sys.executable, script], check=True, capture_output=True, text=True).stdout.strip()


def test_what_a_run_leaves_running_is_ended(tmp_path: Path) -> None:
    daemon = f"(sh -c 'echo $$ > {tmp_path}/pid; trap : TERM; sleep 1000 & wait; wait' &) >/dev/null 2>&1"
    began = f"until test -s {tmp_path}/pid; do :; done"
    assert left_by(f"{daemon}; {began}", tmp_path) == "sh None there"
    assert not Path("/proc", (tmp_path / "pid").read_text().strip()).exists()


def test_what_ends_by_itself_was_not_left(tmp_path: Path) -> None:
    assert left_by("true & exit", tmp_path) == "None there"


def test_what_a_run_leaves_running_may_put_things_in_order(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    server = f"(sh -c 'trap \"rm {lock}; exit\" TERM; touch {lock}; sleep 1000 & wait' &) >/dev/null 2>&1"
    assert left_by(f"{server}; until test -e {lock}; do :; done", tmp_path, grace=60.0) == "sh None there"
    assert not lock.exists()
