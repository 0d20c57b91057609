"""The cases of :mod:`benchmarks.placement`, and brute force over them: all assignments, in rounds."""

from __future__ import annotations

import json
import os
import random
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from autotune.space.knobs import Assignment
from autotune.space.space import Space
from autotune.space.spec import MetricSpec, PythonObjective

ROOT = Path(__file__).parents[1]
OBJECTIVE = PythonObjective("objectives/distributed/placement.py:Placement", ROOT)
SHARES = {"fast": 0.5, "medium": 0.35, "slow": 0.25, "slower": 0.2}
"""Of a core."""

Place = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A model on devices. All assignments of its items are tried with the same micro-batches and schedule."""

    name: str
    devices: int
    bandwidth: float
    model: Mapping[str, Any]
    micro_batches: int = 4
    schedule: str = "1f1b"
    steps: int = 5
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(SHARES)[: self.devices]

    @cached_property
    def items(self) -> tuple[str, ...]:
        if self.model["model"] == "chain":
            return ("embed", *(f"block{n}" for n in range(self.model["blocks"])), "head")
        return ("stem", *(f"branch{n}" for n in range(self.model["branches"])), "head")

    @property
    def workload(self) -> dict[str, Any]:
        link = {"bandwidth": self.bandwidth, "latency": 2e-4}
        devices = {name: {"cpu": SHARES[name], **link} for name in self.names}
        return {**self.model, "devices": devices, "steps": self.steps}

    @property
    def space(self) -> Space:
        return Space((Assignment("place", self.items, self.names),))

    @property
    def metrics(self) -> tuple[MetricSpec, ...]:
        """The goal, and what each device works."""
        return MetricSpec("time", "minimize", "s"), *(MetricSpec(f"busy_{name}") for name in self.names)

    @property
    def key(self) -> str:
        """For names of files."""
        return self.name.replace(",", "").replace(" ", "-")

    def place_of(self, configuration: Mapping[str, Any]) -> Place:
        return tuple(self.names.index(configuration["place"][item]) for item in self.items)

    @property
    def places(self) -> list[Place]:
        return list(product(range(self.devices), repeat=len(self.items)))


CASES = (
    Case("transformer, 7 items on 2 devices", 2, 2e8, {"model": "chain", "blocks": 5, "batch": 32}),
    Case("transformer, 5 items on 3 devices", 3, 2e8, {"model": "chain", "blocks": 3, "batch": 32}),
    Case(
        "branches, 7 items on 2 devices",
        2,
        1e9,
        {"model": "graph", "branches": 5, "channels": 24, "batch": 32},
    ),
    Case(
        "branches, 4 items on 4 devices",
        4,
        1e9,
        {"model": "graph", "branches": 2, "channels": 32, "batch": 32},
    ),
)


@dataclass(frozen=True)
class Reading:
    """One measurement of one assignment: the metrics of a few training steps."""

    place: Place
    round: int
    metrics: Mapping[str, float]


class Readings:
    """What was measured of a case, in a file of a line a reading, so that it can be gone on with."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.all: list[Reading] = []
        if file.exists():
            for line in file.read_text().splitlines():
                found = json.loads(line)
                self.all.append(Reading(tuple(found["place"]), found["round"], found["metrics"]))

    def add(self, reading: Reading) -> None:
        self.all.append(reading)
        with self._file.open("a") as out:
            line = {"place": reading.place, "round": reading.round, "metrics": dict(reading.metrics)}
            out.write(json.dumps(line) + "\n")
            out.flush()
            os.fsync(out.fileno())

    def of(self, place: Place) -> list[Reading]:
        return [reading for reading in self.all if reading.place == place]

    def median(self, place: Place) -> float:
        """Seconds a step."""
        return statistics.median(reading.metrics["time"] for reading in self.of(place))


@contextmanager
def measuring(case: Case) -> Iterator[Any]:
    """The objective of a case, in this process."""
    from autotune.measure.load import load_objective
    from autotune.measure.objective import Context

    with tempfile.TemporaryDirectory() as folder:
        objective: Any = load_objective(OBJECTIVE, Context(case.workload, {}, Path(folder)))
        try:
            yield objective
        finally:
            objective.tidy()


def brute_force(case: Case, readings: Readings, rounds: int) -> None:
    """Measure every assignment once a round, in an order of its own each round; goes on where it stopped."""
    done = {(reading.place, reading.round) for reading in readings.all}
    left = [
        (place, number)
        for number in range(rounds)
        for place in random.Random(number).sample(case.places, len(case.places))
        if (place, number) not in done
    ]
    if left:
        with measuring(case) as objective:
            for place, number in left:
                readings.add(read(objective, case, place, number))


def read(objective: Any, case: Case, place: Place, number: int) -> Reading:
    """One reading; ``number`` seeds its data."""
    import numpy as np

    sample = objective.measure(plan_of(objective, case, place), np.random.default_rng(number))
    return Reading(place, number, sample.values)


def plan_of(objective: Any, case: Case, place: Place) -> Any:
    return objective.load(
        {
            "place": {item: case.names[where] for item, where in zip(case.items, place, strict=True)},
            "micro_batches": case.micro_batches,
            "schedule": case.schedule,
        }
    )
