"""The life of a trial, on a file, in memory and on a PostgreSQL server."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from autotune.errors import InputError, StoreError
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.store import LEASE_SECONDS, Store
from tests.store.build import Clock, bench, configuration, new_trial, outcome, results


class TestProposing:
    def test_reads_back_what_was_proposed(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        trial = b.trial(4)
        assert trial == store.trial(trial.id)
        assert trial.configuration == configuration(4)
        assert isinstance(trial.configuration, Configuration)
        assert trial.configuration["order"] == ("i", "j")
        assert trial.hash == configuration(4).hash
        assert (trial.status, trial.number, trial.attempt, trial.told) == (Status.WAITING, 0, 1, None)
        assert (trial.strategy, trial.ask, trial.knew) == ("random", 3, 2)
        assert trial.reason == new_trial(4).reason
        assert (trial.session_id, trial.segment_id) == (b.session, b.segment)
        assert trial.proposed_at == clock.now
        assert trial.started_at is trial.finished_at is None

    def test_numbers_count_up_within_each_study(self, store: Store) -> None:
        one, two = bench(store, "one"), bench(store, "two")
        assert [t.number for t in one.propose(5, 6, 7) if t] == [0, 1, 2]
        assert [t.number for t in two.propose(5) if t] == [0]
        assert [t.number for t in one.propose(8) if t] == [3]
        assert [t.configuration["tile"] for t in store.trials(one.study.id)] == [5, 6, 7, 8]

    def test_a_configuration_is_searched_once_in_a_study(self, store: Store) -> None:
        one, two = bench(store, "one"), bench(store, "two")
        one.propose(1)
        answers = one.propose(1, 2, 2, 3)
        assert [t and t.number for t in answers] == [None, 1, None, 2]
        assert one.propose(1, 2) == [None, None]
        assert two.propose(1) != [None]

    def test_replicates_are_deliberate(self, store: Store) -> None:
        b = bench(store)
        b.propose(1)
        again = b.propose(1, 1, purpose="final") + b.propose(1, purpose="default")
        assert [t and t.number for t in again] == [1, 2, 3]
        assert b.propose(1) == [None]
        assert len(store.trials(b.study.id, purpose="search")) == 1
        assert [t.purpose for t in store.trials(b.study.id)] == ["search", "final", "final", "default"]

    def test_a_thousand_at_once(self, store: Store) -> None:
        b = bench(store)
        b.propose(*range(0, 3000, 2))
        answers = b.propose(*range(3000))
        assert sum(t is not None for t in answers) == 1500
        assert [t.number for t in store.trials(b.study.id)] == list(range(3000))

    def test_a_worker_can_begin_at_once(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        [trial] = store.propose(b.place, [new_trial(1)], worker="ask-tell")
        assert trial is not None
        assert trial == store.trial(trial.id)
        assert (trial.status, trial.worker, trial.started_at) == (Status.RUNNING, "ask-tell", clock.now)
        assert store.finish(trial.id, outcome(worker="")) == 0
        assert store.trial(trial.id).worker == "ask-tell"

    def test_nothing_is_proposed_for_no_proposals(self, store: Store) -> None:
        assert bench(store).propose() == []

    def test_a_study_that_is_not_there(self, store: Store) -> None:
        b = bench(store)
        with pytest.raises(InputError, match="no study #99"):
            store.propose(replace(b.place, study=99), [new_trial(1)])

    def test_a_session_that_is_not_there_writes_nothing(self, store: Store) -> None:
        b = bench(store)
        with pytest.raises(StoreError, match="does not hold"):
            store.propose(replace(b.place, session=99), [new_trial(1)])
        assert store.trials(b.study.id) == []
        assert b.trial(1).number == 0


class TestFinishing:
    def test_reads_back_the_whole_outcome(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        trial = b.trial(4)
        clock.advance(1)
        store.start(trial.id, "worker-7", 10)
        clock.advance(2)
        done = outcome(
            Status.CRASHED,
            phase="measure",
            stderr="Segmentation fault\n",
            signal=11,
            exit_code=-11,
            peak_memory=5 * 2**40,
            facts={"bytes": 12, "cores": [0, 1], "nested": {"a": None, "b": True}},
            artifacts={"source": b"int x;" * 100, "binary": bytes(range(256))},
            worker="",
        )
        assert store.finish(trial.id, done, "environment1") == 0
        record = store.trial(trial.id)
        for name in ("status", "metrics", "phases", "message", "phase", "stderr", "facts"):
            assert getattr(record, name) == getattr(done, name)
        assert (record.signal, record.exit_code, record.peak_memory) == (11, -11, 5 * 2**40)
        assert (record.started_at, record.finished_at) == (trial.proposed_at + 1, trial.proposed_at + 3)
        assert (record.worker, record.environment_hash) == ("worker-7", "environment1")
        assert record.reading_count == 3
        assert store.readings(trial.id) == done.readings
        assert {role: store.artifact(h) for role, h in record.artifacts.items()} == done.artifacts

    def test_metrics_keep_every_bit(self, store: Store) -> None:
        b = bench(store)
        exact = Estimate(0.1 + 0.2, 1e-300, 1.7976931348623157e308, 7, 5e-324)
        store.finish(b.trial(1).id, Outcome(Status.OK, {"time": exact, "error": exact}))
        [record] = store.trials(b.study.id)
        assert record.metrics == {"time": exact, "error": exact}

    def test_results_are_numbered_as_they_finish(self, store: Store) -> None:
        b = bench(store)
        first, second, third = (b.trial(tile) for tile in (1, 2, 3))
        assert store.finish(third.id, outcome()) == 0
        assert store.finish(first.id, outcome(Status.TIMEOUT)) == 1
        assert store.finish(second.id, outcome()) == 2
        assert [t.number for t in results(store, b.study.id)] == [2, 0, 1]

    def test_the_first_result_counts(self, store: Store) -> None:
        b = bench(store)
        trial = b.trial(1)
        assert store.finish(trial.id, outcome(value=0.5)) == 0
        assert store.finish(b.trial(2).id, outcome()) == 1
        before = store.trial(trial.id)
        for late in (outcome(value=9.0), outcome(Status.LOST), outcome(Status.CRASHED)):
            assert store.finish(trial.id, late) == 0
        store.start(trial.id, "too late")
        store.renew([trial.id])
        assert store.trial(trial.id) == before
        assert store.readings(trial.id) == outcome(value=0.5).readings

    def test_numbers_that_are_none(self, store: Store) -> None:
        b = bench(store)
        trial = b.trial(1)
        odd = (Reading("loss", math.nan), Reading("loss", math.inf, math.nan), Reading("loss", -math.inf))
        metrics = {"loss": Estimate(math.nan, -math.inf, math.inf, 3)}
        store.finish(trial.id, Outcome(Status.DIVERGED, metrics, odd, facts={"loss": math.nan}))
        record, readings = store.trial(trial.id), store.readings(trial.id)
        assert [str(r.value) for r in readings] == ["nan", "inf", "-inf"]
        assert math.isnan(readings[1].at)
        assert math.isnan(record.metrics["loss"].value)
        assert record.metrics["loss"].high == math.inf

    def test_no_text_is_refused(self, store: Store) -> None:
        b = bench(store)
        trial = b.trial(1)
        undecodable = b"caf\xe9 \xff".decode("utf-8", "surrogateescape")
        ugly = f"a\0b {undecodable} ☃ 𝄞"
        facts = {"text": ugly, ugly: 1}
        readings = (Reading(ugly, 1.0, discarded=ugly),)
        store.finish(
            trial.id, outcome(Status.CRASHED, message=ugly, stderr=ugly, facts=facts, readings=readings)
        )
        record = store.trial(trial.id)
        assert record.message == record.stderr == "a␀b caf? ? ☃ 𝄞"
        assert record.facts == facts
        assert store.readings(trial.id)[0].discarded == record.message

    def test_no_fact_is_refused(self, store: Store, tmp_path: object) -> None:
        b = bench(store)
        trial = b.trial(1)
        circle: list[object] = []
        circle.append(circle)
        facts = {
            "numpy": np.float32(0.5),
            "array": np.arange(3),
            "path": tmp_path,
            "set": {2, 1},
            "map": configuration(1),
            "circle": circle,
            (1, 2): "a key that is no text",
        }
        reading = Reading("time", np.float32(0.25), np.float64(1.0), "", {"mhz": np.int64(2900)})
        store.finish(trial.id, outcome(facts=facts, readings=(reading,), phases={"measure": np.float64(1.5)}))
        record = store.trial(trial.id)
        kept = {name: record.facts[name] for name in ("numpy", "array", "path", "set")}
        assert kept == {"numpy": 0.5, "array": [0, 1, 2], "path": str(tmp_path), "set": [1, 2]}
        assert record.facts["map"]["tile"] == 1
        assert record.facts["(1, 2)"] == "a key that is no text"
        assert record.phases == {"measure": 1.5}
        assert store.readings(trial.id) == (Reading("time", 0.25, 1.0, "", {"mhz": 2900}),)

    def test_an_unfinished_status_is_no_outcome(self, store: Store) -> None:
        trial = bench(store).trial(1)
        with pytest.raises(ValueError, match="running"):
            store.finish(trial.id, outcome(Status.RUNNING))

    def test_a_trial_that_is_not_there(self, store: Store) -> None:
        for call in (
            lambda: store.finish(99, outcome()),
            lambda: store.start(99, "w"),
            lambda: store.retry(99),
            lambda: store.trial(99),
        ):
            with pytest.raises(InputError, match="no trial with the id 99"):
                call()
        assert store.readings(99) == ()
        with pytest.raises(InputError, match="no trial"):
            store.trial(10**30)


class TestLeases:
    def test_a_lease_that_ran_out_makes_it_lost(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        waiting, running, finished = (b.trial(tile) for tile in (1, 2, 3))
        store.start(running.id, "w", lease_seconds=10)
        store.finish(finished.id, outcome())
        assert store.expire(b.study.id, clock.now + 9.9) == []
        [lost] = store.expire(b.study.id, clock.now + 10)
        assert (lost.id, lost.status) == (running.id, Status.LOST)
        assert "sign of life" in lost.message
        assert store.expire(b.study.id, clock.now + 10) == []
        assert [t.id for t in store.expire(b.study.id, clock.now + LEASE_SECONDS)] == [waiting.id]
        assert store.trial(finished.id).status is Status.OK

    def test_a_renewed_lease_holds(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        trials = [b.trial(tile).id for tile in range(3)]
        store.start(trials[0], "w", 10)
        clock.advance(8)
        store.renew(trials[:2], 100)
        store.renew([], 100)
        clock.advance(60)
        assert [t.id for t in store.expire(b.study.id, clock.now)] == trials[2:]
        assert store.expire(b.study.id, clock.now + 39) == []
        assert [t.id for t in store.expire(b.study.id, clock.now + 40)] == trials[:2]

    def test_what_a_living_session_has_is_left_to_it(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        other = store.open_session(b.study.id, {}, "e", 1, "h")
        [mine, (theirs,)] = b.trial(1), store.propose(replace(b.place, session=other), [new_trial(3)])
        clock.advance(LEASE_SECONDS)
        assert [t.id for t in store.expire(b.study.id, clock.now, alive=[other])] == [mine.id]
        assert theirs is not None and store.trial(theirs.id).status is Status.WAITING
        assert [t.id for t in store.expire(b.study.id, clock.now)] == [theirs.id]

    def test_closing_a_session_ends_its_leases(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        other = store.open_session(b.study.id, {}, "e", 1, "h")
        mine = b.propose(1, 2)
        store.propose(replace(b.place, session=other), [new_trial(3)])
        store.close_session(b.session, "interrupted")
        lost = store.expire(b.study.id, clock.now)
        assert [t.id for t in lost] == [t.id for t in mine if t]
        assert all("session ended" in t.message for t in lost)

    def test_a_late_result_is_accepted(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        trial = b.trial(1)
        store.start(trial.id, "w", 10)
        store.expire(b.study.id, clock.now + 10)
        assert store.finish(trial.id, outcome()) == 0
        record = store.trial(trial.id)
        assert (record.status, record.message, record.attempt) == (Status.OK, "", 1)
        assert store.retry(trial.id) is None

    def test_a_lost_trial_is_tried_again_by_one(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        trial = b.trial(1)
        store.close_session(b.session, "crashed")
        store.expire(b.study.id, clock.now)
        heir = store.open_session(b.study.id, {}, "e", 1, "h")
        segment = store.open_segment(b.study.id, {}, {}, "changed")
        again = store.retry(trial.id, session_id=heir, segment_id=segment.id)
        assert again is not None
        assert again == store.trial(trial.id)
        assert (again.status, again.attempt, again.number) == (Status.WAITING, 2, trial.number)
        assert (again.session_id, again.segment_id) == (heir, segment.id)
        assert store.retry(trial.id, session_id=b.session) is None
        assert store.expire(b.study.id, clock.now) == []

    def test_an_outcome_that_is_lost_is_no_result(self, store: Store) -> None:
        b = bench(store)
        trial = b.trial(1)
        assert store.finish(trial.id, outcome(Status.LOST, n=2)) == -1
        record = store.trial(trial.id)
        assert (record.status, record.told, record.message) == (Status.LOST, None, "it ended as lost")
        assert results(store, b.study.id) == []
        assert store.retry(trial.id) is not None
        assert store.finish(trial.id, outcome(n=1)) == 0
        assert [r.discarded for r in store.readings(trial.id)] == ["lost", "lost", ""]
        assert store.integrity() == []

    def test_a_lost_trial_that_nobody_came_to_again_still_says_why(self, store: Store, clock: Clock) -> None:
        """A search that only waited for its turn had put 'its session ended' in the place of the reason."""
        b = bench(store)
        first, second = b.trial(1), b.trial(2)
        for trial in first, second:
            store.finish(trial.id, outcome(Status.LOST))
            assert store.retry(trial.id, session_id=b.session) is not None
        store.start(second.id, "w", 10)
        store.close_session(b.session, "done")
        store.expire(b.study.id, clock.now)
        messages = [store.trial(trial.id).message for trial in (first, second)]
        assert messages == ["it ended as lost", "its session ended before it did"]

    def test_what_is_read_of_a_trial_that_goes_on_is_kept(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        trial, other = b.trial(1), b.trial(2)
        taken = outcome(n=3).readings
        store.keep_readings([(other.id, 0, taken[:1]), (trial.id, 0, taken[:2])], 10)
        for _ in range(2):  # the second time after a doubt whether it had been done
            store.keep_readings([(trial.id, 2, taken[2:])], 10)
        assert store.readings(trial.id) == taken and store.trial(trial.id).reading_count == 3
        assert store.expire(b.study.id, clock.now + 9) == [], "it is alive"
        assert store.finish(trial.id, outcome(n=1)) == 0
        store.keep_readings([(trial.id, 3, taken)])
        assert [r.value for r in store.readings(trial.id)] == [*(r.value for r in taken), taken[0].value]
        assert [t.id for t in store.expire(b.study.id, clock.now + 10)] == [other.id]
        assert [r.discarded for r in store.readings(other.id)] == ["lost"]
        assert store.finish(other.id, outcome(Status.LOST, n=1)) == -1
        assert [r.discarded for r in store.readings(other.id)] == ["lost", "lost"]
        assert store.integrity() == []

    def test_what_a_late_result_of_a_finale_was_read_from_counts_again(
        self, store: Store, clock: Clock
    ) -> None:
        """A reading of a training takes longer than a lease, and another node may search meanwhile."""
        b = bench(store)
        final, searched = b.trial(1, "final"), b.trial(2)
        taken = outcome(n=3).readings
        throttled = replace(taken[1], discarded="throttled")
        store.keep_readings([(final.id, 0, (taken[0], throttled)), (searched.id, 0, taken[:1])], 10)
        assert len(store.expire(b.study.id, clock.now + 10)) == 2
        store.keep_readings([(final.id, 2, taken[2:])], 10)
        for trial in (final, searched):
            store.finish(trial.id, outcome(n=1))
        assert [r.discarded for r in store.readings(final.id)] == ["", "throttled", "", ""]
        assert [r.discarded for r in store.readings(searched.id)] == ["lost", ""]
        assert store.integrity() == []

    def test_a_worker_that_begins_is_alive(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        trial = b.trial(1)
        store.expire(b.study.id, clock.now + LEASE_SECONDS)
        store.start(trial.id, "slow queue", 10)
        record = store.trial(trial.id)
        assert (record.status, record.worker, record.message) == (Status.RUNNING, "slow queue", "")
