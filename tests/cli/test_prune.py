"""What may be deleted, in words."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from autotune.cli.prune import command as prune
from autotune.session.searches import VERIFIED
from tests.cli.calling import call
from tests.interop.exported import make_mixed


def test_where_there_is_no_replay_it_is_said(tmp_path: Path) -> None:
    """It had been said that something refers to all that the store has."""
    store = tmp_path / "mixed.db"
    make_mixed(store).close()
    for more in ([], ["--yes"]):
        done = call(prune, "--replays", "--store", store, *more)
        assert done.return_value == 0
        assert done.stdout == "the store has no replays or verifications\n"


def test_what_a_verification_had_read_that_was_killed_can_be_deleted(tmp_path: Path) -> None:
    """Its session was never ended, so that the store was said to have none; one that goes on stays."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    with make_mixed(tmp_path / "mixed.db") as store:
        study, host = store.study(), socket.gethostname()
        for pid in (child.pid, os.getpid()):
            store.open_session(study.id, {VERIFIED: ["trial 1"]}, "environment0", pid, host)
    done = call(prune, "--replays", "--store", tmp_path / "mixed.db", "--yes")
    assert done.return_value == 0 and "again of 1 replay or verification" in done.stdout
