"""Which studies teach a search, that this is written down, and that it holds for the sessions after."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import autotune
from autotune.session.opening.sources import lessons
from autotune.space import IntegerRange
from autotune.space.configuration import FrozenMap
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import StudySpec
from autotune.store.store import Store
from tests.session.early_stopping import followed
from tests.session.heard import Heard

SPACE = """
autotune: 1
name: {name}
objective: {objective}:unused
workload: {{size: {size}}}
knobs:
  x: {{range: [0, 15], default: 0}}
  {knob}: {{range: [0, 15], default: 0}}
search: {{strategy: {strategy}, seed: 3, transfer: {transfer}}}
measure: {{min_readings: 3, max_readings: 3, finalists: 1}}
"""


def spec(folder: Path, size: int, **changed: str) -> StudySpec:
    words = {
        "name": "bowl",
        "objective": "objective.py",
        "knob": "y",
        "transfer": "true",
        "strategy": "bayes",
    }
    words |= changed
    for file in ("objective.py", "other.py"):
        (folder / file).write_text(f"def unused(**knobs):\n    return {len(file)}\n")
    return parse_spec(SPACE.format(size=size, **words), folder / "space.yaml", {})


def bowl(**knobs: int) -> float:
    return 1.0 + sum((value - best) ** 2 for value, best in zip(knobs.values(), (7, 11), strict=True))


def other(**knobs: int) -> float:
    return bowl(**knobs)


@pytest.fixture
def search(tmp_path: Path) -> Callable[..., tuple[autotune.Result, list[str]]]:
    def run(size: int, trials: int = 12, **changed: str) -> tuple[autotune.Result, list[str]]:
        heard = Heard()
        result = autotune.search(
            spec(tmp_path, size, **changed),
            trials=trials,
            store=tmp_path / "study.db",
            objective=other if "objective" in changed else bowl,
            progress=heard,
        )
        return result, [text for text in heard.notes if text.startswith("learning")]

    return run


def leanings(result: autotune.Result) -> set[str]:
    return {label for trial in result.trials for label in trial.reason.get("sources", {})}


def test_another_workload_teaches_and_the_trials_say_so(search: Callable[..., tuple]) -> None:
    first, unheard = search(1, 20)
    second, heard = search(2)
    assert not unheard
    assert not leanings(first)
    assert len(heard) == 1
    assert "bowl#1" in heard[0]
    assert "size 1" in heard[0]
    assert leanings(second) == {"bowl#1"}
    kinds = [t.reason["kind"] for t in sorted(second.trials, key=lambda t: t.number)]
    assert kinds[:2] == ["default", "best elsewhere"]


@pytest.mark.parametrize(
    "changed",
    [
        {"transfer": "false"},
        {"strategy": "random"},
        {"name": "other", "objective": "other.py"},
        {"knob": "z", "name": "third", "objective": "other.py"},
    ],
)
def test_what_is_something_else_or_unwanted_teaches_nothing(
    search: Callable[..., tuple], tmp_path: Path, changed: dict[str, str]
) -> None:
    search(1, 20)
    result, heard = search(2, **changed)
    assert not heard
    assert not leanings(result)
    with Store.open(tmp_path / "study.db", readonly=True) as store:
        assert not any(session.settings.get("sources") for session in store.sessions(result.study.id))


def test_too_few_successes_teach_nothing(search: Callable[..., tuple]) -> None:
    search(1, 5)
    assert not search(2)[1]


def test_the_study_itself_begun_anew_is_no_source(search: Callable[..., tuple], tmp_path: Path) -> None:
    search(1, 20)
    again = autotune.search(
        spec(tmp_path, 1), trials=9, store=tmp_path / "study.db", objective=bowl, fresh=True
    )
    assert not leanings(again)


def ask_and_tell(name: str, store: Path, workload: int = 1) -> set[str]:
    """A study whose caller runs the trials; the studies that its proposals lean on."""
    study = autotune.StudySpec(
        name,
        autotune.Space([IntegerRange("x", 0, 15), IntegerRange("y", 0, 15)], []),
        workload={"size": workload},
        search=autotune.SearchSettings("bayes"),
    )
    with autotune.ask_tell(study, store=store) as session:
        for trial in session.ask(12):
            session.tell(trial, time=bowl(**trial.configuration))
        return leanings(session.result())


def test_what_callers_run_themselves_is_the_same_only_by_name(tmp_path: Path) -> None:
    """What is run there is not known, so that all of it would pass for one objective."""
    store = tmp_path / "study.db"
    ask_and_tell("matrix", store)
    assert not ask_and_tell("sorting", store, workload=2)
    assert ask_and_tell("matrix", store, workload=2) == {"matrix#1"}


@pytest.mark.long
def test_a_resumed_search_learns_from_what_its_first_session_chose(
    search: Callable[..., tuple], tmp_path: Path
) -> None:
    """Another source, and more trials of the first one, come in between: they change nothing."""
    search(1, 15)
    search(2, 6)
    search(3, 15)
    search(1, 25)
    resumed, heard = search(2, 14)
    assert [text.split(" (")[0] for text in heard] == ["learning from 15 trials of study bowl#1"]

    with Store.open(tmp_path / "whole.db") as store:
        url = store.url
    for size, trials in ((1, 15), (2, 14)):
        whole = autotune.search(spec(tmp_path, size), trials=trials, store=url, objective=bowl)
    assert order(resumed) == order(whole)


def order(result: autotune.Result) -> list[dict[str, object]]:
    searched = [trial for trial in result.trials if trial.purpose == "search"]
    return [dict(t.configuration) for t in sorted(searched, key=lambda t: t.number)]


def test_what_was_chosen_stands_in_the_settings(search: Callable[..., tuple], tmp_path: Path) -> None:
    search(1, 15)
    search(2, 6)
    with Store.open(tmp_path / "study.db") as store:
        study = store.study("bowl")
        assert [s.settings["sources"] for s in store.sessions(study.id)] == [
            [{"study": 1, "trials": 15, "apart": 1.0}]
        ]
        learned = lessons(spec(tmp_path, 2), store, study)
        assert [len(source.observations) for source in learned.sources] == [15]
        assert learned.sources[0].facts["device"]
    with closing(sqlite3.connect(tmp_path / "study.db")) as connection, connection:
        connection.execute("DELETE FROM environments")
    with Store.open(tmp_path / "study.db") as store:
        learned = lessons(spec(tmp_path, 2), store, store.study("bowl"))
        assert learned.sources[0].facts["device"] == "", "the description of the machine did not arrive"


def test_a_source_with_paused_trials_is_handed_over_to_its_end(tmp_path: Path) -> None:
    """Its pauses had been counted as trials, so that those which ended last were left out."""
    where, heard = tmp_path / "study.db", Heard()
    there = followed.spec(tmp_path, "hyperband", trials=20, steps=9)
    autotune.search(there, store=where, objective=followed.train)
    here = replace(
        followed.spec(tmp_path, "hyperband", strategy="bayes", trials=2, steps=9),
        workload=FrozenMap({"size": 2}),
    )
    autotune.search(here, store=where, objective=followed.train, progress=heard)
    with Store.open(where) as store:
        first, second = store.studies()
        [source] = lessons(here, store, second).sources
        _, results = store.results_from(first.id, 0)
    assert len(source.observations) == len(results) > 20
    assert len({o.configuration.hash for o in source.observations if not o.paused}) == 20
    assert any(text.startswith("learning from 20 trials of study curves#1") for text in heard.notes)
