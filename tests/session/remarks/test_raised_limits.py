"""Trials that failed at a limit which was raised since."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import autotune
from autotune.session.remarks.raised_limits import say_raised
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import MeasureSettings, StudySpec
from autotune.store.store import Store
from tests.session.heard import Heard

SPACE = """
autotune: 1
name: limited
objective: objective.py:unused
knobs: {x: {range: [0, 3], default: 0}}
measure: {timeout: 2, prepare_timeout: 3, memory: 1GiB}
"""


@pytest.fixture
def spec(tmp_path: Path) -> StudySpec:
    """A study of one trial that succeeded, one that took too long and one that ran out of memory."""
    (tmp_path / "objective.py").write_text("def unused(x):\n    return 1.0\n")
    given = parse_spec(SPACE, tmp_path / "space.yaml", {})
    with autotune.ask_tell(given, store=tmp_path / "study.db") as session:
        for trial, told in zip(
            session.ask(3), ({"time": 1.0}, {"status": "timeout"}, {"status": "out-of-memory"}), strict=True
        ):
            session.tell(trial, **told)
    return given


def said(folder: Path, now: MeasureSettings) -> str:
    with Store.open(folder / "study.db", readonly=True) as store:
        return say_raised(store, store.study().id, now)


@pytest.mark.parametrize(
    ("changed", "count"),
    [
        ({}, 0),
        ({"timeout": 1.0, "memory": 1 << 20}, 0),
        ({"prepare_timeout": 9.0}, 0),
        ({"timeout": 9.0}, 1),
        ({"memory": None}, 1),
        ({"timeout": 9.0, "memory": 1 << 40}, 2),
    ],
)
def test_only_what_failed_at_a_lower_limit_counts(
    tmp_path: Path, spec: StudySpec, changed: dict[str, Any], count: int
) -> None:
    text = said(tmp_path, replace(spec.measure, **changed))
    assert text.startswith(f"{count} earlier trial") if count else text == ""


def test_a_search_says_so_as_it_begins(tmp_path: Path, spec: StudySpec) -> None:
    """It had ended with 'every configuration was tried', where the best of them had only been too slow."""
    heard = Heard()
    raised = replace(spec, measure=replace(spec.measure, timeout=60.0))
    autotune.search(raised, trials=4, store=tmp_path / "study.db", progress=heard)
    assert any("failed at a lower limit than there is now (timeout)" in note for note in heard.notes)
