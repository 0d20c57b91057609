"""What is taken for a sign that a store was edited, and what is none."""

from __future__ import annotations

import json
import math
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.provenance.environment import capture
from autotune.session.asktell import AskTell
from autotune.session.reproduction.doubts import doubts
from autotune.store.store import Store
from tests.session.bowl import bowl, spec


def edited(file: Path) -> list[str]:
    with Store.open(file, readonly=True) as store:
        study = store.study()
        trials = store.trials(study.id)
        said = doubts(store, study, trials, store.sessions(study.id)[0].id, trials[-1].number)
    return [text for text in said if "the store was edited" in text]


@pytest.mark.parametrize("values", [[math.nan] * 3, [math.inf], [1.0, 2.0, 4.0]])
def test_what_the_readings_say_is_no_edit_and_another_value_is(tmp_path: Path, values: list[float]) -> None:
    """A trial that diverged has no number, and nothing is equal to that."""
    file = tmp_path / "study.db"
    with AskTell(spec(tmp_path), Store.open(file), capture()) as session:
        (trial,) = session.ask(1)
        session.tell(trial, time=values)
    assert edited(file) == []
    with closing(sqlite3.connect(file)) as database, database:
        ((metrics,),) = database.execute("SELECT metrics FROM trials")
        changed = json.loads(metrics)
        changed["time"]["value"] = 3.0
        database.execute("UPDATE trials SET metrics = ?", (json.dumps(changed),))
    assert ["the store was edited: time of trial 0 is 3, but" in text for text in edited(file)] == [True]


def test_what_became_of_a_study_that_was_learned_from(tmp_path: Path) -> None:
    """It had been called consistent, and the reader was asked to report a fault of autotune."""
    file = tmp_path / "study.db"
    for size in (1, 2):
        of_size = replace(spec(tmp_path), workload={"size": size})
        with AskTell(of_size, Store.open(file), capture()) as session:
            for trial in session.ask(10):
                session.tell(trial, time=bowl(**trial.configuration))

    def said() -> list[str]:
        with Store.open(file, readonly=True) as store:
            study = store.study()
            (session,) = store.sessions(study.id)
            return list(doubts(store, study, store.trials(study.id), session.id, 9))

    assert said() == ["the record is consistent, and the software is the same: please report this"]
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE readings SET value = 7.5 WHERE trial_id = 4")
    (changed,) = said()
    assert changed.startswith("the store was edited: time of trial 3 of bowl#1 is ")
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("DELETE FROM readings WHERE trial_id IN (4, 5)")
        database.execute("DELETE FROM trials WHERE id IN (4, 5)")
    assert said() == ["the store was edited: 2 results of bowl#1, which it learned from, are gone"]
    with Store.open(file) as store:
        store.delete([1])
    assert said() == ["study #1, which it learned from, is no longer in the store"]


def test_what_other_software_has_proposed(tmp_path: Path) -> None:
    file = tmp_path / "study.db"
    with AskTell(spec(tmp_path), Store.open(file), capture()) as session:
        session.ask(1)

    def said(sql: str) -> list[str]:
        with closing(sqlite3.connect(file)) as database, database:
            database.execute(sql)
        with Store.open(file, readonly=True) as store:
            study = store.study()
            return list(doubts(store, study, store.trials(study.id), store.sessions(study.id)[0].id, 0))

    (code,) = said("UPDATE sessions SET settings = json_set(settings, '$.engine.code', 'other')")
    assert code.startswith("the code of autotune's strategies or spaces has changed")
    (version,) = said("UPDATE sessions SET settings = json_set(settings, '$.engine.version', '0.0')")
    assert version.startswith("autotune 0.0 proposed, and this is ")
    *others, processor = said(
        "UPDATE environments SET document = json_set(json_remove(document, '$.packages.scipy'),"
        " '$.packages.numpy', '0.1', '$.python.version', '2.7', '$.machine.processor.name', 'Z80')"
    )
    begins = ["autotune 0.0", "numpy was 0.1 and is", "scipy was not there and is", "Python was 2.7 and is"]
    assert [text[: len(begin)] for text, begin in zip(others, begins, strict=True)] == begins
    assert processor.startswith("the processor was Z80 and is")
    assert "the environment of the search is not in the store" in said("DELETE FROM environments")
