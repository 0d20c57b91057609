"""A search beside this one dies: what it was at is measured by this one, before it ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import autotune
from autotune.measure.outcome import Outcome
from autotune.session.progress import Best, Progress
from autotune.session.result import EXHAUSTED
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.store import Store

SPACE = """
autotune: 1
name: beside
objective: objective.py:measure
knobs: {a: {range: [0, 5], default: 0}}
search: {strategy: grid}
measure: {min_readings: 2, max_readings: 2, finalists: 0}
"""

OTHER = """
import sys, autotune
trials = autotune.ask_tell("space.yaml", store="study.db").ask()
print(len(trials), flush=True)
sys.stdin.read()
"""


def begin_and_be_killed(folder: Path) -> None:
    """Another search of the study takes a trial, and is killed."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", OTHER], cwd=folder, stdin=pipe, stdout=pipe) as other:
        assert other.stdout is not None and other.stdout.readline() == b"1\n"
        other.kill()


class Beside(Progress):
    """When the first trial has finished, another search begins and is killed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def finished(
        self, number: int, configuration: Configuration, outcome: Outcome, best: Best | None
    ) -> None:
        self._count += 1
        if self._count == 1:
            begin_and_be_killed(self._folder)


def prepared(folder: Path) -> Path:
    (folder / "objective.py").write_text("def measure(a):\n    return 1.0 + a\n")
    (folder / "space.yaml").write_text(SPACE)
    return folder / "space.yaml"


def assert_all_were_tried(folder: Path, again: int) -> None:
    with Store.open(folder / "study.db", readonly=True) as store:
        trials = store.trials(store.study().id, purpose="search")
        assert {trial.configuration["a"] for trial in trials if trial.status is Status.OK} == set(range(6))
        assert len(trials) == 6 and [trial.attempt for trial in trials].count(2) == again


def test_the_space_is_not_exhausted_while_a_trial_of_a_dead_search_is_left(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    result = autotune.search(prepared(tmp_path), store=store, progress=Beside(tmp_path))
    assert result.reason == EXHAUSTED
    assert_all_were_tried(tmp_path, again=1)


def test_nor_is_a_budget_of_trials_used_up(tmp_path: Path) -> None:
    store = tmp_path / "study.db"
    autotune.search(prepared(tmp_path), trials=6, store=store, progress=Beside(tmp_path))
    assert_all_were_tried(tmp_path, again=1)


def test_ask_and_tell_hands_it_out_when_nothing_else_is_left(tmp_path: Path) -> None:
    with autotune.ask_tell(prepared(tmp_path), store=tmp_path / "study.db") as session:
        begin_and_be_killed(tmp_path)
        asked = [session.ask(), session.ask(9), session.ask(9), session.ask(9)]
        assert [len(trials) for trials in asked] == [1, 4, 1, 0]
        for trial in [trial for trials in asked for trial in trials]:
            session.tell(trial, time=1.0 + int(trial.configuration["a"]))
    assert_all_were_tried(tmp_path, again=1)


def test_what_a_living_search_is_at_stays_with_it(tmp_path: Path) -> None:
    space, store = prepared(tmp_path), tmp_path / "study.db"
    with autotune.ask_tell(space, store=store) as session, autotune.ask_tell(space, store=store) as other:
        (taken,) = other.ask()
        assert len(session.ask(9)) == 5 and not session.ask()
        other.tell(taken, time=1.0)
