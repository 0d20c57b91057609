"""The loop with a real store: resume, the same history, the same proposals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import autotune
from autotune.errors import StoreError
from autotune.report.words.summary import summarize
from autotune.search.contract import Proposal
from autotune.session import session
from autotune.session.api import capture_environment
from autotune.session.budget import Spent
from autotune.session.ledger import Ledger
from autotune.session.opening.opening import open_study
from autotune.session.progress import Opening, Progress
from autotune.session.result import EXHAUSTED
from autotune.session.searches import seconds_searched
from autotune.space import IntegerRange, Space
from autotune.space.spec import Budget
from autotune.status import Status
from autotune.store.records import ResultRecord
from autotune.store.store import Store
from tests.session.bowl import bowl, proposals, spec


def test_a_search_ends_with_its_best_defended(search: Callable[..., autotune.Result]) -> None:
    result = search(trials=40)
    assert result.defended and result.speedup is not None and result.speedup.low > 1
    assert result.best == min((t.configuration for t in result.trials), key=lambda c: bowl(**c))
    assert len(result.frame()) == 40 and result.reason == "40 trials"


def test_no_more_trials_are_announced_than_there_are_configurations(
    search: Callable[..., autotune.Result],
) -> None:
    class Told(Progress):
        def opened(self, opening: Opening) -> None:
            said.append((opening.budget.trials, opening.feasible))

    said: list[tuple[int | None, int | None]] = []
    for trials in (4, 10_000):
        result = search(trials=trials, strategy="grid", progress=Told())
    size = len(result.trials)
    assert said == [(4, size), (size, size)] and result.reason == EXHAUSTED


def test_without_a_limit_as_many_are_announced_as_there_are_configurations(tmp_path: Path) -> None:
    """A search of all that is left said ``32 trials``, and neither of how many nor for how long."""

    class Told(Progress):
        def opened(self, opening: Opening) -> None:
            said.append(opening.budget)

    said: list[Budget] = []
    for budget in (Budget(), Budget(patience=3)):
        given = autotune.StudySpec("few", Space([IntegerRange("x", 1, 4)]), budget=budget)
        autotune.search(given, objective=lambda x: x, store=tmp_path / "few.db", progress=Told())
    assert said == [Budget(trials=4), Budget(patience=3)]


def test_trials_count_as_finished_once_their_results_are_known(
    search: Callable[..., autotune.Result],
) -> None:
    class Told(Progress):
        def tick(self, spent: Spent, running: int) -> None:
            said.append((spent.trials, running, spent.finished))

    said: list[tuple[int, int, int]] = []
    search(trials=3, strategy="grid", progress=Told())
    search(trials=5, strategy="grid", progress=Told())
    assert all(trials - running == finished for trials, running, finished in said)
    assert said[-1] == (5, 0, 5)


@pytest.mark.parametrize("strategy", ["random", "grid", "evolution", "optuna-tpe", "auto"])
def test_a_resumed_search_proposes_what_an_unbroken_one_does(
    tmp_path: Path, search: Callable[..., autotune.Result], strategy: str
) -> None:
    unbroken = search(trials=24, strategy=strategy, store=tmp_path / "unbroken.db")
    for trials in (7, 8, 24):
        broken = search(trials=trials, strategy=strategy)
    assert proposals(broken) == proposals(unbroken)


def test_a_small_space_is_exhausted(tmp_path: Path, search: Callable[..., autotune.Result]) -> None:
    result = search(spec(tmp_path, high=0), trials=1000)
    assert len(result.trials) == 16 and result.reason == "every configuration was tried"
    assert "go on searching" not in summarize(result, space="bowl.yaml")
    fewer = search(trials=4)
    assert "search bowl.yaml --trials" in summarize(fewer, space="bowl.yaml")
    assert "go on searching" not in summarize(fewer), "a shell has no file to go on with"


def test_patience_ends_a_search(search: Callable[..., autotune.Result]) -> None:
    result = search(patience=5, strategy="grid")
    assert result.reason == "5 trials without an improvement"


def test_a_target_ends_a_search_and_a_better_one_goes_on(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    store = tmp_path / "target.db"
    far = search(target=1e9, strategy="grid", store=store)
    assert (far.reason, len(far.trials)) == ("trial 0 reached the target of 1e+09", 1)
    least = min(bowl(x, y) for x in range(16) for y in range(16))
    near = search(target=least, strategy="grid", store=store)
    found = near.trials[-1]
    assert near.reason == f"trial {found.number} reached the target of {least:g}"
    assert bowl(**found.configuration) == least
    assert all(bowl(**trial.configuration) > least for trial in near.trials[:-1])
    again = search(target=least, strategy="grid", store=store)
    assert again.reason == near.reason and len(again.trials) == len(near.trials), "it has what was wanted"


def test_no_better_than_the_default_is_an_answer(search: Callable[..., autotune.Result]) -> None:
    result = search(objective=lambda x, y: 1.0 + 0.0 * x, trials=10)
    assert result.is_default and result.best == {"x": 0, "y": 0} and "no better" in result.remark


def test_what_another_session_is_at_counts_in_the_budget(tmp_path: Path) -> None:
    def join() -> autotune.AskTell:
        return autotune.ask_tell(spec(tmp_path), store=tmp_path / "study.db", strategy="random")

    with join() as one, join() as two:
        one.ask(3)
        two.ask(1)
        assert two._ledger.spent.trials == 4


def test_two_sessions_hear_of_each_other_once(tmp_path: Path) -> None:
    def join(seed: int) -> autotune.AskTell:
        return autotune.ask_tell(spec(tmp_path), store=tmp_path / "study.db", strategy="random", seed=seed)

    with join(5) as one, join(6) as two:
        (first,) = one.ask()
        one.tell(first, time=1.0)
        (second,) = two.ask()
        two.tell(second, status="crashed")
        (third,) = two.ask()
        one.ask()
        one.ask()
        assert third.configuration not in (first.configuration, second.configuration)
        for session in (one, two):
            told = session._ledger.strategy.told
            assert [o.configuration for o in told] == [first.configuration, second.configuration]
            assert [o.metrics for o in told] == [{"time": 1.0}, {}]
            best = session._ledger.best
            assert best is not None and best.configuration == first.configuration


def test_ask_and_tell(tmp_path: Path) -> None:
    with autotune.ask_tell(spec(tmp_path), store=tmp_path / "study.db", strategy="random") as session:
        first, second, third = session.ask(3)
        session.tell(first, time=[3.0, 3.1, 3.2])
        session.tell(second, status="infeasible", message="refused")
        assert session.tell(third, time=float("nan")).status is Status.DIVERGED
        (forgotten,) = session.ask()
        assert session.result().best == first.configuration
        with pytest.raises(autotune.InputError, match="time"):
            session.tell(forgotten, tme=1.0)
    with autotune.ask_tell(spec(tmp_path), store=tmp_path / "study.db", strategy="random") as session:
        (again,) = session.ask()
        assert again.configuration == forgotten.configuration, (
            "a trial that was never told is handed out again"
        )
    with Store.open(str(tmp_path / "study.db")) as store:
        statuses = [str(t.status) for t in store.trials(store.study("bowl").id)]
    assert sorted(statuses) == ["diverged", "infeasible", "lost", "ok"]


def test_a_session_that_fails_as_it_begins_is_not_left_open(
    tmp_path: Path, search: Callable[..., autotune.Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise StoreError("the reports cannot be read")

    monkeypatch.setattr(session, "make_stopping", broken)
    with pytest.raises(StoreError, match="cannot be read"):
        search(trials=1)
    with Store.open(tmp_path / "study.db") as store:
        (ended,) = store.sessions(store.study().id)
    assert (ended.finished_at is not None, ended.reason) == (True, "crashed")


def test_lost_trials_are_handed_out_although_a_proposal_failed(tmp_path: Path) -> None:
    given = spec(tmp_path)
    environment = capture_environment(given)
    with Store.open(tmp_path / "study.db") as store:
        study = open_study(given, store, environment)
        first = Ledger(given, store, study, environment)
        (lost,) = first.propose()
        first.close("interrupted")
        ledger = Ledger(given, store, study, environment)
        ask = ledger.strategy.ask

        def broken(n: int = 1) -> list[Proposal]:
            raise StoreError("not now")

        ledger.strategy.ask = broken  # type: ignore[method-assign]
        with pytest.raises(StoreError):
            ledger.propose(2)
        ledger.strategy.ask = ask  # type: ignore[method-assign]
        again = ledger.propose(2)
        assert again[0].id == lost.id and len(again) == 2
        ledger.close("closed")


class Forgetful(Store):
    """Cannot tell what a study came to, as where the disk fails."""

    def results_from(self, study_id: int, first: int) -> tuple[int, list[ResultRecord]]:
        raise StoreError("not now")


def test_a_search_that_cannot_take_up_its_study_is_over(tmp_path: Path) -> None:
    """Its session stayed open: for as long as the process lived, nobody else could have its lost trial."""
    given = spec(tmp_path)
    environment = capture_environment(given)
    with Forgetful.open(tmp_path / "study.db") as failing, Store.open(tmp_path / "study.db") as store:
        study = open_study(given, store, environment)
        first = Ledger(given, store, study, environment)
        first.propose()
        first.close("interrupted")
        with pytest.raises(StoreError):
            Ledger(given, failing, study, environment)
        assert [session.reason for session in store.sessions(study.record.id)] == ["interrupted", "crashed"]
        assert [trial.status for trial in store.trials(study.record.id)] == [Status.LOST]


def test_measuring_the_finalists_again_is_no_time_of_searching(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    result = search(trials=5)
    searched = [trial.finished_at for trial in result.trials if trial.purpose == "search"]
    with Store.open(tmp_path / "study.db") as store:
        study = store.study()
        assert len(store.trials(study.id, purpose="final")) > 0
        (session,) = store.sessions(study.id)
        assert seconds_searched(store, study.id) == max(searched) - session.started_at
