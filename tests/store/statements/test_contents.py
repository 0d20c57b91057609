"""Artefacts and environments, on a file, in memory and on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sqlalchemy as sa

from autotune.errors import InputError
from autotune.store.statements import studies
from autotune.store.statements.contents import Files
from autotune.store.statements.prepared import Direct
from autotune.store.store import Store
from tests.store.build import bench, new_study, outcome


def _waits_for_us(store: Store) -> bool:
    query = sa.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    with store._database.read() as connection:
        return bool(connection.scalar(query))


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

    def test_an_environment_that_did_not_arrive_is_empty(self, store: Store) -> None:
        assert store.environment("0" * 64) == store.environment("") == {}

    @pytest.mark.parametrize("way", ["finish", "open_segment"])
    def test_content_that_is_deleted_before_something_refers_to_it_is_written_again(
        self,
        shared_url: str,
        open_store: Callable[[str], Store],
        way: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        store, other = open_store(shared_url), open_store(shared_url)
        made = bench(store)
        trial = made.trial(1)
        digest = store.put_artifact(b"loose", "source")
        look, deleted = store._pack, set[str]()

        def look_before_they_are_deleted(files: Mapping[str, bytes]) -> Files:
            found = look(files)
            deleted.update(other.delete().artifacts)
            return found

        monkeypatch.setattr(store, "_pack", look_before_they_are_deleted)
        files = {"source": b"loose"}
        if way == "finish":
            store.finish(trial.id, outcome(artifacts=files))
        else:
            store.open_segment(made.study.id, {}, files, "changed")
        assert deleted == {digest}
        assert store.artifact(digest) == b"loose" and store.integrity() == []

    def test_nothing_loose_is_deleted_while_somebody_is_about_to_refer_to_it(
        self, shared_url: str, open_store: Callable[[str], Store]
    ) -> None:
        if not shared_url.startswith("postgresql"):
            pytest.skip("a writer is alone")
        store, other, watcher = (open_store(shared_url) for _ in range(3))
        made = bench(store)
        digest = store.put_artifact(b"loose", "source")
        with store._database.write() as connection, ThreadPoolExecutor(1) as threads:
            Files.of({"source": b"loose"}, lambda hashes: []).insert(Direct.through(connection), 0.0)
            pruned = threads.submit(other.delete)
            while not (_waits_for_us(watcher) or pruned.done()):
                pass
            studies.open_segment(
                connection, made.study.id, {}, {"source": digest}, "changed", lambda latest: False, 0.0
            )
            connection.commit()
            assert digest not in pruned.result().artifacts
        assert store.artifact(digest) == b"loose"

    def test_an_environment_is_kept_with_the_study_and_session_that_refer_to_it(self, store: Store) -> None:
        study = store.create_study(new_study(environment_hash="e0"), {"cores": 2})
        same, _ = store.find_or_create_study(new_study(environment_hash="e0"), {"cores": 2})
        assert same.id == study.id
        store.open_session(study.id, {}, "e1", 1, "host", {"cores": 4})
        store.delete()
        assert (store.environment("e0"), store.environment("e1")) == ({"cores": 2}, {"cores": 4})

    def test_environments_are_kept_once(self, store: Store) -> None:
        document = {"machine": {"cpu": "x", "cores": 2}, "packages": {"numpy": "2.0"}}
        store.load((), {"e": document}, ())
        store.load((), {"e": {"another": "document"}}, ())
        assert store.environment("e") == document
