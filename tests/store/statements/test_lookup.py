"""Reading trials and readings back, on a file, in memory and on a PostgreSQL server."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest

from autotune.errors import StoreError
from autotune.status import Status
from autotune.store.records import AskRecord, NewAsk, ResultRecord
from autotune.store.store import Store
from tests.store.build import Clock, bench, configuration, new_trial, outcome, results


class TestLookup:
    def test_readings_of_a_study(self, store: Store) -> None:
        b = bench(store)
        other = bench(store, "other")
        store.finish(other.trial(1).id, outcome(n=4))
        trials = [t for t in b.propose(*range(2500)) if t]
        expected = {}
        for trial in trials[::400]:
            done = outcome(value=float(trial.number), n=1 + trial.number % 3)
            store.finish(trial.id, done)
            expected[trial.id] = done.readings
        assert dict(store.readings_of(b.study.id)) == expected
        assert list(store.readings_of(99)) == []

    def test_filters(self, store: Store) -> None:
        b = bench(store)
        for tile, status in enumerate((Status.OK, Status.TIMEOUT, Status.OK)):
            store.finish(b.trial(tile).id, outcome(status))
        store.finish(b.trial(0, "final").id, outcome())

        def numbers(**wanted: object) -> list[int]:
            return [t.number for t in store.trials(b.study.id, **wanted)]  # type: ignore[arg-type]

        assert numbers(status=Status.OK) == [0, 2, 3]
        assert numbers(status="ok", purpose="search") == [0, 2]
        assert numbers(status=Status.LOST) == []
        assert store.trials(99) == []

    def test_a_record_can_be_taken_apart(self, store: Store) -> None:
        b = bench(store)
        trial = b.trial(1)
        store.finish(trial.id, outcome())
        assert asdict(store.trial(trial.id))["metrics"]["time"]["n"] == 3

    def test_when_each_session_finished_last(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        assert store.last_finished(b.study.id) == {}
        first, second, third = (b.trial(tile) for tile in (1, 2, 3))
        began = clock.now
        for wait, trial in ((2, second), (3, first)):
            clock.advance(wait)
            store.finish(trial.id, outcome())
        store.start(third.id, "w")
        assert store.last_finished(b.study.id) == {b.session: began + 5}

    def test_when_each_session_last_searched(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        searched, measured_again = b.trial(1), b.trial(1, "final")
        began = clock.now
        for trial in (searched, measured_again):
            clock.advance(3)
            store.finish(trial.id, outcome())
        assert store.last_finished(b.study.id, purpose="search") == {b.session: began + 3}
        assert store.last_finished(b.study.id) == {b.session: began + 6}


class TestResults:
    def test_each_is_heard_of_once_in_the_order_of_finishing(self, store: Store) -> None:
        b = bench(store)
        assert store.results_from(b.study.id, 0) == (0, [])
        first, second, third = (b.trial(tile) for tile in (1, 2, 3))
        store.finish(third.id, outcome(value=0.25))
        store.finish(first.id, outcome(Status.OUT_OF_MEMORY, peak_memory=2**33))
        known, heard = store.results_from(b.study.id, 0)
        assert (known, [r.number for r in heard]) == (2, [2, 0])
        assert store.results_from(b.study.id, known) == (2, [])
        store.finish(second.id, outcome())
        known, heard = store.results_from(b.study.id, known)
        assert (known, [r.number for r in heard]) == (3, [1])

    def test_it_says_what_the_record_says(self, store: Store) -> None:
        b = bench(store)
        store.finish(b.trial(1).id, outcome(Status.OUT_OF_MEMORY, peak_memory=2**33))
        store.finish(b.trial(2).id, outcome())
        _, heard = store.results_from(b.study.id, 0)
        for result, record in zip(heard, results(store, b.study.id), strict=True):
            for name in ResultRecord.__dataclass_fields__.keys() - {"paused"}:
                assert getattr(result, name) == getattr(record, name)
            assert result.configuration.hash == record.hash

    def test_only_what_was_searched(self, store: Store) -> None:
        b, other = bench(store), bench(store, "other")
        store.finish(other.trial(1).id, outcome())
        store.finish(b.trial(1).id, outcome())
        store.finish(b.trial(1, "final").id, outcome())
        store.finish(b.trial(2).id, outcome(Status.LOST))
        known, heard = store.results_from(b.study.id, 0)
        assert (known, [r.number for r in heard]) == (2, [0])
        assert store.results_from(99, 0) == (0, [])


class TestProposed:
    def test_each_is_heard_of_once_by_number(self, store: Store) -> None:
        b = bench(store)
        assert store.proposed_from(b.study.id, 0) == (0, [])
        b.propose(4, 2)
        known, heard = store.proposed_from(b.study.id, 0)
        assert (known, [(n, c["tile"]) for n, c in heard]) == (2, [(0, 4), (1, 2)])
        assert store.proposed_from(b.study.id, known) == (2, [])
        b.trial(4, "final")
        b.propose(8)
        known, heard = store.proposed_from(b.study.id, known)
        assert (known, heard) == (4, [(3, configuration(8))])
        assert heard[0][1].hash == configuration(8).hash

    def test_a_study_that_is_not_there_has_none(self, store: Store) -> None:
        assert store.proposed_from(99, 0) == (0, [])


class TestHeardBefore:
    def test_finished_ones_in_the_order_of_results_and_paused_ones(self, store: Store) -> None:
        b, other = bench(store), bench(store, "other")
        store.finish(other.trial(9).id, outcome())
        trials = [b.trial(tile) for tile in range(4)]
        store.finish(trials[2].id, outcome())
        store.pause(trials[0].id, 3, outcome())
        store.pause(trials[1].id, 3, outcome())
        store.finish(b.trial(2, "final").id, outcome())
        store.finish(trials[0].id, outcome(Status.CRASHED))
        assert store.heard_before(b.study.id, 0) == ([], set())
        assert store.heard_before(b.study.id, 2) == ([2], {0})
        assert store.heard_before(b.study.id, 3) == ([2], {0, 1})
        assert store.heard_before(b.study.id, None) == ([2, 0], {1})


def test_what_was_made_from_a_configuration(store: Store) -> None:
    b, other = bench(store), bench(store, "other")
    digest = configuration(1).hash
    reasons = [{"parent": digest}, {"other": digest}, {"seen": digest}, {"parent": digest[:-1]}, {}]
    new = [replace(new_trial(tile), reason=reason) for tile, reason in enumerate(reasons)]
    for one in (b, other):
        store.propose(one.place, new)
    store.propose(b.place, [replace(new_trial(9, "final"), reason={"parent": digest})])
    assert store.made_from(b.study.id, digest) == [0, 1]
    assert store.made_from(b.study.id, "none") == []


class TestAsks:
    def test_what_was_known_stands_beside_what_came_of_it(self, store: Store) -> None:
        b, other = bench(store), bench(store, "other")
        rival = store.open_session(b.study.id, {}, "e", 1, "h")
        ask = NewAsk(number=7, wanted=4, trials_known=2, results_known=1)
        store.propose(other.place, [new_trial(1)], ask=ask)
        b.propose(1)  # nobody asked
        store.propose(replace(b.place, session=rival), [new_trial(1), new_trial(2), new_trial(3)], ask=ask)
        store.propose(b.place, [new_trial(2)], ask=NewAsk(8, 1, 3, 0))
        assert store.asks(b.study.id) == [
            AskRecord(7, 4, 2, 1, session_id=rival, trials=(None, 1, 2)),
            AskRecord(8, 1, 3, 0, session_id=b.session, trials=(None,)),
        ]
        assert store.asks(b.study.id, 8) == store.asks(b.study.id)[1:] and store.asks(b.study.id, 9) == []

    def test_an_ask_is_kept_with_its_trials_or_not_at_all(self, store: Store) -> None:
        b = bench(store)
        with pytest.raises(StoreError):
            store.propose(replace(b.place, session=99), [], ask=NewAsk(0, 1, 0, 0))
        assert store.asks(b.study.id) == []
