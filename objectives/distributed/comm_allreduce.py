"""``comm-allreduce``: the sum of a gradient over ranks, in pieces of it that are in flight at once.

Workload, beside ``world``, ``link`` and ``devices``:

* ``megabytes``: of the gradient, in float32 (MB of 10^6 bytes);
* ``gemms``: matrix products (256 x 256) that a step computes while pieces are under way; 0: none.

Metrics: ``time`` in seconds from a common beginning until the last rank has the sum; ``exposed``, that
without the time of the computation alone; ``wire_bytes``, what went over all links; ``error`` of the mean
over some reductions, over the largest value given (what error feedback owes is in it).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from allreduce_plan import Plan
from allreduce_work import Took, make_ready, reduce_once, verify
from distributed_objective import DistributedObjective

from autotune.measure.objective import Baseline, Context, WrongAnswer
from autotune.measure.readings import Sample

_LEAD_SECONDS = 0.004
"""Between asking for a reduction and its beginning: all ranks have heard of it by then."""

_CHECKED_ELEMENTS = 40_009
"""A prime: no piece of a round size fits."""

_CHECKED_PIECES = 3
"""So many more where a reading has several: pieces in the places of others leave the sum of all as it is."""

_ELEMENT = 4e-6
"""Megabytes of one."""

_ROUNDS = 8

_EXACT = 1e-5
"""The error that float32 explains where nothing is compressed. The bound of a space is one for all ways, and
has room for what was rounded though nobody asked for it."""

_ROUNDING = {"none": 1e-6, "fp16": 5e-4, "int8": 2e-2}
"""What a rank's part of one element may be rounded by."""

_DEVIATIONS = 6
"""Of the sum over all elements: rounding goes up as often as down, and so adds up as a random walk."""


class Allreduce(DistributedObjective):
    workload_facts = (*DistributedObjective.device_facts, "megabytes", "gemms")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.elements = int(context.amount("megabytes", above=_ELEMENT) * 1e6 / 4)
        self.gemms = context.size("gemms", 0, least=0)

    @property
    def _busy(self) -> float:
        """Seconds that the largest piece may take on the link."""
        return 4 * 8 * 4 * self.elements / self.bandwidth

    def load(self, prepared: Any) -> Plan:
        return Plan.of(prepared)

    def check(self, loaded: Plan, rng: np.random.Generator) -> Mapping[str, float]:
        """Equal to a one-shot reduction in float64, for a size that is a multiple of nothing."""
        group = self.ranks(self._busy)
        rounds = _ROUNDS if loaded.compression == "int8" else 1
        seed = int(rng.integers(2**31))
        errors = group.run(verify, loaded, self._checked_elements(loaded), seed, rounds).results
        error = float(np.max(errors))  # NaN where one is
        if loaded.compression == "none" and not error <= _EXACT:
            raise WrongAnswer(
                f"the sum is off by {error:.3g} of the largest value; float32 explains {_EXACT:g}",
                {"error": error},
            )
        return {"error": error}

    def _checked_elements(self, plan: Plan) -> int:
        piece = plan.chunk // 4
        pieces = _CHECKED_PIECES if piece < self.elements else 0
        return min(self.elements, pieces * piece + _CHECKED_ELEMENTS)

    def measure(self, loaded: Plan, rng: np.random.Generator) -> Sample:
        """One reduction of fresh gradients."""
        group = self.ranks(self._busy)
        seed = int(rng.integers(2**31))
        compute = max(group.run(make_ready, loaded, self.elements, seed, self.gemms).results)
        self.traffic()  # forget what came before
        begin = time.monotonic() + _LEAD_SECONDS
        ran = group.run(reduce_once, begin, self.gemms)
        traffic = self.traffic()
        verify_sums(loaded, ran.results, self.elements)
        took = max(one.end for one in ran.results) - begin
        values = {"time": took, "exposed": max(0.0, took - compute), "compute": compute}
        if traffic is not None:
            values["wire_bytes"] = float(traffic.total)
        return Sample(values, facts={**group.facts, **ran.facts})

    def baselines(self) -> tuple[Baseline, ...]:
        text = "gloo's allreduce of the whole gradient at once, its own settings"
        return (Baseline("gloo", text),)

    def load_baseline(self, baseline: Baseline) -> Plan:
        return Plan()


def verify_sums(plan: Plan, results: tuple[Took, ...], elements: int) -> None:
    """Nobody got another sum than the others, and none that was left from before."""
    if len({one.checksum for one in results}) > 1:
        raise WrongAnswer("the ranks got different sums")
    given, got = sum(one.given for one in results), results[0].got
    if not np.isfinite(got):
        raise WrongAnswer("a part of the sum was never written")
    allowed = _DEVIATIONS * _ROUNDING[plan.compression] * len(results) * math.sqrt(elements)
    if abs(got - given) > allowed:
        raise WrongAnswer(f"the sum of all elements is {got:.6g} instead of {given:.6g}")
