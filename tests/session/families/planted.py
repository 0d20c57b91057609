"""A planted objective whose best configuration depends on the workload, and spaces for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from autotune.measure.objective import Infeasible, Objective, WrongAnswer
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import parse_family
from autotune.space.spec import Family

SPACE = """
autotune: 1
name: planted
objective: objective.py:Planted
workload: {{kind: plain}}
workloads: {workloads}
knobs:
  tile: {{values: [1, 2, 4, 8, 16, 32, 64], default: 1}}
  pack: {{flag: false}}
  spread: {{range: [0, 9]}}
constraints: ["tile <= m"]
search: {{strategy: {strategy}, seed: 1}}
measure: {{min_readings: 3, max_readings: 3, finalists: {finalists}}}
budget: {{trials: {trials}}}
"""


def family(
    folder: Path, workloads: str, trials: int = 40, finalists: int = 2, strategy: str = "random"
) -> Family:
    (folder / "objective.py").write_text("class Planted: pass\n")
    text = SPACE.format(workloads=workloads, trials=trials, finalists=finalists, strategy=strategy)
    return parse_family(text, folder / "space.yaml")


class Planted(Objective):
    """Small sizes want small tiles, large ones packing. With 13 nothing works, with 96 packing is wrong."""

    prepared: ClassVar[list[tuple[Mapping[str, Any], Configuration]]] = []

    def prepare(self, configuration: Configuration) -> Configuration:
        type(self).prepared.append((dict(self.context.workload), configuration))
        if self.context.workload["m"] == 13:
            raise Infeasible("thirteen")
        return configuration

    def check(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float]:
        if self.context.workload["m"] == 96 and loaded["pack"]:
            raise WrongAnswer("packed ninety-six")
        return {}

    def measure(self, loaded: Any, rng: np.random.Generator) -> Mapping[str, float]:
        m = self.context.workload["m"]
        away = abs(math.log2(loaded["tile"]) - min(math.log2(m), 6))
        unpacked = 0.3 * (loaded["pack"] != (m > 100))
        slow = 1 + 0.2 * away + unpacked + 0.02 * abs(loaded["spread"] - 5)
        return {"time": 1e-3 * m * slow * math.exp(0.001 * rng.standard_normal())}
