"""Another workload than the file's is said where the search is started."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

import autotune
from autotune.errors import InputError
from autotune.report.words.summary import summarize
from tests.cli.conftest import autotune as run

SPACE = """
autotune: 1
name: rows
objective: rows.py:measure
workload: {m: 4, dtype: float32}
knobs:
  tile: {values: [1, 2, 4, 8], default: 1}
constraints: [tile <= m]
measure: {min_readings: 3, max_readings: 3, finalists: 0}
budget: {trials: 9}
"""
OBJECTIVE = """
def measure(tile, m):
    return m / tile
"""


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    (tmp_path / "rows.yaml").write_text(SPACE)
    (tmp_path / "rows.py").write_text(OBJECTIVE)
    return tmp_path


@pytest.mark.long
def test_it_is_a_study_of_its_own_that_all_verbs_know(rows: Path) -> None:
    done = run(rows, "search", "rows.yaml", "--workload", "m=8", "--store", "s.db", "--trials", "2")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:3] == [
        "best so far of rows, not measured again",
        "workload m=8, instead of the space file's",
    ]
    (again,) = (line for line in done.stdout.splitlines() if "go on searching" in line)
    pasted = shlex.split(again.partition(" #")[0])
    assert pasted[pasted.index("--workload") + 1] == "m=8"
    done = run(rows, *pasted[pasted.index("search") :], "--trials", "4", "--json")
    eight = json.loads(done.stdout)
    assert eight["study_id"] == 1 and eight["configuration"] == {"tile": 8}
    four = json.loads(run(rows, "search", "rows.yaml", "--store", "s.db", "--json").stdout)
    assert four["study_id"] == 2 and four["configuration"] == {"tile": 4}
    best = run(rows, "best", "--study", "rows#1", "--store", "s.db")
    assert "for m 8, dtype float32" in best.stdout
    replayed = run(rows, "replay", f"rows#1:{eight['trial']}", "--store", "s.db", "--json")
    assert replayed.returncode == 0, "it is measured again with the workload that it had"
    assert json.loads(replayed.stdout)["verdict"] == "agrees"


def test_a_report_and_a_program_say_it_in_their_commands(rows: Path) -> None:
    """Without it they had led to another study."""
    found = autotune.search(rows / "rows.yaml", workload={"m": 8}, trials=2, store=rows / "s.db")
    assert f"search {rows / 'rows.yaml'} --workload m=8 --trials" in summarize(found)
    done = run(rows, "report", "rows#1", "--store", "s.db", "-o", "r.html")
    assert done.returncode == 0, done.stderr
    assert "rows.yaml --workload m=8 --strategy auto" in (rows / "r.html").read_text()


def test_a_space_is_counted_with_it(rows: Path) -> None:
    assert "4 feasible" in run(rows, "check", "rows.yaml", "--workload", "m=8").stdout
    assert "1 feasible" in run(rows, "check", "rows.yaml", "--workload", "m=1").stdout


def test_a_fact_that_the_file_has_not_is_refused(rows: Path) -> None:
    done = run(rows, "search", "rows.yaml", "--workload", "dtyp=float16")
    assert done.returncode == 2 and "did you mean 'dtype'?" in done.stderr


def test_of_several_workloads_all_that_differs_has_to_be_said(rows: Path) -> None:
    several = SPACE.replace("workload: {m: 4, dtype: float32}", "workloads: [{m: 4, n: 1}, {m: 8, n: 1}]")
    (rows / "rows.yaml").write_text(several)
    (rows / "rows.py").write_text(OBJECTIVE.replace("m)", "m, n)"))
    done = run(rows, "check", "rows.yaml", "--workload", "m=2")
    assert done.returncode == 2 and "give n as well" in done.stderr
    assert "2 feasible" in run(rows, "check", "rows.yaml", "--workload", "m=2", "--workload", "n=3").stdout


def test_from_python(rows: Path) -> None:
    found = autotune.search(rows / "rows.yaml", workload={"m": 8}, store=rows / "s.db")
    assert dict(found.best or {}) == {"tile": 8} and dict(found.study.workload)["m"] == 8
    with autotune.ask_tell(rows / "rows.yaml", workload={"m": 2}, store=rows / "s.db") as study:
        assert sorted(trial.configuration["tile"] for trial in study.ask(9)) == [1, 2]
    wrongs = {"'m' of the workload is None": {"m": None}, "named 3": {3: 4}, "by their names": "m=8"}
    for said, wrong in wrongs.items():
        with pytest.raises(InputError, match=said):
            autotune.search(rows / "rows.yaml", workload=wrong, store=rows / "s.db")  # type: ignore[arg-type]
    spec = autotune.read_spec(rows / "rows.yaml")
    with pytest.raises(InputError, match="beside what is no space file"):
        autotune.search(spec, workload={"m": 8}, store=rows / "s.db")
