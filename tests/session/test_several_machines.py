"""Machines that keep their trials in one PostgreSQL database search together."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.store.store import Store
from tests.store import postgres

ROOT = Path(__file__).parents[2]
HOSTS = ("node-1", "node-2")

SPACE = """
autotune: 1
name: together
objective: objective.py:measure
metrics: {time: {goal: minimize, unit: s}}
knobs: {x: {range: [1, 20], default: 1}}
search: {strategy: random}
budget: {trials: 8}
measure: {timeout: 60s, finalists: 0}
"""
OBJECTIVE = """
import os, socket
from pathlib import Path

FOLDER = Path(__file__).parent

def measure(x):
    try:
        (FOLDER / socket.gethostname()).mkdir()
    except FileExistsError:
        return 1.0 + x
    try:  # the first trial of each host waits for that of the other
        (FOLDER / "first").mkdir()
        os.close(os.open(FOLDER / "meeting", os.O_WRONLY))
    except FileExistsError:
        os.close(os.open(FOLDER / "meeting", os.O_RDONLY))
    return 1.0 + x
"""

MACHINE = ["unshare", "--uts", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "sh", "-c"]
"""With a name of its own, in which no process of the others is seen."""


def machines_can_be_made() -> bool:
    try:
        return subprocess.run([*MACHINE, "hostname node"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def test_they_share_one_study_and_measure_nothing_twice(tmp_path: Path) -> None:
    if reason := postgres.why_not():
        pytest.skip(reason)
    if not machines_can_be_made():
        pytest.skip("namespaces with a host name of their own need rights that there are not here")
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    os.mkfifo(tmp_path / "meeting")
    with postgres.server() as socket:
        url = postgres.make_database(socket, "fleet")
        environment = {**os.environ, "AUTOTUNE_STORE": url, "PYTHONPATH": str(ROOT)}
        nodes = []
        for host in HOSTS:
            locks = tmp_path / f"locks of {host}"
            locks.mkdir()
            search = f"hostname {host} && exec {sys.executable} -m autotune search space.yaml"
            nodes.append(
                subprocess.Popen(
                    [*MACHINE, search],
                    cwd=tmp_path,
                    env={**environment, "AUTOTUNE_LOCKS": str(locks)},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
        said = [node.communicate()[0] for node in nodes]
        assert [node.returncode for node in nodes] == [0, 0], said
        with Store.open(url, readonly=True) as store:
            (study,) = store.studies()
            trials = store.trials(study.id, purpose="search")
            assert {session.host for session in store.sessions(study.id)} == set(HOSTS)
            assert len({trial.hash for trial in trials}) == len(trials) == 8
            assert {trial.status for trial in trials} == {"ok"}
            assert {(trial.worker or "").partition(":")[0] for trial in trials} == set(HOSTS)
