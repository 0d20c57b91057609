"""The folder of a configuration goes when its trial has ended, and stays while the trial is paused.

A build of 1 GB for each trial had filled the disk, after which every other trial failed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from autotune.session.api import open_session
from autotune.session.result import Result
from autotune.space.reading.reader import parse_spec
from autotune.status import Status
from autotune.store.store import Store

COUNTS = """
import json, os, pathlib, sys
folder = pathlib.Path(os.environ["AUTOTUNE_FOLDER"])
(folder / "built").write_text(sys.argv[1])
print(json.dumps({"time": 1.0 + int(sys.argv[1]), "folders": len(list(folder.parent.glob("*/built")))}))
"""

BUILDS = """
autotune: 1
name: builds
command: {command}
metrics: {{time: {{goal: minimize, unit: s}}, folders: {{}}}}
knobs:
  x: {{range: [0, 7], default: 0}}
search: {{strategy: grid}}
measure: {{warmup: 0, min_readings: 1, max_readings: 1, finalists: 0}}
"""

TRAINS = """
def train(x, report):
    file = report.folder / "checkpoint"
    done = int(file.read_text()) if file.exists() else 0
    for epoch in range(done + 1, report.steps + 1):
        file.write_text(str(epoch))
        folders = len(list(report.folder.parent.glob("*/checkpoint")))
        report(epoch, loss=x + 1 / epoch, began=done, folders=folders)
"""

PAUSES = """
autotune: 1
name: pauses
objective: train.py:train
metrics: {loss: {goal: minimize}, began: {}, folders: {}}
knobs:
  x: {range: [0, 8], default: 0}
search: {strategy: grid, early_stopping: {policy: successive-halving, max: 9}}
measure: {finalists: 0}
"""


def search(folder: Path, text: str) -> Result:
    with Store.open(str(folder / "store.db")) as store:
        return open_session(parse_spec(text, folder / "space.yaml"), store).run()


def test_what_was_built_for_a_trial_is_removed_after_it(tmp_path: Path) -> None:
    (tmp_path / "counts.py").write_text(COUNTS)
    result = search(tmp_path, BUILDS.format(command=f'["{sys.executable}", counts.py, "{{x}}"]'))
    folders = [trial.metrics["folders"].value for trial in result.trials]
    assert len(folders) == 8 and max(folders) <= 2  # the one before may still be there


def test_a_paused_trial_keeps_its_checkpoint_until_it_has_ended(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    result = search(tmp_path, PAUSES)
    [complete] = [trial for trial in result.trials if trial.status is Status.OK]
    assert complete.configuration["x"] == 0 and complete.metrics["began"].value == 3
    assert complete.metrics["folders"].value == 1
