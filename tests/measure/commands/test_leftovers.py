"""What runs of a program leave in their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.measure.commands.crashed import CommandCrashed
from autotune.measure.own_folder import FOLDER
from autotune.measure.reports import Curve, Reporter
from autotune.space.configuration import Configuration
from tests.measure.commands.running import measure, python, runner

LEAVES = """
import json, os, pathlib
folder = pathlib.Path(os.environ["AUTOTUNE_FOLDER"])
found = sorted(path.name for path in folder.rglob("*"))
(folder / "made").mkdir(exist_ok=True)
(folder / "made" / "checkpoint").write_text("1")
print(json.dumps({"time": len(found)}))
"""
LEAVES_IT = (*python(LEAVES), "{a}")
OPENS = LEAVES.replace("print", "import autotune\nwith autotune.run('x') as run: run.knob('a', 0)\nprint")


def curve(done: int = 0) -> Reporter:
    return Reporter(Curve(9, "time", (), done))


def test_a_training_finds_nothing_that_an_earlier_run_left(tmp_path: Path) -> None:
    objective = runner(tmp_path, *LEAVES_IT)
    objective.report = curve()
    assert measure(objective, a=1)["time"] == 0
    assert measure(objective, a=1)["time"] == 0
    other_process = runner(tmp_path, *LEAVES_IT)
    other_process.report = curve()
    assert measure(other_process, a=1)["time"] == 0


def test_a_training_that_was_paused_finds_what_it_left(tmp_path: Path) -> None:
    objective = runner(tmp_path, *LEAVES_IT)
    objective.report = curve()
    measure(objective, a=1)
    objective.report = curve(done=3)
    assert measure(objective, a=1)["time"] == 2


RESUMES = """
import json, os, pathlib
checkpoint = pathlib.Path(os.environ["AUTOTUNE_FOLDER"]) / "checkpoint"
begin = json.loads(checkpoint.read_text()) if checkpoint.exists() else 0
for step in range(begin + 1, 10):
    checkpoint.write_text(str(step))
    print(json.dumps({"step": step, "time": step + 0.5}), flush=True)
"""


@pytest.mark.parametrize("left", ["9", ""], ids=["of the last step", "half written"])
def test_a_training_that_cannot_go_on_from_its_checkpoint_begins_anew(tmp_path: Path, left: str) -> None:
    objective = runner(tmp_path, *python(RESUMES), "{a}")
    objective.report = curve()
    assert measure(objective, a=1)["time"] == 9.5
    (tmp_path / "cache" / FOLDER / Configuration({"a": 1}).hash / "checkpoint").write_text(left)
    objective.report = curve(done=3)
    assert measure(objective, a=1)["time"] == 9.5


def test_a_training_that_dies_after_it_went_on_does_not_begin_anew(tmp_path: Path) -> None:
    objective = runner(tmp_path, *python(RESUMES + "raise SystemExit(begin)"), "{a}")
    objective.report = curve()
    measure(objective, a=1)
    (tmp_path / "cache" / FOLDER / Configuration({"a": 1}).hash / "checkpoint").write_text("5")
    objective.report = curve(done=3)
    with pytest.raises(CommandCrashed, match="exit code 5"):
        measure(objective, a=1)


def test_a_program_that_opens_runs_is_a_training(tmp_path: Path) -> None:
    objective = runner(tmp_path, *python(OPENS))
    assert [measure(objective, a=1)["time"] for _ in range(3)] == [0, 0, 0]


def test_any_other_program_may_keep_what_it_made_once(tmp_path: Path) -> None:
    objective = runner(tmp_path, *LEAVES_IT)
    assert [measure(objective, a=1)["time"] for _ in range(3)] == [0, 2, 2]


def test_what_prepare_and_check_made_stays(tmp_path: Path) -> None:
    made = "import os, pathlib, sys; pathlib.Path(os.environ['AUTOTUNE_FOLDER'], sys.argv[1]).touch()"
    objective = runner(
        tmp_path,
        *LEAVES_IT,
        prepare=(*python(made + "  # $AUTOTUNE_FOLDER"), "built"),
        check=(*python(made), "checked"),
    )
    assert objective.prepares
    objective.report = curve()
    assert measure(objective, a=1)["time"] == 2
    (tmp_path / "cache" / FOLDER / Configuration({"a": 1}).hash / "built").unlink()
    assert measure(objective, a=1)["time"] == 2
