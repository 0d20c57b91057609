"""What a study names as worth a try is tried right after the default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import autotune
from autotune.session.progress import Progress
from autotune.session.reproduction.derivation import derive
from autotune.space.spec import SearchSettings, StudySpec
from autotune.store.store import Store
from tests.session.bowl import proposals, spec

GOOD, BETTER = {"x": 7, "y": 10}, {"x": 7, "y": 11}
FORBIDDEN = {"x": 15, "y": 15}
Search = Callable[..., autotune.Result]


def with_first(folder: Path, *first: dict[str, int]) -> StudySpec:
    return replace(spec(folder), search=SearchSettings("random", seed=5, first=first))


def test_they_come_after_the_default_in_their_order(search: Search, tmp_path: Path) -> None:
    result = search(with_first(tmp_path, GOOD, {"y": 3}, GOOD), trials=6)
    assert proposals(result)[:3] == [{"x": 0, "y": 0}, GOOD, {"x": 0, "y": 3}]
    reasons = [trial.reason["kind"] for trial in sorted(result.trials, key=lambda trial: trial.number)]
    assert reasons == ["default", "given", "given", "uniform", "uniform", "uniform"]


def test_those_that_are_added_later_come_next_and_all_follows(search: Search, tmp_path: Path) -> None:
    search(with_first(tmp_path, GOOD), trials=4)
    grown = search(with_first(tmp_path, BETTER, GOOD), trials=8)
    assert proposals(grown)[1] == GOOD and proposals(grown)[4] == BETTER
    assert grown.best == BETTER
    with Store.open(tmp_path / "study.db", readonly=True) as store:
        found = derive(store, store.study())
    assert found.follows and found.compared == 8


def test_one_that_the_rules_forbid_is_passed_over_and_that_is_said(search: Search, tmp_path: Path) -> None:
    class Heard(Progress):
        def note(self, text: str) -> None:
            said.append(text)

    said: list[str] = []
    given = with_first(tmp_path, FORBIDDEN, GOOD)
    result = search(given, trials=3, progress=Heard())
    assert proposals(result)[1] == GOOD
    why = "search.first[0] violates the constraint 'x + y <= 25' (with x = 15, y = 15): it is not tried"
    assert why in said
