"""A study told as documents and written again, on every database."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from autotune.errors import InputError
from autotune.measure.outcome import Estimate, Reading, Report
from autotune.status import Status
from autotune.store.portable import PARTS, Told
from autotune.store.records import NewAsk
from autotune.store.statements.pruning import WRITTEN
from autotune.store.store import Store
from tests.store.build import Bench, bench, new_study, new_trial, outcome


@pytest.fixture
def made(store: Store) -> Bench:
    """A study with trials that ended well and badly, and one that learned from it."""
    own = bench(store)
    metrics = {"time": Estimate(0.5, 0.4, math.inf, 1, 0.0)}
    readings = (Reading("time", math.nan), Reading("time", 0.1 + 0.2, 0.5, "throttled", {"cpu": 1.0}))
    files = {"source": b"int main;", "diff": b""}
    store.finish(
        own.trial(1).id, outcome(metrics=metrics, readings=readings, artifacts=files), "environment0"
    )
    paused = own.trial(2)
    store.pause(paused.id, 3, outcome(Status.PRUNED, metrics=metrics, facts={"step": 3}))
    store.finish(paused.id, outcome(Status.CRASHED))
    store.report(own.trial(4).id, [Report(1, {"loss": 0.5}), Report(2, {"loss": math.nan})])
    store.finish(own.trial(1, "final").id, outcome())
    store.save_verdict(own.study.id, own.session, {"configuration": {"tile": 1}})
    store.load((), {"environment0": {"machine": {}}}, ())
    store.update_space(own.study.id, "text", {"space": {}}, "space1")
    store.propose(own.place, [new_trial(5)], ask=NewAsk(0, 1, 4, 3))
    return own


def told(store: Store, study: int, places: dict[int, int] | None = None) -> list[Told]:
    return list(store.tell(study, {study: 0} if places is None else places))


def test_it_is_told_part_by_part(store: Store, made: Bench) -> None:
    parts = [part for part, _ in told(store, made.study.id)]
    assert list(dict.fromkeys(parts)) == list(PARTS)
    assert parts.count("trials") == 5 and parts.count("pauses") == 1
    assert parts.count("readings") == 3 and parts.count("reports") == 2


def test_nothing_of_it_is_a_number_of_this_database(store: Store, made: Bench) -> None:
    after = store.create_study(new_study("after", parent_id=made.study.id))
    rows = [*told(store, made.study.id), *told(store, after.id, {made.study.id: 0, after.id: 1})]
    numbers = {"id", "study_id", "session_id", "segment_id", "parent_id", "trial_id"}
    assert not [part for part, document in rows if numbers & document.keys()]
    assert [document["parent"] for part, document in rows if part == "study"] == [None, 0]
    [_, again] = store.load([iter(told(store, made.study.id)), iter(rows[-1:])], {}, [])
    assert store.study(again).parent_id == again - 1


def test_it_is_told_as_of_one_moment(shared_url: str, open_store: Callable[[str], Store]) -> None:
    store, other = open_store(shared_url), open_store(shared_url)
    own = bench(store)
    store.finish(own.trial(1).id, outcome())
    before = told(store, own.study.id)
    rows = store.tell(own.study.id, {own.study.id: 0})
    heard = [next(rows)]
    session = other.open_session(own.study.id, {}, "", 1, "host")
    [late] = other.propose(replace(own.place, session=session), [new_trial(2)])
    assert late is not None and other.finish(late.id, outcome()) == 1
    assert heard + list(rows) == before


def test_what_is_told_and_written_is_told_the_same(store: Store, made: Bench, tmp_path: Path) -> None:
    rows = told(store, made.study.id)
    taken = [document["readings"] for part, document in rows if part == "readings"]
    throttled = ["time", 0.1 + 0.2, 0.5, "throttled", {"cpu": 1.0}]
    assert taken[0] == [["time", None, 0.0, "", None], throttled], "what is no number is null"
    with Store.open(tmp_path / "other.db") as other:
        bench(other, "first")
        [number] = other.load([iter(rows)], {"environment0": {"machine": {}}}, [("source", b"int main;")])
        assert repr(told(other, number)) == repr(told(store, made.study.id))
        assert other.find_same(rows[0][1]) == number
        assert other.integrity() == []
    [again] = store.load([iter(told(store, made.study.id))], {}, [])
    assert again != made.study.id and repr(told(store, again)) == repr(told(store, made.study.id))
    assert store.find_same(rows[0][1]) == again, "of several the newest"
    for name in ("name", "key", "created_at"):
        assert store.find_same(rows[0][1] | {name: rows[0][1][name] * 2}) is None
    assert store.integrity() == []


def test_a_study_of_more_trials_needs_no_more_statements(
    store: Store, made: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else an import of 50,000 trials takes twice as long: that many statements are built and compiled."""
    executed: list[object] = []
    execute = sa.Connection.execute

    def counted(self: sa.Connection, statement: Any, *others: Any, **named: Any) -> Any:
        executed.append(statement)
        return execute(self, statement, *others, **named)

    monkeypatch.setattr(sa.Connection, "execute", counted)
    counts = []
    for number, tiles in enumerate((range(10, 11), range(20, 60))):
        made.propose(*tiles)
        rows = told(store, made.study.id)
        with Store.open(tmp_path / f"{number}.db") as other:
            executed.clear()
            [loaded] = other.load([iter(rows)], {}, [])
            counts.append(len(executed))
            assert repr(told(other, loaded)) == repr(told(store, made.study.id))
    assert counts[0] == counts[1]


def test_sources_are_named_by_their_places(store: Store, made: Bench) -> None:
    later = bench(store, "later")
    settings = {"sources": [{"study": made.study.id, "trials": 2}, {"study": 999, "trials": 1}]}
    store.open_session(later.study.id, settings, "", 1, "host")
    store.propose(later.place, [replace(new_trial(1), reason={"sources": {made.study.label: 0.5}})])
    places = {made.study.id: 0, later.study.id: 1}
    sessions = [row for part, row in told(store, later.study.id, places) if part == "sessions"]
    assert [source["study"] for source in sessions[1]["settings"]["sources"]] == [0, None]
    ids = store.load([iter(told(store, made.study.id)), iter(told(store, later.study.id, places))], {}, [])
    assert store.sessions(ids[1])[1].settings["sources"] == [
        {"study": ids[0], "trials": 2},
        {"study": None, "trials": 1},
    ]
    [trial] = [row for part, row in told(store, later.study.id, places) if part == "trials"]
    assert trial["reason"] == {"sources": {"study:0": 0.5}}
    assert store.trials(ids[1])[0].reason == {"sources": {store.study(ids[0]).label: 0.5}}


def test_a_study_that_cannot_be_written_leaves_no_trace(store: Store, made: Bench) -> None:
    beginning = told(store, made.study.id)[:4]

    def broken() -> Iterator[Told]:
        yield from beginning
        raise InputError("the archive ends here")

    before = len(store.studies())
    with pytest.raises(InputError):
        store.load([broken()], {"environment9": {"machine": {}}}, [("x", b"never")])
    assert len(store.studies()) == before
    assert store.environment("environment9") == {}


# -- deleting


def test_what_nothing_refers_to_goes(store: Store, made: Bench) -> None:
    loose, kept = store.put_artifact(b"loose", "notes"), store.put_artifact(b"manifest", WRITTEN)
    store.load((), {"environment9": {}}, ())
    assert set(store.loose().artifacts) == {loose} and store.loose().environments == ("environment9",)
    store.delete()
    assert store.kind_of(loose) is None and store.kind_of(kept) == WRITTEN
    assert store.environment("environment0") == {"machine": {}}
    assert not store.loose().artifacts and store.integrity() == []


def test_a_study_goes_with_all_that_is_of_it(store: Store, made: Bench) -> None:
    other = bench(store, "other")
    store.finish(other.trial(1).id, outcome(artifacts={"source": b"int main;"}))
    alone = set(store.loose({made.study.id}).artifacts)
    assert len(alone) == 1  # the empty diff; the source is shared with the other study, and with segments
    store.delete([made.study.id])
    assert [study.id for study in store.studies()] == [other.study.id]
    assert store.integrity() == [] and set(store.loose().artifacts) == set()


def test_no_later_study_is_taken_for_a_source_that_is_gone(store: Store, made: Bench) -> None:
    learner, other = bench(store, "other"), bench(store, "third")
    taught = [{"study": made.study.id, "trials": 9}, {"study": other.study.id, "trials": 8, "apart": 0.5}]
    session = store.open_session(learner.study.id, {"seed": 1, "sources": taught}, "e", 1, "host")
    store.delete([other.study.id])
    assert bench(store, "fourth").study.id != other.study.id
    [settings] = [s.settings for s in store.sessions(learner.study.id) if s.id == session]
    assert settings == {"seed": 1, "sources": taught}


def test_the_numbers_of_what_is_gone_are_not_given_again(store: Store, made: Bench) -> None:
    """Notes, recipes and archives name a study, a search or a trial by them."""
    gone = bench(store, "gone")
    trial = gone.trial(1)
    store.delete([gone.study.id])
    next_one = bench(store, "next")
    assert next_one.study.id > gone.study.id
    assert next_one.session > gone.session
    assert next_one.trial(1).id > trial.id


def test_a_session_goes_with_its_trials(store: Store, made: Bench) -> None:
    session = store.open_session(made.study.id, {"verified": []}, "environment5", 1, "host")
    again = Bench(store, made.study, session, made.segment)
    store.finish(again.trial(1, "final").id, outcome())
    before = len(store.trials(made.study.id))
    store.delete(session_ids=[session])
    assert len(store.trials(made.study.id)) == before - 1
    assert session not in [s.id for s in store.sessions(made.study.id)]
    assert store.integrity() == []
