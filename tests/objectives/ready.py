"""Ready objectives at small workloads, for their tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from autotune.measure.kernels.array_objective import ArrayObjective
from autotune.measure.loading.load import load_objective
from autotune.measure.objective import Context
from autotune.provenance.device import device_facts
from autotune.space.configuration import Configuration
from autotune.space.reading.reader import read_spec
from autotune.space.spec import StudySpec

SPACES = Path(__file__).parents[2] / "searchspaces"


@dataclass(frozen=True)
class Ready:
    """A ready space, whose objectives compile into ``cache``."""

    spec: StudySpec
    cache: Path

    def objective(self, **workload: object) -> Any:
        """Its objective, with other facts of the workload."""
        context = Context({**self.spec.workload, **workload}, device_facts(), self.cache)
        found = load_objective(self.spec.objective, context)
        assert isinstance(found, ArrayObjective)
        return found

    def configuration(self, **knobs: Any) -> Configuration:
        """The default with other values."""
        values = {**self.spec.space.default(), **knobs}
        return Configuration({name: value for name, value in values.items() if value is not None})

    def error(self, configuration: Configuration, workload: Mapping[str, object]) -> float:
        """The error that the check of a configuration finds."""
        objective = self.objective(**workload)
        loaded = objective.load(objective.prepare(configuration))
        return float(objective.check(loaded, np.random.default_rng(0))["error"])


def ready(name: str, cache: Path) -> Ready:
    """A space of ``searchspaces/`` with the facts of this machine."""
    return Ready(read_spec(SPACES / f"{name}.yaml", device=device_facts()), cache)
