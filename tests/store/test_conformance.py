"""What every backend must do. Each test runs on a file, in memory and on a PostgreSQL server."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from autotune.errors import InputError, StoreError
from autotune.measure.outcome import Estimate, Outcome, Reading
from autotune.space.configuration import Configuration
from autotune.status import Status
from autotune.store.store import LEASE_SECONDS, Store
from tests.store import postgres
from tests.store.build import Clock, bench, configuration, new_study, new_trial, outcome

OpenStore = Callable[[str], Store]


class TestStudies:
    def test_reads_back_what_was_created(self, store: Store, clock: Clock) -> None:
        new = new_study(replayed=True, differs={"machine": ["a", "b"]})
        created = store.create_study(new)
        assert store.study(created.id) == created
        assert {name: getattr(created, name) for name in vars(new)} == vars(new)
        assert created.created_at == clock.now
        assert created.counts == {}

    def test_a_name_means_its_newest_study(self, store: Store) -> None:
        first, second = (store.create_study(new_study(key=key)) for key in ("a", "b"))
        other = store.create_study(new_study("other", parent_id=first.id))
        assert store.study("gemm") == second
        assert store.study(f"gemm#{first.id}") == first
        assert store.study(f"#{first.id}") == first
        assert store.study(str(first.id)) == first
        assert store.study(first.label) == first
        assert store.study() == other
        assert store.studies() == [first, second, other]
        assert store.studies("gemm") == [first, second]

    def test_a_name_that_looks_like_an_id_is_a_name_first(self, store: Store) -> None:
        store.create_study(new_study("gemm"))
        named = store.create_study(new_study("1"))
        tagged = store.create_study(new_study("gemm#1"))
        assert store.study("1") == named
        assert store.study("gemm#1") == tagged

    @pytest.mark.parametrize("wanted", ["gem", "other#1", "gemm#99", "#99", 99, "gemm#", "", "9" * 40])
    def test_an_unknown_study_is_the_users_mistake(self, store: Store, wanted: str | int) -> None:
        store.create_study(new_study("gemm"))
        with pytest.raises(InputError, match="there is no study") as caught:
            store.study(wanted)
        assert "gemm" in caught.value.problems[0].expected

    def test_names_the_nearest_study(self, store: Store) -> None:
        store.create_study(new_study("hotspot"))
        store.create_study(new_study("gemm-c"))
        with pytest.raises(InputError, match="did you mean 'gemm-c'"):
            store.study("gem-c#1")

    def test_an_empty_store_says_so(self, store: Store) -> None:
        assert store.studies() == []
        with pytest.raises(InputError, match="no study in this store yet"):
            store.study()

    def test_finds_the_newest_of_a_key(self, store: Store) -> None:
        store.create_study(new_study(key="a"))
        second = store.create_study(new_study(key="a"))
        store.create_study(new_study(key="b"))
        assert store.find_study("gemm", "a") == second
        assert store.find_study("gemm", "c") is None
        assert store.find_study("other", "a") is None

    def test_a_living_study_keeps_its_earlier_spaces(self, store: Store, clock: Clock) -> None:
        study = store.create_study(new_study())
        store.update_space(study.id, "second", {"space": 2}, "space2")
        clock.advance(5)
        store.update_space(study.id, "third", {"space": 3}, "space3")
        now = store.study(study.id)
        assert (now.spec_text, now.document, now.space_hash) == ("third", {"space": 3}, "space3")
        first, second = store.space_revisions(study.id)
        assert (first.spec_text, first.document) == (study.spec_text, study.document)
        assert (second.spec_text, second.space_hash, second.replaced_at) == ("second", "space2", clock.now)
        with pytest.raises(InputError):
            store.update_space(99, "x", {}, "x")

    def test_counts_search_trials_by_status(self, store: Store) -> None:
        one, two = bench(store, "one"), bench(store, "two")
        trials = [one.trial(tile) for tile in range(4)]
        one.trial(0, "final")
        two.trial(0)
        store.start(trials[0].id, "w")
        store.finish(trials[1].id, outcome())
        assert [dict(s.counts) for s in store.studies()] == [
            {"waiting": 2, "running": 1, "ok": 1},
            {"waiting": 1},
        ]
        assert store.count_trials(one.study.id) == 4
        assert store.study("two").counts == {"waiting": 1}


class TestSegmentsSessionsVerdicts:
    def test_segments_are_numbered_and_freeze_files(self, store: Store) -> None:
        study = store.create_study(new_study())
        assert store.latest_segment(study.id) is None
        first = store.open_segment(study.id, {"commit": "a"}, {"diff": b"-1+2", "main.c": b"int"}, "begins")
        second = store.open_segment(study.id, {"commit": "b"}, {"main.c": b"int"}, "changed")
        assert (first.number, second.number) == (0, 1)
        assert store.latest_segment(study.id) == second
        assert store.segment(first.id) == first
        assert {role: store.artifact(h) for role, h in first.artifacts.items()} == {
            "diff": b"-1+2",
            "main.c": b"int",
        }
        assert first.artifacts["main.c"] == second.artifacts["main.c"]
        with pytest.raises(InputError):
            store.segment(99)
        with pytest.raises(InputError):
            store.open_segment(99, {}, {}, "")

    def test_sessions_open_and_close_once(self, store: Store, clock: Clock) -> None:
        study = store.create_study(new_study())
        number = store.open_session(study.id, {"seed": 1, "budget": {"time": 2.5}}, "e", 12, "host")
        [session] = store.sessions(study.id)
        assert (session.id, session.settings, session.pid) == (
            number,
            {"seed": 1, "budget": {"time": 2.5}},
            12,
        )
        assert session.finished_at is None
        clock.advance(10)
        store.close_session(number, "200 trials")
        clock.advance(10)
        store.close_session(number, "again")
        [session] = store.sessions(study.id)
        assert (session.finished_at, session.reason) == (session.started_at + 10, "200 trials")

    def test_verdicts_in_order(self, store: Store) -> None:
        b = bench(store)
        documents = [{"speedup": {"estimate": 1.25}, "told": n} for n in (4, 9)]
        ids = [store.save_verdict(b.study.id, b.session, d) for d in documents]
        assert [(v.id, v.document) for v in store.verdicts(b.study.id)] == list(
            zip(ids, documents, strict=True)
        )


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

    def test_nothing_is_proposed_for_no_proposals(self, store: Store) -> None:
        assert bench(store).propose() == []

    def test_a_study_that_is_not_there(self, store: Store) -> None:
        b = bench(store)
        with pytest.raises(InputError, match="no study #99"):
            store.propose(99, b.session, b.segment, [new_trial(1)])

    def test_a_session_that_is_not_there_writes_nothing(self, store: Store) -> None:
        b = bench(store)
        with pytest.raises(StoreError, match="does not hold"):
            store.propose(b.study.id, 99, b.segment, [new_trial(1)])
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
        numbers = [t.number for t in store.trials(b.study.id, after=-1)]
        assert numbers == [2, 0, 1]
        assert [t.number for t in store.trials(b.study.id, after=1)] == [1]
        assert store.trials(b.study.id, after=2) == []

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

    def test_filters(self, store: Store) -> None:
        b = bench(store)
        for tile, status in enumerate((Status.OK, Status.TIMEOUT, Status.OK)):
            store.finish(b.trial(tile).id, outcome(status))
        store.finish(b.trial(0, "final").id, outcome())

        def numbers(**wanted: object) -> list[int]:
            return [t.number for t in store.trials(b.study.id, **wanted)]  # type: ignore[arg-type]

        assert numbers(status=Status.OK) == [0, 2, 3]
        assert numbers(status="ok", purpose="search") == [0, 2]
        assert numbers(purpose="search", after=0) == [1, 2]
        assert numbers(status=Status.LOST) == []
        assert store.trials(99) == []

    def test_a_record_can_be_taken_apart(self, store: Store) -> None:
        b = bench(store)
        trial = b.trial(1)
        store.finish(trial.id, outcome())
        assert asdict(store.trial(trial.id))["metrics"]["time"]["n"] == 3


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

    def test_closing_a_session_ends_its_leases(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        other = store.open_session(b.study.id, {}, "e", 1, "h")
        mine = b.propose(1, 2)
        store.propose(b.study.id, other, b.segment, [new_trial(3)])
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
        assert (again.session_id, again.segment_id, again.message) == (heir, segment.id, "")
        assert store.retry(trial.id, session_id=b.session) is None
        assert store.expire(b.study.id, clock.now) == []

    def test_an_outcome_that_is_lost_is_no_result(self, store: Store) -> None:
        b = bench(store)
        trial = b.trial(1)
        assert store.finish(trial.id, outcome(Status.LOST, n=2)) == -1
        record = store.trial(trial.id)
        assert (record.status, record.told, record.message) == (Status.LOST, None, "it ended as lost")
        assert store.trials(b.study.id, after=-1) == []
        assert store.retry(trial.id) is not None
        assert store.finish(trial.id, outcome(n=1)) == 0
        assert [r.discarded for r in store.readings(trial.id)] == ["lost", "lost", ""]
        assert store.integrity() == []

    def test_a_worker_that_begins_is_alive(self, store: Store, clock: Clock) -> None:
        b = bench(store)
        trial = b.trial(1)
        store.expire(b.study.id, clock.now + LEASE_SECONDS)
        store.start(trial.id, "slow queue", 10)
        record = store.trial(trial.id)
        assert (record.status, record.worker, record.message) == (Status.RUNNING, "slow queue", "")


class TestContents:
    @pytest.mark.parametrize("content", [b"", b"x", b"abc" * 10_000, np.random.default_rng(0).bytes(5000)])
    def test_content_is_kept_once(self, store: Store, content: bytes) -> None:
        digest = store.put_artifact(content, "source")
        assert store.put_artifact(content, "source") == digest
        assert len(digest) == 64
        assert store.artifact(digest) == content

    def test_unknown_hashes(self, store: Store) -> None:
        with pytest.raises(InputError, match="no artefact"):
            store.artifact("0" * 64)
        with pytest.raises(InputError, match="no environment"):
            store.environment("0" * 64)

    def test_environments_are_kept_once(self, store: Store) -> None:
        document = {"machine": {"cpu": "x", "cores": 2}, "packages": {"numpy": "2.0"}}
        store.put_environment("e", document)
        store.put_environment("e", {"another": "document"})
        assert store.environment("e") == document


class TestUse:
    def test_a_second_opening_sees_everything(self, shared_url: str, open_store: OpenStore) -> None:
        first = open_store(shared_url)
        b = bench(first)
        first.finish(b.trial(1).id, outcome())
        second = open_store(shared_url)
        assert second.studies() == first.studies()
        assert second.trials(b.study.id) == first.trials(b.study.id)
        first.close()
        assert len(second.trials(b.study.id)) == 1

    def test_a_reader_cannot_write(self, shared_url: str, open_store: OpenStore) -> None:
        b = bench(open_store(shared_url))
        trial = b.trial(1)
        with Store.open(shared_url, readonly=True) as reader:
            assert reader.trial(trial.id) == trial
            with pytest.raises(StoreError, match="for reading only"):
                reader.finish(trial.id, outcome())
            b.store.finish(trial.id, outcome())
            assert reader.trial(trial.id).status is Status.OK

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()
        store.close()
        with pytest.raises(StoreError, match="is closed"):
            store.studies()

    def test_many_threads(self, store: Store) -> None:
        b = bench(store)

        def work(seed: int) -> list[int]:
            told = []
            for tile in np.random.default_rng(seed).permutation(40):
                for trial in b.propose(int(tile)):
                    if trial is not None:
                        store.start(trial.id, f"thread {seed}")
                        told.append(store.finish(trial.id, outcome()))
                        store.trials(b.study.id)
            return told

        with ThreadPoolExecutor(6) as pool:
            accepted = [told for part in pool.map(work, range(6)) for told in part]
        assert sorted(accepted) == list(range(40))
        assert store.integrity() == []

    def test_a_healthy_store_has_nothing_to_report(self, store: Store) -> None:
        b = bench(store)
        store.finish(b.trial(1).id, outcome())
        assert store.integrity() == []


class TestServer:
    def test_a_connection_that_the_server_dropped_is_made_again(self, postgres_socket: Path) -> None:
        name = "dropped"
        with Store.open(postgres.make_database(postgres_socket, name)) as store:
            b = bench(store)
            trial = b.trial(1)
            assert postgres.drop_connections(postgres_socket, name) > 0
            store.finish(trial.id, outcome())
            assert store.trial(trial.id).status is Status.OK

    def test_a_database_that_may_only_be_read(self, postgres_socket: Path) -> None:
        url = postgres.make_database(postgres_socket, "frozen")
        with Store.open(url) as store:
            b = bench(store)
        with Store.open(url, readonly=True) as store, pytest.raises(StoreError, match="may not be written"):
            store._readonly = False  # as though nothing but the server stood in the way
            store.propose(b.study.id, b.session, b.segment, [new_trial(1)])
