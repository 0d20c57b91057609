"""Searches in parallel, one of them killed in the middle, another resumed: their proposals still follow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.searching import finished, start, wait_for_readings, wait_until_gone, write_study


@pytest.mark.long
def test_proposals_follow_though_a_search_was_killed(tmp_path: Path) -> None:
    write_study(tmp_path)
    mark = f"derived-{os.getpid()}"
    names = [f"{mark}-{number}" for number in range(3)]
    searches = [start(tmp_path, 100_000, name, strategy="evolution", ledger=name) for name in names]
    for name, search in zip(names, searches, strict=True):
        wait_for_readings(search, tmp_path / name, 24)
    killed, *others = searches
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert wait_until_gone(names[0]) == []
    for name, search in zip(names[1:], others, strict=True):
        wait_for_readings(search, tmp_path / name, 24)
        os.kill(search.pid, signal.SIGINT)
    for search in others:
        _, err = search.communicate(timeout=120)
        assert search.returncode == 130, err.decode()
    resumed = start(tmp_path, len(finished(tmp_path)) + 15, "resumed", strategy="evolution")
    _, err = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, err.decode()

    command = [sys.executable, "-m", "autotune", "derive", "--store", "study.db", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["follows"] and found["sessions"] == 4
    assert found["compared"] == found["trials"] >= 45
