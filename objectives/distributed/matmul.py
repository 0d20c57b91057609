"""``distributed-matmul``: a product of N x N matrices on four processes that hold N^2 elements each, or less.

Knobs: ``layout`` (``1d``, ``summa``, ``cannon``), ``panel`` (columns of A and rows of B that go over a link
at once), ``prefetch`` (panels that are asked for ahead). Workload: ``n``; ``limit``: elements that a process
may hold, in N^2 (1, or 0.875); ``bandwidth`` in bit/s and ``latency`` in s of each link; ``cpu``: the share
of a core.

Metrics: ``time`` in seconds, until the last process is done; ``bytes`` sent in all; ``held``: the most
elements that a process held, in N^2, counted; ``peak_mib``: what a process took. Over the limit is
``out-of-memory``. Oracle: the product in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matmul_rank
import numpy as np
from linked_objective import LinkedObjective, number
from matmul_plan import LAYOUTS, WORLD, Plan, block_of

from autotune.measure.cores.pinning import allowed_here
from autotune.measure.groups.device import Device, Link
from autotune.measure.objective import Baseline, Context, Infeasible, OutOfMemory, WrongAnswer
from autotune.measure.readings import Sample

MOST_SEED = 2**31
STALL_SECONDS = 20.0


class DistributedMatmul(LinkedObjective):
    workload_facts = ("n", "limit", "bandwidth", "latency", "cpu")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        workload = context.workload
        self.n = context.size("n")
        self.limit = context.amount("limit") if "limit" in workload else 1.0
        if self.n % WORLD:
            raise Infeasible(f"n is {self.n}, and should be a multiple of {WORLD}")
        bandwidth, latency = (number(workload, name, "workload") for name in ("bandwidth", "latency"))
        if latency is not None and bandwidth is None:
            raise Infeasible("the latency is that of links, which need a bandwidth")
        link = None if bandwidth is None else Link(bandwidth, latency or 0.0)
        self.devices = (Device(allowed_here(), number(workload, "cpu", "workload"), None, link),) * WORLD

    def load(self, prepared: Any) -> Plan:
        return Plan(**prepared)

    def check(self, loaded: Plan, rng: np.random.Generator) -> Mapping[str, float]:
        """The product of fresh matrices is that in float64, but for rounding."""
        n, seed = self.n, int(rng.integers(MOST_SEED))
        parts = self._multiply(loaded, seed, True)
        found = np.full((n, n), np.nan)
        for rank, one in enumerate(parts):
            block = block_of(loaded, rank, n)
            found[slice(*block.rows), slice(*block.columns)] = one.product
        a, b = (matmul_rank.part(seed, number, n, (0, n), (0, n)).astype(np.float64) for number in (0, 1))
        # Each sum has n terms of size 1; a float32 rounds by 6e-8.
        error = float(np.abs(found - a @ b).max() / np.sqrt(n))
        if not error <= tolerance(n):
            raise WrongAnswer(f"the product errs by {error:.3g} of its size", {"error": error})
        return {"error": error}

    def measure(self, loaded: Plan, rng: np.random.Generator) -> Sample:
        """One product."""
        parts = self._multiply(loaded, int(rng.integers(MOST_SEED)), False)
        held = max(part.elements for part in parts) / self.n**2
        if held > self.limit:
            raise OutOfMemory(f"a process held {held:.4g} N^2 elements, and may hold {self.limit:g}")
        values = {
            "time": max(part.ended for part in parts) - min(part.begun for part in parts),
            "bytes": float(sum(part.sent for part in parts)),
            "held": held,
            "peak_mib": max(part.peak for part in parts) / 2**20,
        }
        return Sample(values, facts=self.group(self.devices, stall=STALL_SECONDS).facts)

    def _multiply(self, plan: Plan, seed: int, wanted: bool) -> Sequence[matmul_rank.Multiplied]:
        group = self.group(self.devices, stall=STALL_SECONDS)
        return group.run(matmul_rank.multiply, self.n, plan, seed, wanted).results

    def baselines(self) -> tuple[Baseline, ...]:
        return tuple(Baseline(name, f"{name} in panels of 64, one at a time") for name in LAYOUTS)

    def load_baseline(self, baseline: Baseline) -> Plan:
        return Plan(baseline.name)


def tolerance(n: int) -> float:
    """Of float32 sums of ``n`` products, relative to the root of ``n``."""
    return 6e-8 * 4 * max(np.sqrt(n), 8.0)
