"""The largest batch under a cap of the memory: within 2 % in 12 trials, however a trial past it ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from autotune.search.contract import Observation, Problem
from autotune.search.registry import make_strategy
from autotune.space.configuration import Configuration
from autotune.space.knobs import IntegerRange, OrderedValues
from autotune.space.knobs.knob import Knob
from autotune.space.space import Space
from autotune.space.spec import MetricSpec
from autotune.status import Status

CAP = 600e6
TRIALS = 12
SEEDS = range(3)
Values = Mapping[str, Any]


@dataclass(frozen=True)
class Training:
    """What a training takes, in bytes, and how many samples an update has."""

    memory: Callable[[Values], float]
    samples: Callable[[Values], float] = lambda v: float(v["batch"])
    knobs: tuple[Knob, ...] = (IntegerRange("batch", 1, 1024, default=8),)
    noise: float = 0.003
    """Standard deviation of the memory, as a part of it."""
    killed: bool = True
    """Whether a trial past the cap is killed there; else it is measured, up to 15 % past it."""
    bounded: bool = True
    """Whether the cap is also the bound of a metric."""
    told: bool = False
    """Whether the cap is known beforehand."""
    elsewhere: bool = False
    """Whether the memory is a GPU's, which nobody measures; that of the host hardly differs."""

    @property
    def metrics(self) -> tuple[MetricSpec, ...]:
        bound = (MetricSpec("peak_memory", at_most=CAP),) if self.bounded else ()
        return (MetricSpec("samples", "maximize"), *bound)

    def observe(self, configuration: Configuration, rng: np.random.Generator) -> Observation:
        memory = self.memory(configuration) * (1.0 + self.noise * rng.standard_normal())
        metrics = {"samples": self.samples(configuration), "peak_memory": memory}
        if self.elsewhere:
            host = {"memory": 900e6 * (1.0 + 0.02 * rng.random())}
            if memory > CAP:
                return Observation(configuration, Status.OUT_OF_MEMORY, resources=host)
            return Observation(configuration, Status.OK, metrics, resources=host)
        if memory > (CAP if self.killed else 1.15 * CAP):
            return Observation(configuration, Status.OUT_OF_MEMORY, resources={"memory": CAP})
        told = {"memory": memory}
        if memory > CAP:
            return Observation(configuration, Status.WRONG, bounded=metrics, resources=told)
        return Observation(configuration, Status.OK, metrics, resources=told)

    @cached_property
    def largest(self) -> float:
        return max(self.samples(values) for values in self.space.feasible if self.memory(values) <= CAP)

    @cached_property
    def space(self) -> Space:
        return Space(self.knobs)


@dataclass
class Search:
    training: Training
    seed: int
    told: list[Observation] = field(default_factory=list)

    def run(self) -> float:
        """The largest that succeeded, as a part of the largest that fits."""
        cap = CAP if self.training.told else None
        problem = Problem(self.training.space, self.training.metrics, TRIALS, memory=cap)
        strategy = make_strategy("auto", problem, self.seed)
        rng = np.random.default_rng(100 + self.seed)
        for _ in range(TRIALS):
            (proposal,) = strategy.ask(1)
            self.told.append(self.training.observe(proposal.configuration, rng))
            strategy.tell(self.told[-1:])
        found = max(o.metrics["samples"] for o in self.told if not o.status.failed)
        return found / self.training.largest


def line(values: Values) -> float:
    return 150e6 + 2.3e6 * values["batch"]


def heavy(values: Values) -> float:
    """Mostly the model: batches take little beside it."""
    return 357e6 + 0.944e6 * values["batch"]


def blocks(values: Values) -> float:
    """An allocator that takes 16 MB at a time."""
    return 16e6 * math.ceil(line(values) / 16e6)


LOG = (IntegerRange("batch", 1, 4096, scale="log", default=8),)
SMALL = (IntegerRange("batch", 1, 1024, default=1),)
ENDS = {
    "killed at the cap": Training(line),
    "killed, no bound": Training(line, bounded=False),
    "measured past it": Training(line, killed=False),
    "mostly the model": Training(heavy),
    "blocks": Training(blocks, noise=0.001),
    "a scale of logarithms": Training(line, knobs=LOG),
    "from a single sample": Training(line, knobs=SMALL, bounded=False),
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("training", ENDS.values(), ids=ENDS.keys())
def test_it_is_found(training: Training, seed: int) -> None:
    assert 0.98 <= Search(training, seed).run() <= 1.02


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("training", ENDS.values(), ids=ENDS.keys())
def test_it_is_found_where_the_cap_is_known(training: Training, seed: int) -> None:
    assert 0.98 <= Search(replace(training, told=True), seed).run() <= 1.02


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_of_a_per_cent_leaves_it_near(seed: int) -> None:
    assert Search(Training(line, noise=0.01), seed).run() >= 0.97


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("most", [1024, 4096])
def test_of_memory_that_is_measured_elsewhere_nothing_is_learned(most: int, seed: int) -> None:
    """The host's was taken for what had run out, and some searches ended at 0.6 of what fits."""
    batch = IntegerRange("batch", 1, most, default=8)
    training = Training(
        lambda v: 150e6 + 2.25e9 * v["batch"] / most, knobs=(batch,), bounded=False, elsewhere=True
    )
    assert Search(training, seed).run() >= 0.9


def test_all_of_the_range_may_fit() -> None:
    search = Search(Training(lambda v: 100e6 + 0.4e6 * v["batch"]), 0)
    assert search.run() == 1.0
    assert not any(o.status.failed for o in search.told)


@pytest.mark.parametrize("seed", SEEDS)
def test_accumulation_beside_the_batch(seed: int) -> None:
    """What is in memory at once is a part of the batch; each further part costs 2 %."""
    training = Training(
        memory=lambda v: 150e6 + 2.3e6 * math.ceil(v["batch"] / v["parts"]),
        samples=lambda v: v["batch"] * (1.0 - 0.02 * math.log2(v["parts"])),
        knobs=(*Training(line).knobs, OrderedValues("parts", (1, 2, 4, 8), default=1)),
    )
    assert Search(training, seed).run() >= 0.98


def test_checkpoint_segments_beside_the_batch() -> None:
    """Activations that are computed again take less memory, and some of what the batch gains."""
    kept, worth = {1: 1.0, 2: 0.62, 4: 0.4, 8: 0.3}, {1: 1.0, 2: 0.9, 4: 0.8, 8: 0.7}
    training = Training(
        memory=lambda v: 150e6 + 4e6 * v["batch"] * kept[v["segments"]],
        samples=lambda v: v["batch"] * worth[v["segments"]],
        knobs=(IntegerRange("batch", 1, 512, default=4), OrderedValues("segments", (1, 2, 4, 8), default=1)),
    )
    found = [Search(training, seed).run() for seed in SEEDS]
    assert min(found) >= 0.8 and max(found) >= 0.98


def test_a_search_told_the_same_proposes_the_same() -> None:
    one, other = Search(Training(line), 0), Search(Training(line), 0)
    one.run(), other.run()
    assert [o.configuration for o in one.told] == [o.configuration for o in other.told]
