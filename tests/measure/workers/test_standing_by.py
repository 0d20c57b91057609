"""A worker that stands by: what its objective does before the first trial, and what that may do to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from autotune.measure.workers import process
from autotune.measure.workers.messages import Measured, Ready, StoodBy
from autotune.measure.workers.postmortem import Cause, Death
from autotune.measure.workers.process import Worker
from tests.measure.workers.starting import OBJECTIVE, Start, ask

STANDING_BY = """
import os, signal, subprocess
import autotune
class measure(autotune.Objective):
    def __init__(self, context):
        super().__init__(context)
        self.folder = os.getcwd()
    def stand_by(self):
        print("getting ready")
        (self.context.cache / "stood").write_text(f"{self.final}")
        ...
    def measure(self, loaded, rng):
        print("reading")
        assert os.getcwd() == self.folder
        return 2.0 if (self.context.cache / "stood").exists() else 1.0
"""


def standing(worker: Worker) -> object:
    """What a worker says that has stood by, or has died of it."""
    ready = worker.wait()
    assert isinstance(ready, Ready) and ready.stands_by
    return worker.wait() if worker.standing_by else StoodBy()  # it may have said both at once


@pytest.mark.parametrize("repeats", [True, False])
def test_it_stands_by_before_its_first_request(start: Start, tmp_path: Path, repeats: bool) -> None:
    worker = start(STANDING_BY, stands_by=True, repeats=repeats)
    assert isinstance(standing(worker), StoodBy) and not worker.busy
    assert worker.deadline == float("inf")
    assert (tmp_path / "stood").read_text() == str(not repeats), "what repeats nothing is a finalist"
    answer = ask(worker, 1)
    assert isinstance(answer, Measured) and answer.outcome.metrics["time"].value == 2
    assert worker.output == "reading\n" * 3, "what it said before is no trial's"


@pytest.mark.parametrize(("text", "stands_by"), [(STANDING_BY, False), (OBJECTIVE, True)])
def test_where_it_is_not_to_stand_by_or_has_nothing_to_do_it_is_idle_at_once(
    start: Start, tmp_path: Path, text: str, stands_by: bool
) -> None:
    worker = start(text, stands_by=stands_by)
    ready = worker.wait()
    assert isinstance(ready, Ready) and not ready.stands_by and not worker.busy
    answer = ask(worker, 1)
    assert isinstance(answer, Measured) and answer.outcome.metrics["time"].value == 1
    assert not (tmp_path / "stood").exists()


@pytest.mark.parametrize(
    "fault", ["1 / 0", "raise SystemExit(3)", "os.fork() or 1 / 0; os.chdir('/'); no_such"]
)
def test_what_it_raises_while_it_stands_by_is_let_go(start: Start, fault: str) -> None:
    worker = start(STANDING_BY.replace("...", fault), stands_by=True)
    assert isinstance(standing(worker), StoodBy)
    for x in (1, 2):
        answer = ask(worker, x)
        assert isinstance(answer, Measured) and answer.outcome.status == "ok", answer
        assert not answer.leftovers and worker.attend() is None


def test_what_it_starts_while_it_stands_by_serves_all_trials(start: Start) -> None:
    text = STANDING_BY.replace("...", "self.server = subprocess.Popen(['sleep', '600'])").replace(
        "return 2.0", "return 2.0 if self.server.poll() is None else 3.0"
    )
    worker = start(text, stands_by=True)
    assert isinstance(standing(worker), StoodBy)
    for x in (1, 2):
        answer = ask(worker, x)
        assert isinstance(answer, Measured) and not answer.leftovers
        assert answer.outcome.metrics["time"].value == 2


def test_one_that_hangs_while_it_stands_by_is_ended(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STAND_BY_SECONDS", 0.1)
    worker = start(STANDING_BY.replace("...", "signal.pause()"), stands_by=True)
    death = standing(worker)
    assert isinstance(death, Death) and death.cause is Cause.LIMIT
    assert worker.standing_by, "so that the next one does without"
