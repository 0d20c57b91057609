"""Several workloads from the shell: search, check, rule."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autotune.hook.rule import read_rule
from autotune.session.finale.finale import IN_ONE_PROCESS
from autotune.session.finale.fresh_processes import FEWEST
from autotune.space.configuration import Configuration
from autotune.store.store import Store
from tests.cli.conftest import autotune

SPACE = """
autotune: 1
name: shapes
objective: objective.py:Shapes
workloads:
  - {m: 4, kind: half}
  - {m: 64, kind: half}
  - {m: 64, kind: single}
  - {m: 32, kind: half, held_out: true}
knobs:
  tile: {values: [1, 2, 4, 8, 16], default: 1}
  pack: {flag: false}
constraints: ["m % tile == 0"]
search: {strategy: grid}
measure: {min_readings: 3, max_readings: 3, finalists: 1, timeout: 10}
budget: {trials: 26, time: 500s}  # with time for fresh processes on a slow machine too
"""

OBJECTIVE = """
import autotune

class Shapes(autotune.Objective):
    def measure(self, loaded, rng):
        workload = self.context.workload
        slow = 0.5 if loaded["pack"] != (workload["kind"] == "single") else 0.0
        return {"time": workload["m"] * (1.0 / loaded["tile"] + slow)}
"""


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shapes")
    (folder / "space.yaml").write_text(SPACE)
    (folder / "objective.py").write_text(OBJECTIVE)
    done = autotune(folder, "search", "space.yaml", "--store", "s.db", "--json")
    assert done.returncode == 0, done.stderr
    (folder / "result.json").write_text(done.stdout)
    return folder


@pytest.fixture(scope="module")
def result(shapes: Path) -> Any:
    return json.loads((shapes / "result.json").read_text())


@pytest.mark.long
def test_each_workload_has_its_best(result: Any) -> None:
    best = [
        (one["workload"]["m"], one["workload"]["kind"], one["configuration"]) for one in result["workloads"]
    ]
    assert best == [
        (4, "half", {"tile": 4, "pack": False}),
        (64, "half", {"tile": 16, "pack": False}),
        (64, "single", {"tile": 16, "pack": True}),
        (32, "half", {"tile": 16, "pack": False}),
    ]
    assert [one["held_out"] for one in result["workloads"]] == [False, False, False, True]
    assert sum(one["trials"] for one in result["workloads"]) == 26


def test_a_win_is_confirmed_once_in_fresh_processes(shapes: Path) -> None:
    with Store.open(shapes / "s.db", readonly=True) as store:
        of_one, on_all = [verdict.document for verdict in store.verdicts(store.study("shapes#1").id)]
    assert "processes" not in of_one and IN_ONE_PROCESS in of_one["remark"]
    assert on_all["processes"] >= FEWEST and IN_ONE_PROCESS not in on_all["remark"]


def test_the_best_says_for_which_workload(shapes: Path) -> None:
    done = autotune(shapes, "best", "shapes#2", "--store", "s.db")
    assert done.stdout.startswith("# winner of shapes for m 64, kind half\n")


def test_the_summary_names_the_next_command(shapes: Path) -> None:
    done = autotune(shapes, "search", "space.yaml", "--store", "s.db")
    assert done.returncode == 0
    assert "m 64, kind single" in done.stdout
    assert "rule --study shapes --store s.db -o rule.py" in done.stdout


def test_the_rule_is_printed_with_its_regret(shapes: Path) -> None:
    done = autotune(shapes, "rule", "--store", "s.db")
    assert done.returncode == 0, done.stderr
    assert "def choose(m, kind):" in done.stdout
    assert "held out" in done.stdout
    assert "Traceback" not in done.stderr


def test_both_forms_choose_alike_and_only_what_is_allowed(shapes: Path) -> None:
    for form in ("py", "json"):
        done = autotune(shapes, "rule", "--study", "shapes", "--store", "s.db", "-o", f"rule.{form}")
        assert done.returncode == 0, done.stderr
        assert "def choose" not in done.stdout
    rule = read_rule(shapes / "rule.json")
    names: dict[str, Any] = {}
    exec((shapes / "rule.py").read_text(), names)
    for m in (1, 2, 3, 4, 6, 8, 10, 16, 30, 64, 100, 1000):
        for kind in ("half", "single"):
            chosen = names["choose"](m, kind)
            assert chosen == rule.choose({"m": m, "kind": kind}).configuration
            assert m % chosen["tile"] == 0
    assert names["choose"](32, "half") == {"tile": 16, "pack": False}
    assert names["choose"](64, "single") == {"tile": 16, "pack": True}


def test_its_json_has_the_regrets_and_the_matrix(shapes: Path) -> None:
    done = autotune(shapes, "rule", "--store", "s.db", "--json")
    document = json.loads(done.stdout)
    regret = document["evidence"]["regret"]
    assert set(regret) == {"learned from", "left out", "held out"}
    assert regret["learned from"]["rule"]["mean"] == pytest.approx(1, abs=0.02)
    assert regret["held out"]["rule"] == {
        "mean": pytest.approx(1, abs=0.02),
        "worst": pytest.approx(1, abs=0.02),
        "failures": 0,
        "workloads": 1,
    }
    assert regret["learned from"]["default"]["mean"] > 2
    assert len(document["matrix"]["rows"]) == 4
    statuses = [cell["status"] for cell in document["matrix"]["rows"][0]["cells"]]
    assert "forbidden by a constraint" in statuses


def test_fewer_leaves_where_they_are_asked_for(shapes: Path) -> None:
    done = autotune(shapes, "rule", "--store", "s.db", "--json", "--leaves", "1")
    assert "take" in json.loads(done.stdout)["tree"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-o", "rule.txt"], 2, "rule.py or rule.json"),
        (["-o", "space.yaml/rule.py"], 1, "cannot write"),
        (["--study", "shape"], 2, "did you mean 'shapes'?"),
    ],
)
def test_what_cannot_be_done_is_said(shapes: Path, arguments: list[str], code: int, message: str) -> None:
    done = autotune(shapes, "rule", "--store", "s.db", *arguments)
    assert done.returncode == code
    assert message in done.stderr


@pytest.mark.long
def test_a_rule_before_anything_was_measured_again(shapes: Path, tmp_path: Path) -> None:
    for name in ("space.yaml", "objective.py"):
        (tmp_path / name).write_text((shapes / name).read_text().replace("finalists: 1", "finalists: 0"))
    assert autotune(tmp_path, "search", "space.yaml", "--store", "s.db", "--trials", "4").returncode == 0
    done = autotune(tmp_path, "rule", "--store", "s.db")
    assert done.returncode == 2
    assert "nothing of the study shapes was measured again yet" in done.stderr


def test_an_ordinary_study_has_a_rule_of_one_leaf(folder: Path) -> None:
    done = autotune(folder, "rule", "--store", "study.db", "--json")
    assert done.returncode == 0, done.stderr
    assert "take" in json.loads(done.stdout)["tree"]
    text = autotune(folder, "rule", "--store", "study.db").stdout
    assert "def choose():" in text and "Workloads that it was learned from" not in text, "it has none"


def test_check_reads_every_workload(shapes: Path) -> None:
    done = autotune(shapes, "check", "space.yaml")
    assert done.returncode == 0
    assert "m 64, kind single" in done.stdout
    assert "(held out)" in done.stdout
    document = json.loads(autotune(shapes, "check", "space.yaml", "--json").stdout)
    assert [one["feasible"] for one in document["workloads"]] == [6, 10, 10, 10]


LEDGER = """
        import json
        with open("ledger", "a") as ledger:  # one line a call
            ledger.write(json.dumps([dict(self.context.workload), dict(loaded)]) + "\\n")
"""


@pytest.mark.long
def test_killed_in_the_middle_it_goes_on_and_repeats_nothing(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(SPACE.replace("finalists: 1", "finalists: 0"))
    head, body = OBJECTIVE.split("        workload = self")
    (tmp_path / "objective.py").write_text(f"{head}{LEDGER}        workload = self{body}")
    command = [sys.executable, "-m", "autotune", "search", "space.yaml", "--store", "s.db", "--json"]
    search = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while search.poll() is None and len(_finished(tmp_path)) < 12:
        with contextlib.suppress(subprocess.TimeoutExpired):
            search.wait(timeout=0.05)
    search.kill()
    search.wait()
    before = _finished(tmp_path)
    (tmp_path / "ledger").write_text("")
    done = autotune(tmp_path, "search", "space.yaml", "--store", "s.db", "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "ledger").read_text().splitlines()]
    measured = {(workload["m"], workload["kind"], Configuration(knobs).hash) for workload, knobs in lines}
    assert not measured & before
    assert before | measured == _finished(tmp_path)
    assert len(before | measured) == 26


def _finished(folder: Path) -> set[tuple[int, str, str]]:
    """The search trials that have ended, by workload and configuration."""
    if not (folder / "s.db").exists():
        return set()
    with Store.open(str(folder / "s.db"), readonly=True) as store:
        return {
            (study.workload["m"], study.workload["kind"], trial.hash)
            for study in store.studies()
            for trial in store.trials(study.id, purpose="search")
            if trial.status.finished
        }
