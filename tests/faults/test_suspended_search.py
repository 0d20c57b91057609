"""A search that is stopped with its workers, as in a frozen container, and goes on: the time is nobody's."""

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
import time
from pathlib import Path
from autotune import Objective

class Stopped(Objective):
    def measure(self, loaded, rng):
        while self.final == {in_finale} and not Path("go").exists():
            Path("begun").touch()
            time.sleep(0.05)
        return float(loaded["a"])
"""

SPACE = f"""
autotune: 1
name: suspended
objective: objective.py:Stopped
knobs: {{a: {{values: [1, 2], default: 2}}}}
measure: {{warmup: 0, min_readings: 1, max_readings: 1, finalists: 1, timeout: {LIMIT}, cores: 0}}
"""


@pytest.mark.slow
@pytest.mark.parametrize("in_finale", [False, True])
def test_a_reading_does_not_run_out_of_the_time_in_which_it_was_stopped(
    tmp_path: Path, in_finale: bool
) -> None:
    """In a finale it did: the default had ended as a timeout, with nothing to compare the winner with."""
    (tmp_path / "objective.py").write_text(OBJECTIVE.format(in_finale=in_finale))
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
        trials = store.trials(store.study("suspended").id)
    assert {trial.purpose for trial in trials} == {"search", "default", "final"}
    assert all(trial.status is Status.OK for trial in trials), [trial.message for trial in trials]
