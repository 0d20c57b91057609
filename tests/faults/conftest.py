"""Real workers on objectives that misbehave, and a mark by which nothing they start can hide."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotune.measure.outcome import Outcome
from autotune.session.execution.executor import Finished, Ticket
from autotune.session.execution.workers import WorkerExecutor
from autotune.space.reading.reader import parse_spec
from autotune.space.spec import StudySpec
from tests.processes import living_with

OBJECTIVES = Path(__file__).parent / "objectives"
MARK = "AUTOTUNE_FAULTS_MARK"


@pytest.fixture
def nothing_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[int]]]:
    """Asks which processes are left of this test; at the end there must be none."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv(MARK, mark)
    yield lambda: living_with(f"{MARK}={mark}")
    assert living_with(f"{MARK}={mark}") == []


def spec_of(target: str, faults: list[str], **measure: object) -> StudySpec:
    settings = {"min_readings": 3, "max_readings": 3, "timeout": 20, "warmup": 0, **measure}
    listed = ", ".join(f"{name}: {value}" for name, value in settings.items())
    choices = ", ".join(f'"{fault}"' for fault in dict.fromkeys(["none", *faults]))
    text = f"""
autotune: 1
name: faults
objective: {target}
metrics: {{time: {{goal: minimize, unit: s}}, error: {{at_most: 0.01}}}}
knobs:
  fault: {{choices: [{choices}], default: none}}
  number: {{range: [0, 100], default: 0}}
measure: {{{listed}}}
"""
    return parse_spec(text, OBJECTIVES / "space.yaml", {})


def run(
    executor: WorkerExecutor, spec: StudySpec, faults: list[str], seconds: float = 120
) -> dict[str, Outcome]:
    """The outcome of each fault, all submitted at once."""
    for number, fault in enumerate(faults):
        configuration = spec.space.configuration({"fault": fault, "number": number})
        executor.submit(Ticket(number, configuration, seed=number))
    outcomes: dict[str, Outcome] = {}
    deadline = time.monotonic() + seconds
    while len(outcomes) < len(faults) and time.monotonic() < deadline:
        for event in executor.poll(1.0):
            if isinstance(event, Finished):
                assert faults[event.trial_id] not in outcomes, "it ended twice"
                outcomes[faults[event.trial_id]] = event.outcome
    return outcomes
