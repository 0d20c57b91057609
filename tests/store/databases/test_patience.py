"""A server that goes away: what is waited for, what is begun again, and what is in doubt."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from autotune.errors import StoreError
from autotune.status import Status
from autotune.store.databases import patience
from autotune.store.store import Store
from tests.store import postgres
from tests.store.build import Clock, bench, outcome


class Dropping(Clock):
    """Looked at in the middle of each transaction: lets the server end them when it is told to."""

    def __init__(self, drop: Callable[[], int]) -> None:
        super().__init__()
        self.drops = 0
        self._drop = drop

    def __call__(self) -> float:
        if self.drops:
            self.drops -= 1
            assert self._drop() > 0
        return super().__call__()


@pytest.fixture
def clock(postgres_socket: Path) -> Dropping:
    return Dropping(lambda: postgres.drop_connections(postgres_socket, postgres.NAME))


@pytest.fixture
def store(postgres_url: str, clock: Dropping) -> Iterator[Store]:
    with Store.open(postgres.emptied(postgres_url), clock=clock) as opened:
        yield opened


def test_a_server_that_is_away_is_waited_for_where_somebody_is_told(
    store: Store, postgres_socket: Path
) -> None:
    notes: list[str] = []

    def note(text: str) -> None:
        notes.append(text)
        if "cannot be reached" in text:
            postgres.start(postgres_socket)

    trial = bench(store).trial(1)
    postgres.stop(postgres_socket)
    with pytest.raises(StoreError, match="cannot be reached"):
        store.start(trial.id, "w")
    with store.waiting(note):
        store.start(trial.id, "w")
        postgres.stop(postgres_socket)
        assert store.trial(trial.id).status is Status.RUNNING
    assert len(notes) == 4 and notes[1] == notes[3] == "the store is there again"


def test_but_not_for_ever_and_not_twice(
    store: Store, postgres_socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "LONGEST_SECONDS", 0.0)
    notes: list[str] = []
    trial = bench(store).trial(1)
    postgres.stop(postgres_socket)
    try:
        with store.waiting(notes.append):
            for _ in range(2):
                with pytest.raises(StoreError, match="cannot be reached"):
                    store.finish(trial.id, outcome())
    finally:
        postgres.start(postgres_socket)
    assert len(notes) == 1
    store.finish(trial.id, outcome())


def test_what_was_not_told_to_be_kept_is_said_again(store: Store, clock: Dropping) -> None:
    b = bench(store)
    with store.waiting(lambda _: None):
        clock.drops = 2
        trial = b.trial(1)
        clock.drops = 1
        assert store.finish(trial.id, outcome(n=3)) == 0
    assert [t.status for t in store.trials(b.study.id)] == [Status.OK]
    assert len(store.readings(trial.id)) == 3 and store.integrity() == []


def test_not_where_nobody_waits_and_not_without_end(store: Store, clock: Dropping) -> None:
    b = bench(store)
    clock.drops = 1
    with pytest.raises(StoreError, match="cannot be reached"):
        b.trial(1)
    clock.drops = 10
    with store.waiting(lambda _: None), pytest.raises(StoreError, match="cannot be reached"):
        b.trial(1)
    clock.drops = 0
    assert store.trials(b.study.id) == []


def test_what_may_have_been_kept_is_said_again_only_where_that_changes_nothing(
    store: Store, postgres_socket: Path
) -> None:
    b = bench(store)
    trial = b.trial(1)
    drops: list[int] = []

    def drop_as_it_is_told_to_keep(_: sa.Connection) -> None:
        if drops:
            drops.pop()
            postgres.drop_connections(postgres_socket, postgres.NAME)

    sa.event.listen(store._database._engine, "commit", drop_as_it_is_told_to_keep)
    with store.waiting(lambda _: None):
        for call in (
            lambda: store.start(trial.id, "w"),
            lambda: store.renew([trial.id]),
            lambda: store.finish(trial.id, outcome()),
            lambda: store.close_session(b.session, "ended"),
        ):
            drops.append(1)
            call()
        lost = b.trial(2)
        for in_doubt in (lambda: b.trial(3), lambda: store.finish(lost.id, outcome(Status.LOST))):
            drops.append(1)
            with pytest.raises(StoreError, match="cannot be reached"):
                in_doubt()
    assert drops == [] and store.trial(trial.id).status is Status.OK
