"""A study whose space has changed: which trials still count, and what the answer is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import autotune
from autotune.report.summary import summarize
from autotune.session.answers import best_trials, load_answer
from autotune.space.reading.reader import parse_spec
from autotune.store.records import TrialRecord
from autotune.store.store import Store
from tests.session.bowl import SPACE, bowl, proposals, spec


def test_a_space_that_grew_keeps_its_trials(tmp_path: Path, search: Callable[..., autotune.Result]) -> None:
    before = search(trials=15)
    after = search(spec(tmp_path, high=20), trials=25)
    assert after.study.id == before.study.id
    assert proposals(after)[:15] == proposals(before)
    assert len({t.hash for t in after.trials}) == 25, "something was measured twice"


def test_a_space_that_shrank_does_not_answer_with_what_is_gone(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    search(trials=60)
    after = search(spec(tmp_path, high=4), trials=70)
    assert after.best is not None and after.best["x"] <= 4


def test_what_is_gone_from_a_space_does_not_count_for_the_budget(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    before = search(trials=40)
    assert any(t.configuration["x"] > 4 for t in before.trials)
    after = search(spec(tmp_path, high=4), trials=30)
    assert sum(t.configuration["x"] <= 4 for t in after.trials) == 30
    said = summarize(after)
    assert (
        f"{len(after.trials)} trials (30 in the space as it is now)" in said and "ended by: 30 trials" in said
    )
    assert "--trials 60" in said, "those that are gone count for no budget"
    assert "as it is now" not in summarize(before)


def test_a_winner_that_its_space_forbids_is_no_answer(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    before = search(trials=20)
    won = before.best
    assert won is not None and before.defended
    forbid = f'constraints: ["x != {won["x"]} or y != {won["y"]}", '
    given = parse_spec(SPACE.format(high=15).replace("constraints: [", forbid), tmp_path / "space.yaml", {})
    # As many results as before are in the space, but they are others: the finalists are measured again.
    after = search(given, trials=20)
    assert len(after.trials) == 21 and after.defended and after.best not in (None, won)
    with Store.open(tmp_path / "study.db") as store:
        assert len(store.verdicts(after.study.id)) == 2
        assert load_answer(store, store.study()).best == after.best


def test_without_a_finale_a_trial_outside_the_space_is_no_answer(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    before = search(trials=20)
    assert before.best is not None
    given = spec(tmp_path, high=before.best["x"] - 1)
    after = search(replace(given, measure=replace(given.measure, finalists=0)), trials=1)
    inside = [t.configuration for t in after.trials if t.configuration["x"] < before.best["x"]]
    assert not after.defended and after.best == min(inside, key=lambda c: bowl(**c))
    with Store.open(tmp_path / "study.db") as store:
        listed = best_trials(store, store.study(), after.metric, 100)
        assert [t.configuration for t in listed] == sorted(inside, key=lambda c: bowl(**c))
        assert best_trials(store, store.study(), after.metric, 3) == listed[:3]


def test_the_answer_is_compared_with_the_default_of_today(
    tmp_path: Path, search: Callable[..., autotune.Result]
) -> None:
    before = search(trials=20)
    assert before.best is not None and before.speedup is not None
    text = SPACE.format(high=15).replace("default: 0", f"default: {before.best['x']}", 1)
    after = search(parse_spec(text, tmp_path / "space.yaml", {}), trials=20)
    default = bowl(before.best["x"], 0)
    assert after.speedup is not None and after.best == before.best
    assert after.speedup.estimate == pytest.approx(default / bowl(**before.best))
    assert len(after.trials) == 20 and before.speedup.estimate > after.speedup.estimate
    assert sum(t.purpose == "default" for t in everything(tmp_path)) == 2
    search(parse_spec(text, tmp_path / "space.yaml", {}), trials=20)
    assert sum(t.purpose == "default" for t in everything(tmp_path)) == 2, "measured again for nothing"


def everything(folder: Path) -> list[TrialRecord]:
    with Store.open(folder / "study.db", readonly=True) as store:
        return store.trials(store.study().id)
