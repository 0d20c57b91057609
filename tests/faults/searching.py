"""A search in a process of its own, and what can be seen of it from outside."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from tests.processes import living_with

SPACE = """
autotune: 1
name: killed
objective: objective.py:measure
knobs:
  a: {range: [0, 63], default: 0}
  b: {range: [0, 63], default: 0}
measure: {min_readings: 3, max_readings: 3, finalists: FINALISTS, timeout: 20}
"""

OBJECTIVE = """
import os

def measure(a, b):
    # One line a call, from whatever process: what was really measured.
    with open(os.environ["LEDGER"], "a") as ledger:
        ledger.write(f"{a} {b}\\n")
    return 1.0 + (a - 20) ** 2 + (b - 40) ** 2
"""

MARK = "AUTOTUNE_TEST_MARK"


def start(
    folder: Path, trials: int, mark: str, strategy: str = "random", ledger: str = "ledger"
) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "LEDGER": str(folder / ledger), MARK: mark}
    command = [sys.executable, "-m", "autotune", "search", "space.yaml", "--strategy", strategy]
    command += ["--trials", str(trials), "--store", "study.db", "--json"]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finished(folder: Path) -> dict[str, tuple[str, float | None]]:
    """Configuration -> (status, time) of every finished trial, as another process sees it."""
    if not (folder / "study.db").exists():
        return {}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "autotune",
            "export",
            "--to",
            "all.json",
            "--study",
            "killed",
            "--store",
            "study.db",
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        assert "there is no study" in done.stderr, done.stderr  # killed before it stood
        return {}
    rows = json.loads((folder / "all.json").read_text())
    return {
        f"{row['knob.a']} {row['knob.b']}": (row["status"], row.get("metric.time"))
        for row in rows
        if row["status"] not in ("waiting", "running", "lost")
    }


def wait_until_gone(mark: str) -> list[int]:
    """The kernel tells orphans of their parent's death at once, but they need a moment to die."""
    deadline = time.monotonic() + 60
    while (left := living_with(f"{MARK}={mark}")) and time.monotonic() < deadline:
        os.sched_yield()
    return left


def write_study(folder: Path, finalists: int = 0) -> None:
    (folder / "space.yaml").write_text(SPACE.replace("FINALISTS", str(finalists)))
    (folder / "objective.py").write_text(OBJECTIVE)


def wait_for_readings(search: subprocess.Popen[bytes], ledger: Path, readings: int) -> None:
    """Return when so many new lines stand in the ledger, or the search has ended."""
    begin = _lines(ledger)
    while search.poll() is None and _lines(ledger) - begin < readings:
        with contextlib.suppress(subprocess.TimeoutExpired):
            search.wait(timeout=0.005)


def _lines(ledger: Path) -> int:
    return len(ledger.read_text().splitlines()) if ledger.exists() else 0


def integrity(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "study.db")) as database, database:
        return str(database.execute("PRAGMA integrity_check").fetchone()[0])
