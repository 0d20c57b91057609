"""The cases of :mod:`benchmarks.placement`, and brute force over them: all assignments, in rounds."""

from __future__ import annotations

import math
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from autotune.provenance.host.pressure import pressure
from autotune.session.reproduction.paced import Series, slope_of
from autotune.space.knobs import Assignment
from autotune.space.space import Space
from autotune.space.spec import MetricSpec, PythonObjective
from benchmarks.kept import add_line, kept_lines

ROOT = Path(__file__).parents[1]
OBJECTIVE = PythonObjective("objectives/distributed/placement.py:Placement", ROOT)
SHARES = {"fast": 0.5, "medium": 0.35, "slow": 0.25, "slower": 0.2}
"""Of a core."""
LATENCY = 2e-4
"""Of each link, in seconds."""

STAGES = ((1.0, 1), (0.25, 2), (0.05, 8))
"""What part of all assignments, the best so far, is measured how many times the rounds."""
BESIDE = 7
"""Readings before one and after it whose pace is that of its moment."""
CALM, TRIES = 0.03, 3
"""Of a reading; see :func:`read`."""

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
    steps: int = 10
    """In a reading: twice as many do not make readings of one assignment differ less."""

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
        link = {"bandwidth": self.bandwidth, "latency": LATENCY}
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
    # At a tenth of this bandwidth (the first case) no split is much better than none.
    Case("transformer, 7 items on 2 devices, 2 Gbit", 2, 2e9, {"model": "chain", "blocks": 5, "batch": 32}),
    # The same of the branches: more work for a byte that is sent.
    Case(
        "branches, 7 items on 2 devices, 2 Gbit",
        2,
        2e9,
        {"model": "graph", "branches": 5, "channels": 48, "side": 8, "batch": 32},
    ),
)


@dataclass(frozen=True)
class Reading:
    """One measurement of one assignment: the metrics of a few training steps."""

    place: Place
    round: int
    metrics: Mapping[str, float]
    pace: float
    """The processor time of a step's arithmetic, over all devices, in seconds. The arithmetic is the same
    wherever the items are, so that what differs is, for the most part, how fast the cores were."""
    stolen: float
    """The share of all processor time that the host of a virtual machine took meanwhile."""


class Readings:
    """What was measured of a case, in a file of a line a reading, so that it can be gone on with."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.all = [Reading(**{**line, "place": tuple(line["place"])}) for line in kept_lines(file)]

    def add(self, reading: Reading) -> None:
        self.all.append(reading)
        add_line(self._file, {**vars(reading), "metrics": dict(reading.metrics)})

    def of(self, place: Place) -> list[Reading]:
        return [reading for reading in self.all if reading.place == place]

    def at_one_pace(self) -> dict[Place, list[float]]:
        """Seconds a step by assignment, as they would be had the cores been as fast all the time.

        How far the time follows the pace is one slope for all, as a replay of a study finds it
        (:mod:`autotune.session.reproduction.paced`); the pace is that of the middle reading.
        """
        paces = self._paces()
        by_place: dict[Place, list[tuple[float, float]]] = {}
        for reading, pace in zip(self.all, paces, strict=True):
            by_place.setdefault(reading.place, []).append((math.log(reading.metrics["time"]), pace))
        series = {place: Series(*zip(*own, strict=True)) for place, own in by_place.items()}
        slope = slope_of([[one] for one in series.values()])
        middle = statistics.median(paces)
        return {place: one.at_pace(middle, slope.value if slope else 0.0) for place, one in series.items()}

    def _paces(self) -> list[float]:
        """How fast the cores were in each reading, by no fault of the assignment; logarithms.

        Two processes at a time, and changes from one item to another, cost caches: so an assignment has a
        pace of its own, which belongs to its time. It is by how much its readings are above the middle of
        those around them, drawn to 0 as a random effect is (Henderson 1975), and is taken off.
        """
        logs = [math.log(reading.pace) for reading in self.all]
        around = [statistics.median(logs[max(0, n - BESIDE) : n + BESIDE + 1]) for n in range(len(logs))]
        above: dict[Place, list[float]] = {}
        for reading, log, middle in zip(self.all, logs, around, strict=True):
            above.setdefault(reading.place, []).append(log - middle)
        own = random_effects(above)
        return [log - own[reading.place] for reading, log in zip(self.all, logs, strict=True)]

    def medians(self) -> dict[Place, float]:
        """Seconds a step of each assignment, at one pace."""
        return {place: statistics.median(times) for place, times in self.at_one_pace().items()}


def random_effects(groups: Mapping[Place, list[float]]) -> dict[Place, float]:
    """By how much each group is above all, as far as it is more than the numbers of a group differ.

    The variances are those of the analysis of variance (S. R. Searle, *Linear Models*, 1971, section 9.9);
    a group that is one of few, or of few numbers, is drawn to 0.
    """
    count = sum(map(len, groups.values()))
    middle = sum(map(sum, groups.values())) / count
    means = {place: statistics.fmean(own) for place, own in groups.items()}
    if not 1 < len(groups) < count:
        return dict.fromkeys(groups, 0.0)
    among = sum(len(own) * (means[place] - middle) ** 2 for place, own in groups.items()) / (len(groups) - 1)
    within = sum((one - means[place]) ** 2 for place, own in groups.items() for one in own)
    within /= count - len(groups)
    size = (count - sum(len(own) ** 2 for own in groups.values()) / count) / (len(groups) - 1)
    variance = max(among - within, 0.0) / size
    return {
        place: (means[place] - middle) * variance / (variance + within / len(own)) if variance else 0.0
        for place, own in groups.items()
    }


@contextmanager
def measuring(case: Case) -> Iterator[Any]:
    """The objective of a case, in this process."""
    from autotune.measure.loading.load import load_objective
    from autotune.measure.objective import Context

    with tempfile.TemporaryDirectory() as folder:
        objective: Any = load_objective(OBJECTIVE, Context(case.workload, {}, Path(folder)))
        try:
            yield objective
        finally:
            objective.tidy()


def brute_force(case: Case, readings: Readings, rounds: int) -> None:
    """Measure every assignment ``rounds`` times, and the best parts of them more often; see :data:`STAGES`.

    Each round has an order of its own. Goes on where it stopped.
    """
    with measuring(case) as objective:
        places, first = case.places, 0
        for part, times in STAGES:
            if first:
                medians = readings.medians()
                places = sorted(case.places, key=medians.__getitem__)[: math.ceil(part * len(case.places))]
            done = {(reading.place, reading.round) for reading in readings.all}
            for number in range(first, times * rounds):
                for place in random.Random(number).sample(places, len(places)):
                    if (place, number) not in done:
                        readings.add(read(objective, case, place, number))
            first = times * rounds


def read(objective: Any, case: Case, place: Place, number: int) -> Reading:
    """One reading; ``number`` seeds its data.

    Where the host took more than :data:`CALM` meanwhile it is taken again, :data:`TRIES` times at most; the
    one with the least taken counts. That chooses by what the machine did, never by the time that was read.
    """
    plan = plan_of(objective, case, place)
    found: list[Reading] = []
    while len(found) < TRIES and not (found and found[-1].stolen <= CALM):
        found.append(_read_once(objective, case, plan, place, number))
    return min(found, key=lambda reading: reading.stolen)


def _read_once(objective: Any, case: Case, plan: Any, place: Place, number: int) -> Reading:
    import numpy as np

    steal, begun = pressure().get("steal", 0.0), time.monotonic()
    sample = objective.measure(plan, np.random.default_rng(number))
    lasted = time.monotonic() - begun
    stolen = (pressure().get("steal", 0.0) - steal) / (lasted * (os.cpu_count() or 1))
    pace = sum(SHARES[name] * sample.values[f"busy_{name}"] for name in case.names)
    return Reading(place, number, sample.values, pace, stolen)


def plan_of(objective: Any, case: Case, place: Place) -> Any:
    return objective.load(
        {
            "place": {item: case.names[where] for item, where in zip(case.items, place, strict=True)},
            "micro_batches": case.micro_batches,
            "schedule": case.schedule,
        }
    )
