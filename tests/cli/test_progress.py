"""What a search says on a terminal while it runs."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from autotune.cli.progress import LineProgress, seconds_between
from autotune.session.budget import Spent
from autotune.session.progress import Opening
from autotune.space.spec import Budget, MetricSpec

SPACE = """
autotune: 1
name: quick
objective: objective.py:measure
knobs: {tile: {values: [1, 2, 4, 8], default: 8}}
measure: {min_readings: 3, max_readings: 3, finalists: 1}
budget: {time: 500s}  # with time for fresh processes on a slow machine too
"""


def on_a_terminal(folder: Path, *arguments: str) -> str:
    """All that ``autotune`` writes to a terminal of 80 columns."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm"}
    command = [sys.executable, "-m", "autotune", *arguments]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    with suppress(OSError):  # what a terminal gives whose other end is closed
        while data := os.read(ours, 1 << 16):
            said += data
    os.close(ours)
    assert process.wait() == 0, said.decode()
    return said.decode()


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a whole search says."""
    folder = tmp_path_factory.mktemp("quick")
    (folder / "objective.py").write_text("def measure(tile): return 1.0 + tile\n")
    (folder / "space.yaml").write_text(SPACE)
    return on_a_terminal(folder, "search", "space.yaml", "--store", "quick.db")


@pytest.mark.long
def test_while_finalists_are_measured_again_the_line_says_how_long(screen: str) -> None:
    defending = screen.partition("measuring again")[2].partition("and in fresh processes")[0]
    assert " s of about" in defending and "up to" not in defending, "it is no limit"
    assert "in flight" not in defending and " left" not in defending


def test_a_winner_in_fresh_processes_is_announced(screen: str) -> None:
    _, _, confirming = screen.partition("and in fresh processes: the default, trial ")
    assert " runs, " in confirming and " s of about" in confirming


def test_what_a_program_says_does_not_act_on_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "objective.py").write_text(
        "def measure(tile):\n    if tile == 1: raise ValueError('\\x1b[2Jgone')\n    return 1.0 + tile\n"
    )
    unit = 'metrics: {time: {goal: minimize, unit: "s\\u202e"}}\n'
    (tmp_path / "space.yaml").write_text(SPACE.replace("finalists: 1", "finalists: 0") + unit)
    said = on_a_terminal(tmp_path, "search", "space.yaml", "--store", "quick.db")
    assert "\x1b[2J" not in said
    assert "best so far" in said and "\u202e" not in said
    assert said.count("ValueError: \\x1b[2Jgone") >= 2, "while it ran, and in the end"


@pytest.mark.parametrize(
    ("budget", "spent", "running", "said"),
    [
        (Budget(), Spent(4, 5.0), 1, ""),
        (Budget(time=60.0), Spent(4, 15.0), 1, "45 s left"),
        (Budget(time=60.0), Spent(4, 61.0), 1, "finishing"),
        (Budget(trials=10), Spent(4), 1, "14 s left"),
        (Budget(trials=10), Spent(10), 3, "6 s left"),  # all proposed, and three wait for a core
        (Budget(trials=10), Spent(11), 0, "finishing"),
    ],
)
def test_what_waits_for_its_turn_has_its_time_before_it(
    budget: Budget, spent: Spent, running: int, said: str
) -> None:
    progress = LineProgress()
    progress.opened(Opening("s", MetricSpec("time", "minimize", "s"), "auto", budget, None, 0, False))
    assert progress.left(spent, running, rate=0.5) == said


def test_what_is_in_flight_does_not_count_as_tried() -> None:
    progress = LineProgress()
    budget = Budget(trials=20, time=60.0)
    progress.opened(Opening("s", MetricSpec("time", "minimize", "s"), "auto", budget, None, 0, False))
    assert progress.status(Spent(2, 23.0), 2) == "0/20 trials, 2 in flight, 37 s left"
    assert progress.status(Spent(20, 50.0, finished=20), 0) == "20/20 trials, 10 s left"


def test_trials_that_wait_at_a_rung_are_counted() -> None:
    """For a minute a search by brackets seemed to do nothing: ``0/40 trials, 2 in flight``."""
    progress = LineProgress()
    budget = Budget(trials=40, time=60.0)
    progress.opened(Opening("s", MetricSpec("loss", "minimize"), "bayes", budget, None, 0, False))
    assert progress.status(Spent(10, 23.0, paused=8), 2) == "0/40 trials, 2 in flight, 8 paused, 37 s left"


def test_a_replay_does_not_say_that_it_measures(capsys: pytest.CaptureFixture[str]) -> None:
    """``measuring again, interleaved: ... (about 5 s)`` was said of readings that were looked up."""
    progress = LineProgress()
    progress.opened(Opening("s", MetricSpec("time", "minimize", "s"), "auto", Budget(), None, 0, True))
    progress.defending(("the default", "trial 3"), 5.0)
    progress.defended(1)
    said = capsys.readouterr().err.splitlines()[1:]
    assert said == ["comparing the recorded readings of the default, trial 3", "1 round compared"]


def test_a_log_of_a_long_search_has_few_status_lines() -> None:
    """A search of a night had written a line every five seconds, most of them the same."""
    elapsed = lines = 0.0
    while elapsed < 8 * 3600:
        elapsed, lines = elapsed + seconds_between(elapsed), lines + 1
    assert lines < 600
    assert seconds_between(0) == seconds_between(60) == 5


def test_a_single_trial_is_one() -> None:
    assert LineProgress().status(Spent(1, finished=1), 0) == "1 trial"
