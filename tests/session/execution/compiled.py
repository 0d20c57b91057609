"""An objective that prepares, and how tests of executors hand it trials."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from autotune.measure.outcome import Outcome
from autotune.session.execution.executor import Executor, Started, Ticket
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import StudySpec

OBJECTIVE = """
import os, time
import autotune

class Compiled(autotune.Objective):
    def prepare(self, configuration):
        library = self.context.cache / f"{configuration['x']}.txt"
        library.write_text(str(configuration["x"]))
        if configuration["x"] == 66:
            raise autotune.Infeasible("66 is refused")
        return str(library)

    def load(self, prepared):
        with open(prepared) as file:
            return float(file.read())

    def check(self, loaded, rng):
        return {"error": 0.0}

    def measure(self, loaded, rng):
        if loaded == 77:
            time.sleep(600)
        return {"time": loaded + 1e-3 * rng.random(), "cores": len(os.sched_getaffinity(0))}

    def baselines(self):
        return (autotune.Baseline("vendor"), autotune.Baseline("tuned", "", {"A_TEST_OF_AUTOTUNE": "3"}),
                autotune.Baseline("absent", "", {"NOT": "1"}))

    def load_baseline(self, baseline):
        if baseline.name == "absent":
            raise autotune.Infeasible("not on this machine")
        return float(os.environ.get("A_TEST_OF_AUTOTUNE", "9"))
"""

SPACE = """
autotune: 1
name: executors
objective: objective.py:Compiled
metrics: {time: {goal: minimize, unit: s}, error: {at_most: 0.1}}
knobs:
  x: {range: [0, 99], default: 0}
measure: {min_readings: 5, max_readings: 9, precision: 1.0e-9}
"""


def spec_in(folder: Path, objective: str = OBJECTIVE, space: str = SPACE) -> StudySpec:
    (folder / "objective.py").write_text(objective)
    return parse_spec(space, folder / "space.yaml", {})


def rejecting_none(spec: StudySpec) -> StudySpec:
    """The same, where what is worse than another is read to its end as well."""
    return replace(spec, measure=replace(spec.measure, reject=False))


def submit(executor: Executor, *values: int) -> None:
    for x in values:
        configuration = executor.spec.space.configuration({"x": x})  # type: ignore[attr-defined]
        executor.submit(Ticket(x, configuration, seed=x))


def collect(executor: Executor, n: int) -> tuple[list[int], dict[int, Outcome]]:
    """Trials in the order in which they began, and how each ended."""
    started: list[int] = []
    outcomes: dict[int, Outcome] = {}
    deadline = time.monotonic() + 120
    while len(outcomes) < n and time.monotonic() < deadline:
        for event in executor.poll(0.5):
            if isinstance(event, Started):
                assert event.worker and event.trial_id not in started
                started.append(event.trial_id)
            else:
                assert event.trial_id not in outcomes
                outcomes[event.trial_id] = event.outcome
    assert len(outcomes) == n
    return started, outcomes
