"""A search whose PostgreSQL server is started again in the middle of it goes on, and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import autotune
from autotune.session.progress import Progress
from autotune.store.store import Store
from tests.session.bowl import bowl, spec
from tests.store import postgres


class Starts(Progress):
    """Starts the server again as soon as it is said to be away."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)
        if "cannot be reached" in text:
            postgres.start(self.socket)


def test_a_search_waits_for_its_server(tmp_path: Path) -> None:
    if reason := postgres.why_not():
        pytest.skip(reason)
    with postgres.server() as socket:
        url = postgres.make_database(socket, "searched")
        progress = Starts(socket)
        measured: list[tuple[int, int]] = []

        def restarting(x: int, y: int) -> float:
            if len(set(measured)) == 4 and (x, y) not in measured:
                postgres.stop(socket)
            measured.append((x, y))
            return bowl(x, y)

        given = spec(tmp_path)
        result = autotune.search(
            given, objective=restarting, store=url, trials=8, strategy="random", progress=progress
        )
        assert result.reason == "8 trials" and result.statuses == {"ok": 8} and result.defended
        waited = [note for note in progress.notes if "the store" in note]
        assert len(waited) == 2 and waited[1] == "the store is there again"
        with Store.open(url, readonly=True) as store:
            assert len(store.sessions(result.study.id)) == 1 and store.integrity() == []
