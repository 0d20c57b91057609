"""Reading trials and readings back, on a file, in memory and on a PostgreSQL server."""

from __future__ import annotations

from dataclasses import asdict

from autotune.status import Status
from autotune.store.records import ResultRecord
from autotune.store.store import Store
from tests.store.build import Clock, bench, outcome, results


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


class TestResultsOfOthers:
    def test_each_is_heard_of_once_in_the_order_of_finishing(self, store: Store) -> None:
        b = bench(store)
        mine = store.open_session(b.study.id, {}, "e", 1, "h")
        assert store.results_of_others(b.study.id, mine, -1) == (-1, [])
        first, second, third = (b.trial(tile) for tile in (1, 2, 3))
        store.finish(third.id, outcome(value=0.25))
        store.finish(first.id, outcome(Status.OUT_OF_MEMORY, peak_memory=2**33))
        last, heard = store.results_of_others(b.study.id, mine, -1)
        assert (last, [r.number for r in heard]) == (1, [2, 0])
        assert store.results_of_others(b.study.id, mine, last) == (1, [])
        store.finish(second.id, outcome())
        last, heard = store.results_of_others(b.study.id, mine, last)
        assert (last, [r.number for r in heard]) == (2, [1])

    def test_it_says_what_the_record_says(self, store: Store) -> None:
        b = bench(store)
        mine = store.open_session(b.study.id, {}, "e", 1, "h")
        store.finish(b.trial(1).id, outcome(Status.OUT_OF_MEMORY, peak_memory=2**33))
        store.finish(b.trial(2).id, outcome())
        _, heard = store.results_of_others(b.study.id, mine, -1)
        for result, record in zip(heard, results(store, b.study.id), strict=True):
            for name in ResultRecord.__dataclass_fields__:
                assert getattr(result, name) == getattr(record, name)
            assert result.configuration.hash == record.hash

    def test_only_what_others_searched(self, store: Store) -> None:
        b, other = bench(store), bench(store, "other")
        heir = store.open_session(b.study.id, {}, "e", 1, "h")
        store.finish(other.trial(1).id, outcome())
        store.finish(b.trial(1).id, outcome())
        store.finish(b.trial(1, "final").id, outcome())
        store.finish(b.trial(2).id, outcome(Status.LOST))
        assert store.results_of_others(b.study.id, b.session, -1) == (1, [])
        assert [r.number for r in store.results_of_others(b.study.id, heir, -1)[1]] == [0]
        assert store.results_of_others(99, heir, -1) == (-1, [])
