"""``comm-ddp``: the step of a data-parallel training, whose gradients are reduced while it goes on.

A perceptron learns scikit-learn's digits by SGD, a part of each batch on every rank. Workload, beside
``world``, ``link`` and ``devices``: ``width`` and ``depth`` of its hidden layers; ``samples`` of a step on a
rank; ``steps`` in a reading.

Metrics: ``time`` of a step in seconds (of the slowest rank, the median of a reading's steps); ``exposed``, of
that, waiting for gradients after the backward pass; ``compute`` and ``communication``, a step without the
other half, measured once a process, and their ``ratio``; ``wire_bytes`` of a step over all links;
``gradient_bytes`` of a rank; ``error``, how far the parameters are from those of one process after some
steps, over the change that these made.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

import numpy as np
from ddp_plan import Plan
from ddp_work import Verified, Work, measure_alone, train_steps, verify
from distributed_objective import DistributedObjective

from autotune.measure.objective import Baseline, Context, WrongAnswer
from autotune.measure.readings import Sample

_STEPS_CHECKED = 4

_TOLERANCE = {"none": 1e-4, "fp16": 1e-2, "int8": 5e-2}
"""Of the loss of one process, and of the change that some steps make: what rounding may explain. The bound of
a space is one for all ways, and has room for gradients that were rounded though nobody asked for it."""


class DataParallel(DistributedObjective):
    preload = ("torch", "sklearn.datasets")
    workload_facts = (*DistributedObjective.device_facts, "width", "depth", "samples", "steps")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.work = Work(context.size("width"), context.size("depth", least=0), context.size("samples"))
        self.steps = context.size("steps", 5)
        self._alone: Mapping[str, float] | None = None

    @property
    def _busy(self) -> float:
        """Seconds that all gradients may take on the link."""
        width, between = self.work.width, max(self.work.depth - 1, 0)
        return 4 * 32 * (width * width * between + 74 * width) / self.bandwidth

    def load(self, prepared: Any) -> Plan:
        return Plan(**prepared)

    def check(self, loaded: Plan, rng: np.random.Generator) -> Mapping[str, float]:
        """All ranks have the same parameters, and they and the loss are those of one process."""
        group = self.ranks(self._busy)
        seed = int(rng.integers(2**20))
        found: tuple[Verified, ...] = group.run(verify, self.work, loaded, seed, _STEPS_CHECKED).results
        if len({one.checksum for one in found}) > 1:
            raise WrongAnswer("the ranks' parameters differ")
        allowed = _TOLERANCE[loaded.compression]
        losses = [statistics.mean(step) for step in zip(*(one.losses for one in found), strict=True)]
        for step, (loss, expected) in enumerate(zip(losses, found[0].expected, strict=True), 1):
            if not abs(loss - expected) <= allowed * abs(expected):
                raise WrongAnswer(f"the loss at step {step} is {loss:.6g}, of one process {expected:.6g}")
        error = float(np.max([one.error for one in found]))  # NaN where one is
        if not error <= allowed:
            raise WrongAnswer(
                f"the parameters are off by {error:.3g} of the change that training in one process makes;"
                f" {loaded.compression} explains {allowed:g}",
                {"error": error},
            )
        return {"error": error, **self._measured_alone()}

    def measure(self, loaded: Plan, rng: np.random.Generator) -> Sample:
        """Some steps of a training; later readings of the same trial go on with it."""
        group = self.ranks(self._busy)
        seed = self.context.seed % 2**20
        self.traffic()
        ran = group.run(train_steps, self.work, loaded, seed, self.steps)
        traffic = self.traffic()
        if len({one.checksum for one in ran.results}) > 1:
            raise WrongAnswer("the ranks' parameters differ")
        slowest = [max(step) for step in zip(*(one.seconds for one in ran.results), strict=True)]
        exposed = [max(step) for step in zip(*(one.exposed for one in ran.results), strict=True)]
        values = {"time": statistics.median(slowest)}
        if exposed:
            values["exposed"] = statistics.median(exposed)
        if traffic is not None:
            values["wire_bytes"] = traffic.total / self.steps
        return Sample(values, facts={**group.facts, **ran.facts})

    def _measured_alone(self) -> Mapping[str, float]:
        """Computation and communication of a step by themselves, measured once a process."""
        if self._alone is None:
            alone = self.ranks(self._busy).run(measure_alone, self.work, 5).results
            compute = max(one.compute for one in alone)
            communication = max(one.communication for one in alone)
            self._alone = {
                "compute": compute,
                "communication": communication,
                "ratio": compute / communication,
                "gradient_bytes": float(alone[0].gradient_bytes),
            }
        return self._alone

    def baselines(self) -> tuple[Baseline, ...]:
        return (Baseline("ddp", "PyTorch's DistributedDataParallel on gloo, with its own settings"),)

    def load_baseline(self, baseline: Baseline) -> Plan:
        return Plan(reducer="ddp")
