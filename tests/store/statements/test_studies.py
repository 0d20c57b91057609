"""Studies, their segments, sessions and verdicts, on a file, in memory and on a PostgreSQL server."""

from __future__ import annotations

import pytest

from autotune.errors import InputError
from autotune.store.store import Store
from tests.store.build import Clock, bench, new_study, outcome


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

    def test_names_the_ids_that_there_are(self, store: Store) -> None:
        gemm = [store.create_study(new_study("gemm")).id for _ in range(2)]
        other = store.create_study(new_study("other")).id
        for wanted, expected in {
            "gemm#99": [f"gemm#{i}" for i in reversed(gemm)],
            "#99": [f"other#{other}", *(f"gemm#{i}" for i in reversed(gemm))],
            "gem": ["other", "gemm"],
        }.items():
            with pytest.raises(InputError) as caught:
                store.study(wanted)
            assert caught.value.problems[0].expected == ", ".join(expected)

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

    def test_of_searches_that_need_a_newer_study_the_first_makes_it(self, store: Store) -> None:
        """Each made one, where all trials of the study before had failed by a mistake."""
        old = store.create_study(new_study(key="a"))
        made, new = store.find_or_create_study(new_study(key="a"), newer_than=old.id)
        assert new and made.id != old.id
        assert store.find_or_create_study(new_study(key="a"), newer_than=old.id) == (made, False)
        assert store.find_or_create_study(new_study(key="a")) == (made, False)

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

    def test_a_new_key_leaves_the_space_that_another_search_has_written(self, store: Store) -> None:
        """A search whose objective was edited wrote its own document, with the space of before."""
        study = store.create_study(new_study())
        store.update_space(study.id, "second", {"space": 2, "identity": {"source": "a"}}, "space2")
        store.update_key(study.id, "another", {"source": "b"})
        now = store.study(study.id)
        assert (now.key, now.space_hash) == ("another", "space2")
        assert now.document == {"space": 2, "identity": {"source": "b"}}

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
