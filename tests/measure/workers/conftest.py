"""A worker of an objective that is written for the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autotune.measure.objective import Context
from autotune.measure.workers.messages import Setup
from autotune.measure.workers.process import Worker
from autotune.space.spec import MeasureSettings, MetricSpec, PythonObjective
from tests.measure.workers.starting import OBJECTIVE, Start


@pytest.fixture
def setup(tmp_path: Path) -> Callable[..., Setup]:
    def make(text: str = OBJECTIVE, **more: object) -> Setup:
        (tmp_path / "objective.py").write_text(text)
        return Setup(
            PythonObjective("objective.py:measure", tmp_path),
            Context({}, {}, tmp_path),
            (MetricSpec("time", "minimize"),),
            MeasureSettings(min_readings=3, max_readings=3, warmup=0),
            **more,  # type: ignore[arg-type]
        )

    return make


@pytest.fixture
def start(setup: Callable[..., Setup]) -> Iterator[Start]:
    workers: list[Worker] = []

    def run(text: str = OBJECTIVE, environment: dict[str, str] | None = None, **more: object) -> Worker:
        workers.append(Worker(setup(text, **more), environment))
        return workers[-1]

    yield run
    for worker in workers:
        worker.close()
