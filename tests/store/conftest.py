"""Every backend there is, and stores on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotune.store.store import Store
from tests.store import postgres
from tests.store.build import Clock


@pytest.fixture(scope="session")
def postgres_socket() -> Iterator[Path]:
    if reason := postgres.why_not():
        pytest.skip(reason)
    with postgres.server() as socket:
        yield socket


@pytest.fixture(scope="session")
def postgres_url(postgres_socket: Path) -> str:
    """See :data:`tests.store.postgres.NAME`."""
    return postgres.make_database(postgres_socket, postgres.NAME)


@pytest.fixture(params=["sqlite", "memory", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that is not there yet."""
    if request.param == "memory":
        return "sqlite://"
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'new folder' / 'store.db'}"
    return postgres.emptied(request.getfixturevalue("postgres_url"))


@pytest.fixture
def shared_url(url: str) -> str:
    """The address of a store that several can open, so not one in memory."""
    if url == "sqlite://":
        pytest.skip("a store in memory belongs to who opened it")
    return url


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def open_store(clock: Clock) -> Iterator[Callable[[str], Store]]:
    """Opens stores on the test's clock and closes them at its end."""
    opened: list[Store] = []

    def open_one(url: str) -> Store:
        opened.append(Store.open(url, clock=clock))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(url: str, open_store: Callable[[str], Store]) -> Store:
    return open_store(url)
