"""A study written in Python is held to what the reader of space files holds one to."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from autotune.space.knobs import IntegerRange
from autotune.space.reading.reader import parse_spec
from autotune.space.space import Space
from autotune.space.spec import (
    TIME,
    Budget,
    EarlyStopping,
    MeasureSettings,
    MetricSpec,
    SearchSettings,
    StudySpec,
)
from autotune.space.spec_problems import spec_problems

SPACE = Space([IntegerRange("x", 1, 4)], [])
LOSS = MetricSpec("loss", "minimize")
STUDY = StudySpec("training", SPACE, metrics=(LOSS,), search=SearchSettings("bayes"))


def stopping(**settings: Any) -> dict[str, Any]:
    return {"search": SearchSettings(early_stopping=EarlyStopping(**settings))}


def test_what_a_file_says_can_be_written_in_python() -> None:
    text = """
autotune: 1
name: training
objective: train.py:train
knobs: {x: {range: [1, 4]}}
metrics: {loss: {goal: minimize}, accuracy: {at_least: 0.5}}
search: {strategy: bayes, first: [{x: 2}], early_stopping: {max: 9, resource: epochs}}
"""
    read = parse_spec(text)
    early = EarlyStopping(max=9, resource="epochs")
    metrics = (LOSS, MetricSpec("accuracy", at_least=0.5))
    search = SearchSettings("bayes", first=({"x": 2},), early_stopping=early)
    made = StudySpec("training", SPACE, metrics=metrics, search=search)
    given = replace(read, objective=made.objective, source=None, text="")
    assert made == given and not list(spec_problems(made))
    assert StudySpec("plain", SPACE).metrics == TIME


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"name": "a b"}, "'a b' cannot name a study"),
        ({"metrics": ("loss",)}, "a metric is 'loss'"),
        ({"metrics": (MetricSpec("loss", "minimise"),)}, "did you mean 'minimize'?"),  # type: ignore[arg-type]
        ({"metrics": (MetricSpec("my loss", "minimize"),)}, "'my loss' cannot name a metric"),
        ({"search": SearchSettings(first=[{"x": 5}])}, "search.first[0]: x cannot be 5"),
        ({"search": SearchSettings(first={"x": 2})}, "search.first is a mapping"),  # type: ignore[arg-type]
        ({"metrics": (LOSS, LOSS)}, "there are two metrics 'loss'"),
        ({"metrics": (MetricSpec("loss"),)}, "no metric has a goal"),
        (stopping(max=9, policy="ascha"), "did you mean 'asha'?"),
        (stopping(max=9, metric="los"), "did you mean 'loss'?"),
        (stopping(max=1), "early_stopping.max is 1"),
        (stopping(max=9.5), "early_stopping.max is 9.5"),
        (stopping(max=2), "which leaves no rung to stop at"),
        (stopping(max=9, options={"x": 1}), "asha has no options"),
        ({"search": SearchSettings(early_stopping={"max": 9})}, "EarlyStopping(max=27), say"),  # type: ignore[arg-type]
        ({"search": SearchSettings(seed=-1)}, "search.seed is -1"),
        ({"search": SearchSettings("baies")}, "did you mean 'bayes'?"),
        ({"search": SearchSettings(options=None)}, "search.options is None"),  # type: ignore[arg-type]
        ({"search": {"strategy": "bayes"}}, "expected: a SearchSettings"),
        ({"metrics": LOSS}, "a tuple of MetricSpec"),
        ({"metrics": (MetricSpec("loss", "minimize", at_most=1, at_least=2),)}, "can never hold"),
        ({"metrics": (MetricSpec("loss", "minimize", at_most=math.nan),)}, "at_most is nan"),
        ({"measure": MeasureSettings(confidence=95)}, "0.95 means 95 %"),
        ({"measure": MeasureSettings(timeout="30s")}, "the text '30s'"),  # type: ignore[arg-type]
        ({"measure": MeasureSettings(min_readings=10, max_readings=3)}, "max_readings (3) is below"),
        ({"budget": Budget(trials=0)}, "budget.trials is 0"),
        ({"budget": Budget(time=math.nan)}, "budget.time is nan"),
        ({"workload": [1]}, "workload is [1]"),
        ({"objective": print}, "search(..., objective=...)"),
        ({"space": {"x": [1, 2]}}, "space is {'x': [1, 2]}\n  expected: a Space"),
    ],
)
def test_what_is_wrong_is_said(changed: dict[str, Any], said: str) -> None:
    (problem,) = spec_problems(replace(STUDY, **changed))
    assert said in str(problem)
