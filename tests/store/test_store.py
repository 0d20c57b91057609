"""Several that use one store: openings, readers and threads, on every backend there is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from autotune.errors import StoreError
from autotune.status import Status
from autotune.store.databases import failures
from autotune.store.databases.address import read_address
from autotune.store.databases.connect import begin_writing
from autotune.store.schema import VERSION_TABLE
from autotune.store.store import Store
from tests.store import postgres
from tests.store.build import bench, new_study, new_trial, outcome

OpenStore = Callable[[str], Store]


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

    def test_who_is_interrupted_as_it_begins_to_write_holds_nobody_up(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def begin_and_be_interrupted(connection: sqlite3.Connection) -> None:
            begin_writing(connection)
            raise KeyboardInterrupt

        with Store.open(tmp_path / "a.db") as store:
            with monkeypatch.context() as patched:
                patched.setattr("autotune.store.databases.database.begin_writing", begin_and_be_interrupted)
                with pytest.raises(KeyboardInterrupt):
                    store.put_artifact(b"one", "text")
            store.put_artifact(b"two", "text")

    def test_a_healthy_store_has_nothing_to_report(self, store: Store) -> None:
        b = bench(store)
        store.finish(b.trial(1).id, outcome())
        assert store.integrity() == []


class TestServer:
    def test_a_connection_that_the_server_dropped_is_made_again(
        self, postgres_socket: Path, postgres_url: str
    ) -> None:
        with Store.open(postgres.emptied(postgres_url)) as store:
            b = bench(store)
            trial = b.trial(1)
            assert postgres.drop_connections(postgres_socket, postgres.NAME) > 0
            store.finish(trial.id, outcome())
            assert store.trial(trial.id).status is Status.OK

    def test_one_of_a_server_in_the_c_locale_keeps_all_texts(
        self, postgres_socket: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
        with Store.open(postgres.make_database(postgres_socket, "plain", "SQL_ASCII")) as store:
            store.create_study(new_study("日本語"))
            assert store.study().name == "日本語"

    def test_one_that_has_no_place_for_all_texts_is_refused(self, postgres_socket: Path) -> None:
        url = postgres.make_database(postgres_socket, "western", "LATIN1")
        with pytest.raises(StoreError, match=r"encoding LATIN1.*ENCODING 'UTF8'"):
            Store.open(url)

    def test_a_database_that_may_only_be_read(self, postgres_socket: Path) -> None:
        url = postgres.make_database(postgres_socket, "frozen")
        with Store.open(url) as store:
            b = bench(store)
        with Store.open(url, readonly=True) as store, pytest.raises(StoreError, match="may not be written"):
            store._database._readonly = False  # as though nothing but the server stood in the way
            store.propose(b.place, [new_trial(1)])

    def test_who_may_read_its_tables_can_read_it(self, postgres_socket: Path) -> None:
        url = postgres.make_database(postgres_socket, "readable")
        with Store.open(url) as store:
            trial = bench(store).trial(1)
        reader = postgres.as_user(url, "reader", "SELECT ON ALL TABLES IN SCHEMA public")
        with Store.open(reader, readonly=True) as store:
            assert store.trials(store.study().id) == [trial] and store.integrity() == []
        with Store.open(reader) as store, pytest.raises(StoreError, match="right to create and write"):
            store.create_study(new_study("other"))

    def test_who_may_not_is_told_which_right_is_missing(self, postgres_socket: Path) -> None:
        url = postgres.make_database(postgres_socket, "unreadable")
        with Store.open(url) as store:
            bench(store)
        stranger = postgres.as_user(url, "stranger")
        with pytest.raises(StoreError, match=r"the right to read: GRANT SELECT") as refused:
            Store.open(stranger, readonly=True)
        assert "write" not in str(refused.value)

    def test_a_reader_of_an_older_store_is_told_that_it_has_to_be_changed(
        self, postgres_socket: Path
    ) -> None:
        url = postgres.make_database(postgres_socket, "older")
        with Store.open(url) as store, store._database.write() as connection:
            connection.execute(sa.text(f"UPDATE {VERSION_TABLE} SET version_num = '0003'"))
        reader = postgres.as_user(url, "late_reader", "SELECT ON ALL TABLES IN SCHEMA public")
        with pytest.raises(StoreError, match=r"made by an older autotune.*who may write to it"):
            Store.open(reader, readonly=True)


@pytest.mark.parametrize("trouble", [t for t in vars(failures).values() if isinstance(t, failures.Trouble)])
def test_each_trouble_is_said_without_gaps(trouble: failures.Trouble) -> None:
    said = str(trouble.error(read_address("sqlite://")))
    assert "  " not in said
