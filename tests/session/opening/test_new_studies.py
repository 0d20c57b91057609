"""Which searches begin a study: what is not as before, and what leaves none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotune
from autotune.errors import InputError, NothingFeasibleError
from autotune.session.api import capture_environment
from autotune.session.opening.opening import open_study
from autotune.space import Choice, IntegerRange, Space
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import PythonObjective
from autotune.store.store import Store
from tests.session.bowl import SPACE, spec


def test_a_changed_workload_begins_a_new_study_that_says_so(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    first = search(trials=3)
    given = spec(tmp_path)
    changed = search(replace(given, workload=type(given.workload)({"n": 2})), trials=3)
    assert changed.study.id != first.study.id and changed.study.parent_id == first.study.id
    assert list(changed.study.differs) == ["workload"]


def test_the_workload_of_a_space_in_python_is_that_of_its_study(tmp_path: Path) -> None:
    """The objective did not get it, and the same space for another problem went on with the same study."""

    def waste(tile: int, m: int) -> float:
        return 1.0 + m / tile

    def searched(m: int) -> autotune.Result:
        space = Space([IntegerRange("tile", 1, 8)], ["m % tile == 0"], workload={"m": m})
        return autotune.search(space, objective=waste, trials=2, store=tmp_path / "w.db")

    first, other = searched(8), searched(9)
    assert first.study.workload == {"m": 8} and other.study.workload == {"m": 9}
    assert other.study.id != first.study.id and list(other.study.differs) == ["workload"]


def test_a_study_has_one_workload(tmp_path: Path) -> None:
    space = Space([IntegerRange("tile", 1, 8)], ["m % tile == 0"], workload={"m": 8})
    both = autotune.StudySpec("both", space, workload={"n": np.int64(3)})  # type: ignore[arg-type]
    with autotune.ask_tell(both, store=tmp_path / "w.db") as session:
        assert session.result().study.workload == {"m": 8, "n": 3}
    with pytest.raises(InputError, match="'m' of the workload is 9, and 8 in the space"):
        autotune.ask_tell(replace(both, workload={"m": 9}), store=tmp_path / "w.db")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'m' of the workload is of the type type"):
        autotune.ask_tell(replace(both, workload={"m": int}), store=tmp_path / "w.db")  # type: ignore[arg-type]


def test_a_changed_source_begins_a_new_study(tmp_path: Path, search: Callable[..., autotune.Result]) -> None:
    first = search(trials=3, objective=lambda x, y: 1.0 + x)
    again = search(trials=3, objective=lambda x, y: 1.0 + x)
    other = search(trials=3, objective=lambda x, y: 9.0 - x)
    assert first.study.differs == {} and again.study.id == first.study.id
    assert set(other.study.differs) == {"source"} and other.study.id != first.study.id


def count_of(tile: int, kind: str) -> float:
    return 1.0 + tile + len(kind)


class Training(autotune.Objective):
    """Its loss is the better the larger the tile, and falls with the steps."""

    def measure(self, loaded: Any, rng: np.random.Generator) -> None:
        for step in range(1, (self.report.steps or 0) + 1):
            self.report(step, loss=1.0 / loaded["tile"] + 1.0 / step)


def test_a_study_in_python_has_what_a_file_has(tmp_path: Path) -> None:
    """A function and a space alone had neither metrics, nor early stopping, nor a name of their own."""
    early = autotune.EarlyStopping(max=9, resource="epochs")
    study = autotune.StudySpec(
        "training",
        Space([IntegerRange("tile", 1, 8, default=1)], []),
        metrics=(autotune.MetricSpec("loss", "minimize"),),
        search=autotune.SearchSettings("random", early_stopping=early),
    )
    result = autotune.search(study, objective=Training, trials=8, store=tmp_path / "study.db")
    assert (result.study.name, result.metric.name, result.best) == ("training", "loss", {"tile": 8})
    assert {trial.facts["steps"] for trial in result.trials} == {9}
    assert autotune.search(study, objective=Training, time="1h", trials=8, store=tmp_path / "study.db").trials
    with pytest.raises(InputError, match="time is 'soon'"):
        autotune.search(study, objective=Training, time="soon", store=tmp_path / "study.db")
    with pytest.raises(InputError, match="the study has no objective"):
        autotune.search(study, store=tmp_path / "study.db")
    with pytest.raises(InputError, match="no metric has a goal"):
        autotune.search(replace(study, metrics=()), objective=Training, store=tmp_path / "study.db")


def test_a_space_and_a_function_are_enough(tmp_path: Path) -> None:
    space = Space([IntegerRange("tile", 1, 4, default=4), Choice("kind", ("row", "column"))], ["tile != 1"])
    result = autotune.search(space, objective=count_of, trials=7, store=tmp_path / "study.db")
    assert result.best == {"tile": 2, "kind": "row"} and result.study.name == "count_of"
    assert result.metric.name == "time" and result.speedup is not None
    unnamed = autotune.search(space, objective=lambda tile, kind: 1.0, trials=2, store=tmp_path / "study.db")
    assert unnamed.study.name == "lambda"
    with pytest.raises(InputError, match="together with an objective"):
        autotune.search(space, trials=2, store=tmp_path / "study.db")
    with pytest.raises(InputError, match=r'run the trials yourself, autotune.StudySpec\("NAME", space\)'):
        autotune.ask_tell(space, store=tmp_path / "study.db")  # type: ignore[arg-type]


def test_a_changed_file_begins_a_new_study(tmp_path: Path) -> None:
    given, store = spec(tmp_path), tmp_path / "study.db"
    autotune.search(given, trials=2, store=store)
    (tmp_path / "objective.py").write_text("def unused(x, y):\n    return 2.0\n")
    assert "source" in autotune.search(given, trials=2, store=store).study.differs


def test_fresh_begins_anew(search: Callable[..., autotune.Result]) -> None:
    assert search(trials=3).study.id != search(trials=3, fresh=True).study.id


def test_an_option_that_a_strategy_has_not_leaves_no_study(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    given = spec(tmp_path)
    given = replace(given, search=replace(given.search, options={"populaton": 3}))
    with pytest.raises(InputError, match="populaton"):
        search(given, trials=4, strategy="evolution")
    with Store.open(tmp_path / "study.db") as store:
        assert list(store.studies()) == []


def test_constraints_that_leave_nothing_leave_no_study(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    """An empty one would be the latest of its store, and answer for it."""
    text = SPACE.format(high=15).replace("x + y <= 25", "x * y == 211")
    nothing = parse_spec(text, tmp_path / "space.yaml", {})
    with pytest.raises(NothingFeasibleError, match=r"space.yaml: no configuration satisfies the constraints"):
        search(nothing, trials=4)
    with pytest.raises(NothingFeasibleError, match=r"autotune check .*space.yaml says what each"):
        autotune.ask_tell(nothing, store=tmp_path / "study.db")
    with Store.open(tmp_path / "study.db") as store:
        assert list(store.studies()) == []


def test_sources_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    given = spec(tmp_path)
    text = "import autotune\nclass Mine(autotune.Objective):\n    sources = tuple(print('*.c'))\n"
    (tmp_path / "objective.py").write_text(text)
    given = replace(given, objective=PythonObjective("objective.py:Mine", tmp_path))
    with Store.open(tmp_path / "study.db") as store:
        study = open_study(given, store, capture_environment(given))
    assert [note for note in study.notes if "Mine names by `sources = tuple(print('*.c'))`" in note]


def test_a_source_that_is_not_there_begins_no_study(tmp_path: Path) -> None:
    given = replace(spec(tmp_path), objective=PythonObjective("objective.py:Mine", tmp_path))
    text = "import autotune\nclass Mine(autotune.Objective):\n    sources = ('kernal.c',)\n"
    (tmp_path / "objective.py").write_text(text)
    with Store.open(tmp_path / "study.db") as store:
        with pytest.raises(InputError, match="names 'kernal"):
            open_study(given, store, capture_environment(given))
        assert not list(store.studies())
