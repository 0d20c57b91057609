"""Trials that are paused at a rung: they teach, go on from where they stood, and do not get lost."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import pytest

import autotune
from autotune.errors import InputError
from autotune.measure.reports import Reporter
from autotune.report.words.story import results_known, tell
from autotune.session.budget import Spent
from autotune.session.ledger import MAX_ATTEMPTS
from autotune.session.observing import observe_record
from autotune.status import Status
from autotune.store.store import Store
from tests.session.early_stopping.followed import ends, spec, train
from tests.session.heard import Heard


@pytest.mark.parametrize("policy", ["successive-halving", "hyperband"])
def test_a_bracket_learns_from_its_own_trials_while_they_are_paused(tmp_path: Path, policy: str) -> None:
    given = spec(tmp_path, policy, strategy="bayes", trials=20)
    result = autotune.search(given, store=tmp_path / "study.db", objective=train)
    kinds = [str(trial.reason["kind"]) for trial in result.trials]
    assert kinds[0] == "default" and kinds.count("initial") < 4 and "initial" not in kinds[5:]
    with Store.open(tmp_path / "study.db", readonly=True) as store:
        knew = tell(store, store.trial(result.trials[8].id)).knew
    assert knew is not None and knew.results + knew.paused == knew.proposed == 8


def test_why_and_trial_count_the_same_results(tmp_path: Path) -> None:
    """The latter had counted what the strategy was told of paused trials, again once they had ended."""
    given = spec(tmp_path, "hyperband", strategy="bayes", trials=27)
    autotune.search(given, store=tmp_path / "study.db", objective=train)
    with Store.open(tmp_path / "study.db", readonly=True) as store:
        trials = store.trials(store.study().id, purpose="search")
        stories = [tell(store, trial).knew for trial in trials]
        assert [results_known(store, trial) for trial in trials] == [s.results for s in stories if s]
        assert any(trial.knew > results_known(store, trial) for trial in trials)


def test_a_strategy_without_a_use_for_it_is_not_told_what_is_paused(tmp_path: Path) -> None:
    given = spec(tmp_path, "successive-halving", strategy="evolution")
    result = autotune.search(given, store=tmp_path / "study.db", objective=train)
    assert {trial.knew for trial in result.trials} == {0}, "all of them are of one bracket"


@pytest.mark.parametrize("policy", ["successive-halving", "hyperband"])
def test_a_pause_survives_an_interruption(tmp_path: Path, policy: str) -> None:
    """What stood at its rung does not run again up to there."""
    runs: list[tuple[int, int]] = []
    given = spec(tmp_path, policy, trials=27)

    stop_after = [20]

    def counted(x: int, y: int, report: Reporter) -> None:
        if len(runs) in stop_after:
            raise KeyboardInterrupt
        runs.append((x, y))
        train(x, y, report)

    autotune.search(given, store=tmp_path / "study.db", objective=counted)
    assert len(set(runs)) == len(runs) == 20
    stop_after.clear()
    result = autotune.search(given, store=tmp_path / "study.db", objective=counted)
    assert set(result.statuses) <= {"ok", "pruned"} and len(result.trials) == 27
    unbroken = autotune.search(given, store=tmp_path / "other.db", objective=train)
    assert ends(result) == ends(unbroken)
    promotions = len(runs) - 27
    assert promotions <= 9 + 3 + 1


@pytest.mark.timeout(60)
@pytest.mark.parametrize("policy", ["successive-halving", "hyperband"])
def test_a_bracket_does_not_wait_for_a_trial_that_is_lost_for_good(tmp_path: Path, policy: str) -> None:
    """Those that were paused in it had waited for ever, and the search with them."""
    tried: list[tuple[int, int]] = []

    def failing(x: int, y: int, report: Reporter) -> None:
        tried.append((x, y))
        if (x, y) == tried[0]:
            raise autotune.Lost("the licence server is away")
        train(x, y, report)

    result = autotune.search(spec(tmp_path, policy), store=tmp_path / "study.db", objective=failing)
    assert result.statuses.pop("lost") == 1 and tried.count(tried[0]) == MAX_ATTEMPTS
    assert set(result.statuses) == {"ok", "pruned"} and len(result.trials) == 27


def test_a_promoted_trial_finds_its_checkpoint(tmp_path: Path) -> None:
    taken: list[tuple[int, int, int]] = []

    def resuming(x: int, y: int, report: Reporter) -> None:
        assert report.folder is not None and report.steps == 27
        file = report.folder / "step"
        begin = int(file.read_text()) if file.exists() else 0
        end = 0.1 + (x - 5) ** 2 / 64 + (y - 2) ** 2 / 25
        for step in range(begin + 1, 28):
            taken.append((x, y, step))
            if report.may_pause(step):
                file.write_text(str(step))
            report(step, loss=end + 0.5 * math.exp(-step / 6))

    result = autotune.search(
        spec(tmp_path, "successive-halving"), store=tmp_path / "study.db", objective=resuming
    )
    assert len(set(taken)) == len(taken) == 27 * 1 + 9 * 2 + 3 * 6 + 1 * 18
    steps = sorted(t.facts["step"] for t in result.trials)
    assert steps == [1] * 18 + [3] * 6 + [9] * 2 + [27]
    best = next(t for t in result.trials if t.status is Status.OK)
    assert [at * 27 for at, _ in observe_record(best).curve] == pytest.approx([1, 3, 9])
    assert best.told == 27 + 9 + 3 + 26 - 3, "the one that goes on ends last, after all results and pauses"


def test_each_run_of_the_finale_begins_without_a_checkpoint(tmp_path: Path) -> None:
    begun: list[tuple[int, bool]] = []

    def resuming(x: int, y: int, report: Reporter) -> None:
        assert report.folder is not None and report.steps == 27
        file = report.folder / "step"
        begin = int(file.read_text()) if file.exists() else 0
        begun.append((begin, report.may_pause(1)))
        for step in range(begin + 1, 28):
            file.write_text(str(step))
            report(step, loss=20.0 - x - y + 1 / step)

    given = spec(tmp_path, "successive-halving")
    given = replace(given, measure=replace(given.measure, finalists=1))
    result = autotune.search(given, store=tmp_path / "study.db", objective=resuming)
    assert result.defended
    assert begun[-6:] == [(0, False)] * 6, "the default and a finalist, three times each"


def test_nobody_is_to_save_where_nobody_is_paused(tmp_path: Path) -> None:
    asked: list[bool] = []

    def asking(x: int, y: int, report: Reporter) -> None:
        for step in range(1, 28):
            asked.append(report.may_pause(step))
            report(step, loss=x + y + 1 / step)

    autotune.search(spec(tmp_path, "asha", trials=4), store=tmp_path / "study.db", objective=asking)
    assert asked and not any(asked)


def test_an_incomplete_bracket_still_has_a_winner(tmp_path: Path) -> None:
    given = spec(tmp_path, "successive-halving", trials=7)
    result = autotune.search(given, store=tmp_path / "study.db", objective=train)
    assert result.statuses == {"ok": 1, "pruned": 6} and result.best is not None


@pytest.mark.parametrize("policy", ["successive-halving", "hyperband"])
def test_a_time_too_short_for_a_bracket_still_gives_a_winner(tmp_path: Path, policy: str) -> None:
    begun: list[float] = []

    def slow(x: int, y: int, report: Reporter) -> None:
        begun.append(time.monotonic())
        # The first two seem to need more than the whole time, and half of it is then over.
        until = {1: begun[0] + 0.2, 2: begun[0] + 2.0}.get(len(begun), 0.0)
        while time.monotonic() < until:
            pass
        train(x, y, report)

    heard = Heard()
    given = spec(tmp_path, policy)
    result = autotune.search(given, store=tmp_path / "study.db", objective=slow, time=4.0, progress=heard)
    assert len(begun) == 3 and result.statuses == {"ok": 1, "pruned": 1}
    assert result.reason == "4 s of searching"
    assert result.best is not None and "the best so far, and gets the rest of the time" in heard.notes[-1]


@pytest.mark.long
def test_when_the_time_is_up_nobody_is_promoted(tmp_path: Path) -> None:
    begun: list[float] = []

    def slow(x: int, y: int, report: Reporter) -> None:
        begun.append(time.monotonic())
        # The session's clock was already running when the first one began.
        while len(begun) == 5 and time.monotonic() < begun[0] + 4.0:
            pass
        train(x, y, report)

    given = spec(tmp_path, "successive-halving")
    result = autotune.search(given, store=tmp_path / "study.db", objective=slow, time=4.0)
    assert 1 <= len(begun) <= 5 and result.statuses == {"pruned": len(begun)}  # fewer on a slow machine
    assert all("the time was up" in t.message for t in result.trials)
    assert "ended as pruned, as trial 0: stopped after 1 of" in result.why_nothing
    assert "pruned, as trial 0: stopped after 1 of" in autotune.summarize(result)


def test_a_search_tells_how_many_trials_are_paused(tmp_path: Path) -> None:
    told: list[int] = []

    class Listening(autotune.Progress):
        def tick(self, spent: Spent, running: int) -> None:
            assert spent.finished + spent.paused + running == spent.trials
            told.append(spent.paused)

    given = spec(tmp_path, "successive-halving", trials=9)
    autotune.search(given, store=tmp_path / "study.db", objective=train, progress=Listening())
    assert max(told) >= 8 and told[-1] == 0


def test_ask_and_tell_refuses_to_pause(tmp_path: Path) -> None:
    """It left a study without trials, of which every command then spoke as the latest."""
    with pytest.raises(InputError, match="pauses trials") as refused:
        autotune.ask_tell(spec(tmp_path, "hyperband"), store=tmp_path / "study.db")
    assert "asha, async-hyperband," in str(refused.value)
    with Store.open(tmp_path / "study.db") as store:
        assert not store.studies()
