"""A training whose curves are known, and a study of it that is stopped early."""

from __future__ import annotations

import math
from pathlib import Path

import autotune
from autotune.measure.reports import Reporter
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import StudySpec
from autotune.store.store import Store

SPACE = """
autotune: 1
name: curves
{objective}
metrics: {{loss: {{goal: minimize}}}}
knobs:
  x: {{range: [0, 8], default: 0}}
  y: {{range: [0, 5], default: 0}}
search:
  strategy: {strategy}
  seed: 3
  early_stopping: {{policy: {policy}, resource: epochs, max: {steps}}}
measure: {{finalists: 0, cores: 0}}
budget: {{trials: {trials}}}
"""


def train(x: int, y: int, report: Reporter, interrupt: bool = False) -> None:
    end = 0.1 + (x - 5) ** 2 / 64 + (y - 2) ** 2 / 25
    for step in range(1, (report.steps or 0) + 1):
        if interrupt and step == 2:
            raise KeyboardInterrupt
        report(step, loss=end + 0.5 * math.exp(-step / 6))


TRAIN = """
import math, os

def train(x, y, report):
    end = 0.1 + (x - 5) ** 2 / 64 + (y - 2) ** 2 / 25
    for step in range(1, report.steps + 1):
        if (x, step) == (3, 2):
            os._exit(7)
        report(step, loss=end + 0.5 * math.exp(-step / 6))
"""

PROGRAM = """
import math, sys
x, y = map(int, sys.argv[1:])
for step in range(1, 28):
    loss = 0.1 + (x - 5) ** 2 / 64 + (y - 2) ** 2 / 25 + 0.5 * math.exp(-step / 6)
    print(f'{{"step": {step}, "loss": {loss}}}')
"""


def spec(
    folder: Path,
    policy: str,
    *,
    objective: str = "objective: train.py:train",
    strategy: str = "random",
    trials: int = 27,
    steps: int = 27,
) -> StudySpec:
    (folder / "train.py").write_text(TRAIN)
    filled = SPACE.format(policy=policy, objective=objective, strategy=strategy, trials=trials, steps=steps)
    return parse_spec(filled, folder / "space.yaml", {})


def steps_of(url: Path) -> dict[int, int]:
    """How many reports each trial has made, by number."""
    with Store.open(url, readonly=True) as store:
        reports = store.reports(store.study().id)
    return {number: sum(r.number == number for r in reports) for number in {r.number for r in reports}}


def ends(result: autotune.Result) -> dict[int, tuple[str, object]]:
    return {t.number: (str(t.status), t.facts.get("step")) for t in result.trials}
