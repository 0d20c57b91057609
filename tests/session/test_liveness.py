"""Whether a session's process lives, seen from real processes."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from autotune.session.liveness import identity, lives
from autotune.store.records import SessionRecord


def session(pid: int | None = None, host: str = "", **settings: object) -> SessionRecord:
    number, name = os.getpid() if pid is None else pid, host or socket.gethostname()
    return SessionRecord(1, 1, settings, "", number, name, 0.0, None, "")


def test_this_process_lives() -> None:
    assert lives(session(process=identity())) is True


def test_a_later_process_of_the_same_number_is_another() -> None:
    own = identity()
    assert isinstance(own["started"], float)
    assert lives(session(process=own | {"started": own["started"] - 5.0})) is False


def test_a_process_that_is_gone_and_one_that_nobody_has_waited_for() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert lives(session(child.pid, process=identity())) is False
    child.wait()
    assert lives(session(child.pid, process=identity())) is False


@pytest.mark.parametrize("name", ["boot", "numbers"])
def test_of_another_container_or_machine_of_this_name_nothing_is_said(name: str) -> None:
    assert lives(session(process=identity() | {name: "another"})) is None
    assert lives(session(2**22 + 1, process=identity() | {name: "another"})) is None
    assert lives(session(host="another", process=identity())) is None


def test_what_an_earlier_version_recorded() -> None:
    began = psutil.Process().create_time()
    assert lives(session(process=began)) is True
    assert lives(session(process=began - 5.0)) is False
    assert lives(session()) is None
    assert lives(session(2**22 + 1)) is False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells it")
def test_the_start_is_not_told_by_the_clock_that_can_be_set() -> None:
    assert identity()["started"] != pytest.approx(psutil.Process().create_time(), abs=1e6)
