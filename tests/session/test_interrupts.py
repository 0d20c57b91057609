"""Ctrl-C in a search, and while its finalists are measured again."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

import autotune
from autotune.cli.search import interruptible
from autotune.measure.outcome import Outcome
from autotune.report.words.summary import summarize
from autotune.search.contract import Proposal
from autotune.search.strategies.random import Random
from autotune.session.api import open_session
from autotune.session.progress import Best, Progress
from autotune.space.configuration import Configuration
from autotune.space.spec import Budget, SearchSettings
from autotune.status import Status
from autotune.store.store import Store
from tests.session.bowl import bowl, spec


def test_an_interrupt_while_the_strategy_chooses_ends_the_search_and_defends_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a tight space that takes half a minute, which an interrupt had to wait for."""
    ask, asked = Random.ask, []
    given = spec(tmp_path)
    given = replace(given, search=SearchSettings("random"), budget=Budget(trials=50))
    with Store.open(tmp_path / "study.db") as store:
        searching = open_session(given, store, objective=bowl)

        def slow(strategy: Random, n: int = 1) -> list[Proposal]:
            asked.append(searching.asking)
            if len(asked) < 4:
                return ask(strategy, n)
            os.kill(os.getpid(), signal.SIGINT)
            raise AssertionError("the interrupt waited for the proposal")

        def expected(strategy: Random) -> dict[str, float]:
            raise AssertionError("what it believes may be half worked out")

        monkeypatch.setattr(Random, "ask", slow)
        monkeypatch.setattr(Random, "expected", expected)
        with interruptible(searching):
            result = searching.run()
        assert asked == [True] * 4 and searching.stopped and not searching.asking
        assert result.reason == "interrupted" and result.defended
        assert sum(result.statuses.values()) == 3


def test_an_interrupt_while_finalists_are_measured_ends_that_and_is_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It had been taken for one that ends the search, which was over: nothing ended for minutes."""
    given = replace(spec(tmp_path), budget=Budget(trials=6))

    class Impatient(Progress):
        def defending(self, entrants: tuple[str, ...], seconds: float) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    with Store.open(tmp_path / "study.db") as store:
        searching = open_session(given, store, objective=bowl, progress=Impatient())
        with interruptible(searching):
            cut = searching.run()
        assert cut.reason == "interrupted" and not cut.defended
        said = summarize(cut, space="s.yaml", budget=given.budget)
        assert "search s.yaml --trials 6 " in said, "twice as many had been named"
        assert "the same command goes on with it" in capsys.readouterr().err
        assert open_session(given, store, objective=bowl).run().defended


def test_what_hears_of_a_trial_can_end_the_search(tmp_path: Path) -> None:
    class Enough(Progress):
        def finished(
            self, number: int, configuration: Configuration, outcome: Outcome, best: Best | None
        ) -> None:
            if number == 3:
                raise KeyboardInterrupt

    given = replace(spec(tmp_path), budget=Budget(trials=50))
    result = autotune.search(given, objective=bowl, store=tmp_path / "study.db", progress=Enough())
    assert result.reason == "interrupted" and result.statuses == {Status.OK: 4}
    assert result.best is not None and not result.defended
