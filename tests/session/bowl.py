"""A space of two knobs and a function of them whose best is known."""

from __future__ import annotations

from pathlib import Path

import autotune
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import StudySpec

SPACE = """
autotune: 1
name: bowl
objective: objective.py:unused
knobs:
  x: {{range: [0, {high}], default: 0}}
  y: {{range: [0, 15], default: 0}}
constraints: ["x + y <= 25"]
measure: {{min_readings: 3, max_readings: 3, finalists: 3}}
"""


def bowl(x: int, y: int) -> float:
    return 1.0 + (x - 7) ** 2 + (y - 11) ** 2


def spec(folder: Path, high: int = 15) -> StudySpec:
    (folder / "objective.py").write_text("def unused(x, y):\n    return 1.0\n")
    return parse_spec(SPACE.format(high=high), folder / "space.yaml", {})


def proposals(result: autotune.Result) -> list[dict[str, object]]:
    return [dict(t.configuration) for t in sorted(result.trials, key=lambda t: t.number)]
