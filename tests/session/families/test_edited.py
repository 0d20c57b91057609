"""A family whose objective is edited while it is searched."""

from __future__ import annotations

from pathlib import Path

import pytest

import autotune
from autotune.measure.outcome import Outcome
from autotune.session.progress import Best, Progress
from autotune.space.configuration import Configuration
from autotune.store.store import Store

SPACE = """
autotune: 1
name: edited
objective: objective.py:measure
workloads: [{m: 64}, {m: 16}]
knobs: {a: {range: [0, 99], default: 0}}
search: {strategy: random}
measure: {min_readings: 2, max_readings: 2, finalists: 1}
budget: {trials: 20}
"""


class Editor(Progress):
    """Edits the objective: when so many tries have ended, or when finalists are measured."""

    def __init__(self, file: Path, after: int) -> None:
        self.notes: list[str] = []
        self.file = file
        self.left = after
        self.measured_again = 0

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finished(
        self, number: int, configuration: Configuration, outcome: Outcome, best: Best | None
    ) -> None:
        self.left -= 1
        if self.left == 0:
            self.edit()

    def defending(self, entrants: tuple[str, ...], seconds: float) -> None:
        self.measured_again += 1
        self.edit()

    def edit(self) -> None:
        self.file.write_text("def measure(a, m):\n    return 2.0 + a\n")


@pytest.mark.parametrize(
    "after", [pytest.param(5, marks=pytest.mark.long), 10, pytest.param(15, marks=pytest.mark.long)]
)
def test_an_edit_is_followed_in_all_workloads(tmp_path: Path, after: int) -> None:
    """The tries with the new source had not counted, and nothing had been won with it."""
    file = tmp_path / "objective.py"
    file.write_text("def measure(a, m):\n    return 1.0 + a\n")
    (tmp_path / "space.yaml").write_text(SPACE.replace("finalists: 1", "finalists: 0"))
    editor = Editor(file, after)
    found = autotune.search_many(tmp_path / "space.yaml", store=tmp_path / "s.db", progress=editor)
    assert any("source" in note and "changed" in note for note in editor.notes)
    assert found.reason == "20 trials" and sum(len(one.trials) for one in found.results) == 20
    with Store.open(str(tmp_path / "s.db"), readonly=True) as store:
        newest = {str(study.workload): study.id for study in store.studies("edited")}
    assert sorted(newest.values()) == sorted(one.study.id for one in found.results)
    for one in found.results:
        last = max(one.trials, key=lambda trial: trial.number)
        assert last.metrics["time"].value == 2.0 + last.configuration["a"]


def test_winners_of_a_source_that_is_gone_are_not_measured_again(tmp_path: Path) -> None:
    file = tmp_path / "objective.py"
    file.write_text("def measure(a, m):\n    return 1.0 + a\n")
    (tmp_path / "space.yaml").write_text(SPACE)
    editor = Editor(file, 0)
    autotune.search_many(tmp_path / "space.yaml", store=tmp_path / "s.db", progress=editor)
    assert editor.measured_again == 1
    assert any("are not measured again, since the objective's source has changed" in n for n in editor.notes)
    with Store.open(str(tmp_path / "s.db"), readonly=True) as store:
        assert len(store.studies("edited")) == 2, "no study without trials has begun"
