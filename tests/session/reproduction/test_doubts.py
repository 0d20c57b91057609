"""What is taken for a sign that a store was edited, and what is none."""

from __future__ import annotations

import json
import math
import sqlite3
from pathlib import Path

import pytest

from autotune.provenance.environment import capture
from autotune.session.asktell import AskTell
from autotune.session.reproduction.doubts import doubts
from autotune.store.store import Store
from tests.session.bowl import spec


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
    with sqlite3.connect(file) as database:
        ((metrics,),) = database.execute("SELECT metrics FROM trials")
        changed = json.loads(metrics)
        changed["time"]["value"] = 3.0
        database.execute("UPDATE trials SET metrics = ?", (json.dumps(changed),))
    assert ["the store was edited: time of trial 0 is 3, but" in text for text in edited(file)] == [True]
