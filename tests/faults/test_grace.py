"""A program that has to end is asked before it is killed, so that it can put things in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import autotune
from autotune.space.reading.reader import read_spec
from autotune.status import Status
from tests.faults.searching import MARK, wait_until_gone

SPACE = """
autotune: 1
name: server
command: {run: [sh, -c, "trap 'rm lock; exit' TERM; touch lock; sleep {x} & wait"], grace: GRACE}
metrics: {time: {goal: minimize, unit: s}}
knobs: {x: {values: [1000, 2000], default: 1000}}
measure: {timeout: 1, finalists: 0}
"""
"""The lock stands for a port, a container or a job elsewhere: a program that is killed does not free it."""


def space_in(folder: Path, grace: str) -> Path:
    file = folder / "space.yaml"
    file.write_text(SPACE.replace("GRACE", grace))
    return file


@pytest.mark.parametrize("grace", ["60s", "0"])
def test_at_its_limit(tmp_path: Path, grace: str) -> None:
    result = autotune.search(read_spec(space_in(tmp_path, grace)), trials=1, store=tmp_path / "study.db")
    assert [trial.status for trial in result.trials] == [Status.TIMEOUT]
    assert (tmp_path / "lock").exists() == (grace == "0")


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_when_the_search_is_ended(tmp_path: Path, by: signal.Signals) -> None:
    space, mark = space_in(tmp_path, "60s"), f"grace-{by}-{os.getpid()}"
    space.write_text(space.read_text().replace("timeout: 1,", "timeout: 300,"))
    command = [sys.executable, "-m", "autotune", "search", "space.yaml", "--store", "study.db", "--json"]
    environment = {**os.environ, MARK: mark}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=-1, stderr=-1) as search:
        while not (tmp_path / "lock").exists():
            assert search.poll() is None, search.stderr and search.stderr.read().decode()
        for _ in range(1 if by == signal.SIGKILL else 2):
            search.send_signal(by)
        search.communicate()
    assert wait_until_gone(mark) == []
    assert not (tmp_path / "lock").exists()
