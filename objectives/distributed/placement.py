"""``placement-pipeline`` and ``placement-graph``: which part of a model is on which device, in what order.

Each device is a process with a share of processor time, a memory cap and a link of its own; activations and
gradients go between them over those links. Knobs: ``place`` (item to device), ``micro_batches``,
``schedule`` (``gpipe``, ``1f1b``), ``recompute``; those that a space leaves out are as in ``Plan``.

Workload: ``model`` (``chain`` or ``graph``) and its sizes; ``devices``: by name, ``cpu`` (a share of a core),
``memory_mib`` (what the model may take there), ``bandwidth`` in bit/s and ``latency`` in s of its link;
``steps``: training steps in a reading; ``runtime_mib``: what a process needs besides the model, which the
kernel's own cap allows for.

Metrics: ``time`` of a step in seconds: of the steps of a reading, which follow one another without a pause,
the median, each until the last device has ended it; ``busy_NAME``: how long the device has to work for a
step: the processor time, sending left aside, over its share of a core; ``peak_NAME``: MiB that the model took
at most. A device over its cap is ``out-of-memory``.
Oracle: the losses of two steps, and the gradients of the second, equal those of the unsplit model in
float64.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import placement_rank
from linked_objective import LinkedObjective, number
from placement_models import SIZES, Model, make_model, sizes_of
from placement_oracle import truth
from placement_partition import Profile, equal_split, pipedream
from placement_plan import Plan
from testbed import links_of

from autotune.measure.cores.pinning import allowed_here
from autotune.measure.groups.device import Device, Link
from autotune.measure.loading.facts import require_known
from autotune.measure.objective import Baseline, Context, Infeasible, OutOfMemory, WrongAnswer
from autotune.measure.readings import Sample

MOST_SEED = 2**31
TOLERANCE = 2e-4
"""Of a float32 gradient, relative to the largest element of the true one."""
RUNTIME_MIB = 700.0
STALL_SECONDS = 15.0
"""A device with a small share takes its time for a task."""
PROFILE_REPEATS = 10
KEYS = ("cpu", "memory_mib", "bandwidth", "latency")
"""What a device may be given."""

BASELINES = (
    Baseline("fastest device", "all on the fastest device, in one micro-batch"),
    Baseline("equal split", "as many items on each device, in order; 1F1B with 4 micro-batches"),
    Baseline("pipedream", "PipeDream's partition from measured layers and links; 1F1B with 4 micro-batches"),
)


class Placement(LinkedObjective):
    workload_facts = ("model", *SIZES["chain"], *SIZES["graph"], "devices", "steps", "runtime_mib")
    preload = ("torch", "torch._dynamo")
    """The second is what the first optimiser imports, for seconds, even if nothing is compiled."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        described = context.workload.get("devices")
        if not isinstance(described, Mapping) or not described:
            keys = ", ".join(KEYS)
            raise Infeasible(f"workload.devices has {keys} by the name of a device, not {described!r}")
        self.names = tuple(str(name) for name in described)
        runtime = context.amount("runtime_mib") if "runtime_mib" in context.workload else RUNTIME_MIB
        devices = []
        for name, own in described.items():
            where = f"workload.devices.{name}"
            if not isinstance(own, Mapping):
                raise Infeasible(f"{where} should be {{}}, or some of {', '.join(KEYS)}, and is {own!r}")
            require_known(own, KEYS, where)
            devices.append(_device(own, where, runtime))
        self.devices = tuple(devices)
        links_of(self.devices)  # an error in the space file is one before the first trial
        self.caps = tuple(number(own, "memory_mib", "") or np.inf for own in described.values())
        self.sizes = sizes_of(context.workload)
        self.count = context.size("steps", 3)

    @cached_property
    def model(self) -> Model:
        return make_model(self.sizes)

    # -- the way of a configuration ------------------------------------------------------------

    def load(self, prepared: Any) -> Plan:
        plan = Plan.of(prepared, self.model.names, self.names)
        self._require_parts(plan.micro_batches)
        return plan

    def _require_parts(self, micro_batches: int) -> None:
        if self.model.batch % micro_batches:
            raise Infeasible(f"a batch of {self.model.batch} has no {micro_batches} equal parts")

    def check(self, loaded: Plan, rng: np.random.Generator) -> Mapping[str, float]:
        """Two steps on fresh data have the losses and the gradients of the unsplit model."""
        seed = int(rng.integers(MOST_SEED))
        parts = self._run(placement_rank.learn, loaded, seed).results
        expected = truth(self.model, seed)
        error = expected.error([(p.gradients, p.losses) for p in parts])
        if not error <= TOLERANCE:
            raise WrongAnswer(
                f"gradients or loss differ from the unsplit model's by {error:.3g}, more than {TOLERANCE:g}",
                {"error": error},
            )
        return {"error": error}

    def measure(self, loaded: Plan, rng: np.random.Generator) -> Sample:
        """Some training steps, one after another."""
        ran = self._run(placement_rank.steps, loaded, int(rng.integers(MOST_SEED)), self.count)
        parts: Sequence[placement_rank.Stepped] = ran.results
        metrics = {"time": step_seconds(parts)}
        for name, part, share in zip(self.names, parts, self._on.shares, strict=True):
            metrics[f"busy_{name}"] = part.busy / self.count / share
            metrics[f"peak_{name}"] = part.peak / 2**20
        for name, cap, part in zip(self.names, self.caps, parts, strict=True):
            if part.peak > cap * 2**20:
                raise OutOfMemory(
                    f"the device {name!r} took {part.peak / 2**20:.4g} MiB, and has {cap:.4g} MiB"
                )
        return Sample(metrics, facts={**self._on.facts, **ran.facts, "cores": len(allowed_here())})

    def _run(self, work: Any, *arguments: Any) -> Any:
        return self._on.run(work, self.sizes, *arguments)

    @property
    def _on(self) -> Any:
        return self.group(self.devices, stall=STALL_SECONDS)

    # -- baselines -----------------------------------------------------------------------------

    def baselines(self) -> tuple[Baseline, ...]:
        return BASELINES

    def load_baseline(self, baseline: Baseline) -> Plan:
        micro_batches = 1 if baseline.name == "fastest device" else Plan(()).micro_batches
        self._require_parts(micro_batches)
        if baseline.name == "equal split":
            return Plan(equal_split(len(self.model.items), len(self.names)), micro_batches)
        measured = self.profile(micro_batches)
        if baseline.name == "fastest device":
            return Plan((measured.fastest(),) * len(self.model.items), micro_batches)
        return Plan(pipedream(measured, self.model.readers), micro_batches)

    def profile(self, micro_batches: int) -> Profile:
        """Each item alone on each device, and each link alone, measured now."""
        seed = self.context.seed
        found: Sequence[placement_rank.Profiled] = self._run(
            placement_rank.profile, micro_batches, PROFILE_REPEATS, seed
        ).results
        return Profile(
            tuple(zip(*(one.seconds for one in found), strict=True)),
            found[0].bytes,
            tuple(one.latency for one in found),
            tuple(one.rate for one in found),
        )


def step_seconds(parts: Sequence[placement_rank.Stepped]) -> float:
    """The median step: from when all were ready, or had ended the step before, until the last one ends it."""
    ends = [max(ended) for ended in zip(*(part.ended for part in parts), strict=True)]
    begins = [min(part.begun for part in parts), *ends[:-1]]
    return statistics.median(end - begin for begin, end in zip(begins, ends, strict=True))


def _device(described: Mapping[str, Any], where: str, runtime: float) -> Device:
    cpu, cap, bandwidth, latency = (number(described, key, where) for key in KEYS)
    if cap is not None and cap <= 0:
        raise Infeasible(f"{where}.memory_mib should be a number above 0, and is {cap:g}")
    if latency is not None and bandwidth is None:
        raise Infeasible("the latency of a device is that of its link, which needs a bandwidth")
    return Device(
        cores=allowed_here(),
        cpu=cpu,
        memory=None if cap is None else int((runtime + 2 * cap) * 2**20),
        link=None if bandwidth is None else Link(bandwidth, latency or 0.0),
    )
