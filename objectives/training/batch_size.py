"""``largest-batch``: how many windows of text a training takes at once before memory runs out.

A trial is two updates of the language model by batches of one size; what fits once may fail when the
optimiser has its state, so one would not do. Knob: ``batch``, any integer. Workload: the sizes, ``sha256``
and ``device`` as of ``language-model``, and ``plan``: the rest of the plan of training (``dtype``,
``recompute``, ``optimiser`` ...), which is not tuned here.

Metrics: ``samples`` of an update, ``peak_memory`` in bytes, ``samples_per_s``. The answer is one for the
memory cap of the space (``measure: {memory: ...}``; on a GPU: what it has).
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from language_model import LanguageModel
from training_loop import Training
from training_objective import MOST_SEED, refusals
from training_plan import Plan

from autotune.measure.libc import map_large_blocks
from autotune.measure.loading.facts import require_known
from autotune.measure.objective import Baseline, Context, Infeasible

UPDATES = 2

MAPPED_BYTES = 1 << 16
"""Blocks of this size are mapped by themselves on the CPU, so that the peak of a batch is always the same.
The answer is one for processes that do so too: ``MALLOC_MMAP_THRESHOLD_=65536``."""


class LargestBatch(LanguageModel):
    workload_facts = (*(name for name, _ in LanguageModel.least_sizes), "sha256", "device", "plan")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.fixed = context.workload.get("plan", {})
        if not isinstance(self.fixed, Mapping):
            raise Infeasible(f"plan should have parts of a plan of training by name, and is {self.fixed!r}")
        require_known(self.fixed, [field.name for field in fields(Plan)], "workload.plan")
        Plan.of(self.fixed)  # what it has no such choice of is an error of the space file

    def load(self, prepared: Any) -> Plan:
        map_large_blocks(MAPPED_BYTES)
        return Plan.of({**self.fixed, **prepared})

    def check(self, loaded: Plan, rng: np.random.Generator) -> Mapping[str, float]:
        """Nothing: what is trained here is thrown away."""
        return {}

    def measure(self, loaded: Plan, rng: np.random.Generator) -> Mapping[str, float]:
        gc.collect()  # or the cycles of an earlier trial are part of this one's peak
        self.forget_memory()
        seed = int(rng.integers(MOST_SEED))
        with refusals():
            training = Training(
                self.make_model, self.data, loaded, seed, UPDATES, loaded.samples, self.device
            )
            for _ in range(UPDATES):
                training.step()
        return {
            "samples": float(loaded.samples),
            "peak_memory": float(self.peak_memory()),
            "samples_per_s": training.progress.samples / training.progress.seconds,
        }

    def baselines(self) -> tuple[Baseline, ...]:
        return ()
