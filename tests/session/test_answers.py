"""The answer of a long study, of which not all is read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autotune.cli import best, prune, show
from autotune.measure.facts import READY_THREADS
from autotune.measure.outcome import Estimate
from autotune.session.answers import load_best, load_front, load_result
from autotune.status import Status
from autotune.store.reader import StoreReader
from autotune.store.records import Purpose, StudyRecord, TrialRecord
from autotune.store.store import Store
from tests.cli.calling import call
from tests.store.build import Bench, bench, new_study, outcome

GOALS = [{"name": "time", "goal": "minimize", "unit": "s"}, {"name": "rate", "goal": "maximize", "unit": ""}]
POINTS = ((2.0, 5.0), (1.0, 3.0), (3.0, 5.0), (1.0, 3.0), (0.5, None), (0.1, math.nan), (9.0, math.inf))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "study.db") as opened:
        yield opened


def study_with(store: Store, goals: int, *others: Status) -> StudyRecord:
    """``POINTS``, then trials that ended otherwise, one of which had too few cores, and a final run."""
    study = store.create_study(new_study(metrics=GOALS[:goals]))
    made = bench(store, "another")
    session = store.open_session(study.id, {}, "environment0", 1, "host")
    segment = store.open_segment(study.id, {}, {}, "the study begins")
    own = Bench(store, study, session, segment.id)
    crowded = {READY_THREADS: 4, "cores": [0, 1]}
    for tile, (time, rate) in enumerate(POINTS if not others else ()):
        read = {"time": time} | ({} if rate is None else {"rate": rate})
        metrics = {name: Estimate(value, value, value, 1) for name, value in read.items()}
        store.finish(own.trial(tile).id, outcome(metrics=metrics, facts=crowded if tile == 2 else {}))
    for tile, status in enumerate(others or (Status.CRASHED, Status.WRONG), 50):
        store.finish(own.trial(tile).id, outcome(status, message="no", facts={"said": f'"{READY_THREADS}":'}))
    store.finish(own.trial(1, "final").id, outcome(facts=crowded))
    store.finish(made.trial(1).id, outcome(facts=crowded))
    return store.study(study.id)


@pytest.mark.parametrize("goals", [1, 2])
def test_the_answer_is_that_of_all_trials_and_the_search_is_not_read_in_full(
    store: Store, goals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_with(store, goals)
    expected = load_result(store, study)
    assert expected.remark.startswith("trial 2 had 4 threads")
    front = tuple(expected.front)
    read_in_full: list[object] = []
    trials = StoreReader.trials

    def watched(
        self: StoreReader, study_id: int, purpose: Purpose | None = None, status: Any = None
    ) -> list[TrialRecord]:
        read_in_full.append(purpose)
        return trials(self, study_id, purpose, status)

    monkeypatch.setattr(StoreReader, "trials", watched)
    found = load_best(store, study, front=True)
    assert found.to_document() == expected.to_document()
    # As texts: a number that is none does not equal itself.
    assert repr(found.front) == repr(front) == repr(load_front(store, study))
    assert len(front) == (1 if goals == 1 else 3)
    assert load_best(store, study, front=False).trials == ()
    assert not {None, "search"} & set(read_in_full)


def test_where_nothing_succeeded_the_commonest_failure_is_said(store: Store) -> None:
    study = study_with(store, 1, Status.CRASHED, Status.CRASHED, Status.WRONG)
    assert load_front(store, study) == ()
    found = load_best(store, study, front=True)
    assert found.why_nothing == "2 of 3 ended as crashed, as trial 0: no"
    assert found.to_document() == load_result(store, study).to_document()


def test_where_nothing_failed_it_is_said_why_the_rest_was_stopped(store: Store) -> None:
    """Of brackets of which none was whole when the time was up, the three lost trials alone were named."""
    study = study_with(store, 1, Status.PRUNED, Status.PRUNED, Status.LOST)
    assert load_best(store, study, front=False).why_nothing == "2 of 3 ended as pruned, as trial 0: no"


def test_best_show_and_prune_read_no_search_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path / "study.db") as store:
        study = study_with(store, 2)

    def refuse(*_: object) -> list[TrialRecord]:
        raise AssertionError("a study of 50,000 trials takes 300 MB to read")

    monkeypatch.setattr(StoreReader, "trials", refuse)
    place = ("--store", tmp_path / "study.db")
    shown = call(best.command, study.label, "--front", *place)
    assert shown.exception is None and shown.stdout.count("# trial") == 3
    assert "\ntrial 2 had 4 threads" in call(show.command, study.label, *place).stdout
    pruned = call(prune.command, "--study", study.label, *place)
    assert pruned.exception is None, pruned.exception
    assert "with 9 trials and 1 measurement again" in pruned.stdout
    assert "depends on it: its best trial, which is a recipe" in pruned.stdout


@pytest.mark.parametrize(("checked", "said"), [({}, True), ({"error": 0.5}, False)])
def test_no_check_is_missed_of_a_winner_that_was_lost(
    store: Store, checked: dict[str, float], said: bool
) -> None:
    """Its metrics are those of the finale, which has checked it."""
    metrics = [GOALS[0], {"name": "error", "goal": None, "unit": "", "at_most": 1.0}]
    study = store.create_study(new_study(metrics=metrics))
    session = store.open_session(study.id, {}, "environment0", 1, "host")
    own = Bench(store, study, session, store.open_segment(study.id, {}, {}, "the study begins").id)
    trial = own.trial(1)
    store.finish(trial.id, outcome(Status.LOST))
    values = {"time": 1.0, **checked}
    read = {name: {"value": value, "low": value, "high": value, "n": 3} for name, value in values.items()}
    won = {"configuration": dict(trial.configuration), "metrics": read, "is_default": True}
    store.save_verdict(study.id, session, won)
    assert ("reported error, so its bound was not checked" in load_result(store, study).remark) is said


def test_a_search_ends_with_its_own_answer(store: Store) -> None:
    """Another one of the same study, on another machine, may come to its own a moment later."""
    study = study_with(store, 1)
    (trial,) = store.numbered(study.id, [0])
    for host, seconds in (("one", 1.0), ("other", 2.0)):
        session = store.open_session(study.id, {}, "environment0", 1, host)
        read = {"time": {"value": seconds, "low": seconds, "high": seconds, "n": 3}}
        won = {"configuration": dict(trial.configuration), "metrics": read, "is_default": True}
        store.save_verdict(study.id, session, won)
        assert load_result(store, study, "", session).metrics["time"].value == seconds
    assert load_result(store, study).metrics["time"].value == 2.0
    assert load_result(store, study, "", session - 1).metrics["time"].value == 1.0
    assert load_result(store, study, "", session + 1).metrics["time"].value == 2.0
