"""``async-sgd``: how several workers train one model together, by the wall time to a validation loss.

Real workers train a perceptron on scikit-learn's digits over real links; rank 0 serves the model and
validates it. Workload, beside ``link`` and ``devices`` (rank 0's is the server's): ``workers``; ``width`` and
``depth`` of the hidden layers; ``target``, the validation loss; ``validate``, after how many steps of all
workers together it is measured; ``seconds`` that a training may take. One with ``cpu: 0.25`` among the
devices is a straggler.

Metrics: ``time`` in seconds to the target, validations included; ``steps`` of all workers together;
``staleness`` of a gradient, how many others had gone into the model between its making and its use, the mean
(and ``staleness_most``), as observed; ``lead``, the most steps that a worker was ahead of the slowest;
``loss``; ``error`` of the two synchronous modes against one process.

A training that explodes is ``diverged``, one that does not reach the target is ``wrong``: speed cannot be
bought with either.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from async_job import Job, Trained
from async_plan import Plan
from async_work import make_ready, reference, train
from distributed_objective import DistributedObjective

from autotune.measure.objective import Context, Diverged, WrongAnswer
from autotune.measure.readings import Sample

_LEAD_SECONDS = 0.01
_STEPS_CHECKED = 4
_EXPLODED = 3.0


class AsyncSgd(DistributedObjective):
    preload = ("torch", "sklearn.datasets")
    workload_facts = ("workers", "width", "depth", "target", "validate", "seconds", "link", "devices")

    def __init__(self, context: Context) -> None:
        workload = context.workload
        self.workers = context.size("workers")
        super().__init__(replace(context, workload={**workload, "world": self.workers + 1}))
        self.job = Job(
            context.size("width"),
            context.size("depth", least=0),
            context.amount("target"),
            context.size("validate"),
            context.amount("seconds"),
        )
        self._checked: dict[int, float] = {}

    def load(self, prepared: Any) -> Plan:
        return Plan(**prepared)

    def check(self, loaded: Plan, rng: np.random.Generator) -> Mapping[str, float]:
        """The averaged synchronous server, allreduce and one process come to the same parameters.

        That is a matter of the batch alone; so batches are checked once a process.
        """
        if loaded.batch not in self._checked:
            self._checked[loaded.batch] = self._synchronous_error(loaded.batch, int(rng.integers(2**20)))
        return {"error": self._checked[loaded.batch]}

    def _synchronous_error(self, batch: int, seed: int) -> float:
        steps = _STEPS_CHECKED * self.workers
        job = replace(self.job, target=-math.inf, validate=steps, most_steps=steps)
        plan = Plan(rate=0.05, momentum=0.5, batch=batch)
        group = self.ranks()
        expected, changed = group.run(reference, plan, job, seed, _STEPS_CHECKED).results[0]
        apart = []
        for mode in ("allreduce", "server"):
            found = self._train(replace(plan, mode=mode), job, seed, keep=True)
            apart.append(np.abs(np.subtract(found.parameters, expected)).max())
        return float(np.max(apart)) / changed  # NaN where one is

    def measure(self, loaded: Plan, rng: np.random.Generator) -> Sample:
        """One training from a seed of its own."""
        found = self._train(loaded, self.job, int(rng.integers(2**20)))
        if not math.isfinite(found.loss) or found.loss > _EXPLODED * found.first_loss:
            raise Diverged(f"the validation loss is {found.loss:.4g} after {found.steps} steps")
        if found.most_lead > loaded.most_lead:
            raise WrongAnswer(f"a worker was {found.most_lead} steps ahead, of {loaded.most_lead} allowed")
        values = {
            "time": found.seconds,
            "loss": found.loss,
            "steps": float(found.steps),
            "staleness": statistics.mean(found.staleness or (0,)),
            "staleness_most": float(max(found.staleness, default=0)),
            "lead": float(found.most_lead),
        }
        if found.loss > self.job.target:
            values.pop("time")
            raise WrongAnswer(
                f"the validation loss is {found.loss:.4g} after {found.seconds:.3g} s and {found.steps} "
                f"steps, and the target {self.job.target:g}",
                values,
            )
        return Sample(values, facts=self.ranks().facts)

    def _train(self, plan: Plan, job: Job, seed: int, keep: bool = False) -> Trained:
        group = self.ranks()
        group.run(make_ready, plan, job, seed)
        found = group.run(train, time.monotonic() + _LEAD_SECONDS, keep).results[0]
        assert isinstance(found, Trained)
        return found
