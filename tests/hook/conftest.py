"""A search around the process of the tests, and a store that recipes are looked up in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autotune.hook import recipe
from autotune.measure.commands.run_listener import RunListener
from autotune.measure.commands.run_protocol import VARIABLE
from autotune.measure.reports import Reporter
from autotune.store.store import Store
from tests.hook.listening import KNOBS, Search


@pytest.fixture
def search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Search]:
    """Makes this very process one that a search has started."""
    made: list[RunListener] = []

    def begin(reporter: Reporter | None = None, **knobs: Any) -> RunListener:
        listener = RunListener(tmp_path, knobs or KNOBS, reporter or Reporter())
        made.append(listener)
        monkeypatch.setenv(VARIABLE, listener.document)
        return listener

    yield begin
    for listener in made:
        listener.__exit__(None, None, None)


@pytest.fixture
def nothing_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOTUNE_STORE", str(tmp_path / "store.db"))
    monkeypatch.delenv("AUTOTUNE_RECIPES", raising=False)
    recipe.forget()
    yield
    recipe.forget()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.db") as store:
        yield store
