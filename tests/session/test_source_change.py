"""The objective's file is edited while its search runs: said loudly, marked, one code a trial."""

from __future__ import annotations

from pathlib import Path

import autotune
from autotune.measure.outcome import Outcome
from autotune.session.progress import Best, Progress
from autotune.space.configuration import Configuration

SPACE = """
autotune: 1
name: edited
objective: objective.py:measure
knobs: {a: {range: [0, 99], default: 0}}
search: {strategy: random}
measure: {min_readings: 2, max_readings: 2, finalists: 0}
"""


class Editor(Progress):
    """Edits the objective when the fourth trial has finished, as a user in another window does."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.count = 0
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finished(
        self, number: int, configuration: Configuration, outcome: Outcome, best: Best | None
    ) -> None:
        self.count += 1
        if self.count == 4:
            self.file.write_text("def measure(a):\n    return 2.0\n")


def test_a_new_segment_begins_and_no_trial_mixes_codes(tmp_path: Path) -> None:
    file = tmp_path / "objective.py"
    file.write_text("def measure(a):\n    return 1.0\n")
    (tmp_path / "space.yaml").write_text(SPACE)
    editor = Editor(file)
    result = autotune.search(tmp_path / "space.yaml", trials=12, store=tmp_path / "study.db", progress=editor)
    assert any("source changed" in note for note in editor.notes), editor.notes
    by_segment: dict[int, set[float]] = {}
    for trial in result.trials:
        by_segment.setdefault(trial.segment_id, set()).add(trial.metrics["time"].value)
    assert len(result.trials) == 12
    assert sorted(map(sorted, by_segment.values())) == [[1.0], [2.0]]
