"""A study whose space has changed: which trials still count, and what the answer is."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import autotune
from autotune.report.comparison import differences_between
from autotune.report.evidence import load_evidence
from autotune.report.overview import studies
from autotune.report.pages.markdown import markdown
from autotune.report.pages.study_page import answer_of, study_page
from autotune.report.standing import front
from autotune.report.words.summary import headline, summarize
from autotune.session.answers import best_trials, load_answer, load_best, load_front
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
    said = summarize(after, space="bowl.yaml")
    assert (
        f"{len(after.trials)} trials (30 in the space as it is now)" in said and "ended by: 30 trials" in said
    )
    assert "--trials 60" in said, "those that are gone count for no budget"
    assert "as it is now" not in summarize(before)


def test_what_is_gone_from_a_space_is_not_on_the_front(tmp_path: Path) -> None:
    """`autotune best --front` offered a configuration that the space no longer had."""

    def chart(x: int) -> dict[str, float]:
        return {"time": 1.0 + x, "memory": 20.0 - x}

    def searched(low: int) -> autotune.Result:
        metrics = "metrics: {time: {goal: minimize}, memory: {goal: minimize}}"
        knobs = f"knobs: {{x: {{range: [{low}, 9], default: 5}}}}"
        given = parse_spec(
            f"autotune: 1\nname: chart\nobjective: chart.py:chart\n{knobs}\n{metrics}",
            tmp_path / "chart.yaml",
            {},
        )
        return autotune.search(given, objective=chart, store=tmp_path / "study.db", trials=9)

    assert [trial.configuration["x"] for trial in searched(1).front] == [*range(1, 10)]
    after = searched(4)
    with Store.open(tmp_path / "study.db") as store:
        drawn = front(load_evidence(store))
        for found in (
            after.front,
            load_front(store, store.study()),
            load_best(store, after.study, front=True).front,
        ):
            assert [trial.configuration["x"] for trial in found] == [*range(4, 10)]
    assert len(drawn) == 6 and drawn["front"].all()


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


LINE = """\
autotune: 1
name: line
objective: objective.py:measure
knobs: {{a: {{range: [{low}, {high}], default: {default}}}}}
measure: {{finalists: 0}}
budget: {{trials: {trials}}}
"""


def line(folder: Path, *, low: int = 1, high: int = 9, default: int, trials: int) -> autotune.Result:
    """Search a line on which all from 20 on crash."""
    (folder / "objective.py").write_text("def measure(a):\n    assert a < 20\n    return 10.0 - a\n")
    text = LINE.format(low=low, high=high, default=default, trials=trials)
    given = parse_spec(text, folder / "space.yaml", {})
    return autotune.search(given, store=folder / "study.db")


def test_a_default_that_was_changed_and_changed_back_is_the_default(tmp_path: Path) -> None:
    for default in (2, 8, 2):
        result = line(tmp_path, default=default, trials=1 if default == 2 else 2)
    assert result.best == {"a": 8} and not result.is_default and not result.only_default
    with Store.open(tmp_path / "study.db", readonly=True) as store:
        assert re.search(r"\| a \| 8 \| 2 \| changed", markdown(study_page(store, None, 0.0)))
    assert float(studies(tmp_path / "study.db")["best"].iloc[0]) == 2.0
    [default] = differences_between([load_evidence(tmp_path / "study.db")])["default"]
    assert default == 8.0


def test_what_succeeded_only_outside_the_space_is_said_to_be_outside(tmp_path: Path) -> None:
    line(tmp_path, high=3, default=2, trials=3)
    result = line(tmp_path, low=20, high=21, default=20, trials=2)
    said = "no configuration of the space as it is now succeeded; outside it 3 did"
    assert result.best is None and headline(result) == result.remark == said
    with Store.open(tmp_path / "study.db", readonly=True) as store:
        assert answer_of(load_answer(store, store.study())).beside == said
    assert studies(tmp_path / "study.db")["against_default"].iloc[0].endswith("in the space as it is now")


def everything(folder: Path) -> list[TrialRecord]:
    with Store.open(folder / "study.db", readonly=True) as store:
        return store.trials(store.study().id)
