"""Trials of a study that were measured in another environment."""

from __future__ import annotations

from pathlib import Path

import pytest

import autotune
from autotune.space import OrderedValues, Space
from tests.session.heard import Heard


def fast(x: int) -> float:
    return 9.0 - x


def notes(folder: Path, trials: int) -> list[str]:
    heard = Heard()
    space = Space([OrderedValues("x", tuple(range(8)))])
    autotune.search(space, objective=fast, trials=trials, store=folder / "s.db", progress=heard)
    return [text for text in heard.notes if "another environment" in text]


def test_a_variable_that_was_set_otherwise_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of eight threads had been given again for one, without a word."""
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    assert notes(tmp_path, 3) == [] and notes(tmp_path, 4) == []
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    [text] = notes(tmp_path, 5)
    assert text.startswith(
        "4 earlier trials were measured in another environment (variables.OMP_NUM_THREADS: "
    )
    assert "8 -> " in text and "--fresh" in text
    assert len(notes(tmp_path, 6)) == 1, "they are still there"


def test_where_the_store_lies_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes(tmp_path, 3)
    monkeypatch.setenv("AUTOTUNE_STORE", str(tmp_path / "other.db"))
    assert notes(tmp_path, 4) == []
