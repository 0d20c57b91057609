"""A search that is stopped with its trial, as in a frozen container, and goes on: that time is nobody's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotune.measure.workers.descendants import descendants
from autotune.status import Status
from autotune.store.store import Store

LIMIT, STOPPED = 10, 13

OBJECTIVE = """
import os, time
from pathlib import Path

def measure(a):
    Path("begun").touch()
    while not Path("go").exists():
        time.sleep(0.05)
    return float(a)
"""

SPACE = f"""
autotune: 1
name: suspended
objective: objective.py:measure
knobs: {{a: {{values: [1], default: 1}}}}
measure: {{warmup: 0, min_readings: 1, max_readings: 1, finalists: 0, timeout: {LIMIT}, cores: 0}}
"""


@pytest.mark.slow
def test_a_trial_does_not_run_out_of_the_time_in_which_it_was_stopped(tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    (tmp_path / "space.yaml").write_text(SPACE)
    command = [sys.executable, "-m", "autotune", "search", "space.yaml", "--store", "study.db", "--json"]
    search = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        while not (tmp_path / "begun").exists():
            assert search.poll() is None
            time.sleep(0.05)
        below = descendants(search.pid)
        for pid in (search.pid, *below):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(STOPPED)  # what is tested: that this time is not the trial's
        for pid in (*below, search.pid):
            os.kill(pid, signal.SIGCONT)
        (tmp_path / "go").touch()
        _, err = search.communicate(timeout=60)
    finally:
        search.kill()
    assert search.returncode == 0, err.decode()
    with Store.open(str(tmp_path / "study.db"), readonly=True) as store:
        (trial,) = store.trials(store.study("suspended").id, purpose="search")
    assert trial.status is Status.OK, trial.message
