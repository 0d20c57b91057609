"""A trial of a Ray Tune experiment, from its results on the way to what a strategy learns of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autotune.interop.curves import curve, kept
from autotune.search.contract import Observation, Reason
from autotune.space.configuration import Configuration
from autotune.space.spec import MetricSpec
from autotune.status import Status

ITERATION = "training_iteration"
"""How many results a trial has reported, in each of them."""


@dataclass
class TuneTrial:
    """What is known of a trial. It is an outcome only beside the others: see :meth:`observation`."""

    configuration: Configuration
    reason: Reason = field(default_factory=dict)
    """Why it was proposed."""
    error: bool = False
    pruned: bool = False
    last: int = 0
    """Its iterations."""
    by_itself: bool = False
    """Whether it was announced that it is done, before it ended."""
    metrics: dict[str, float] = field(default_factory=dict)
    """In its last result."""
    way: dict[int, float] = field(default_factory=dict)
    """The first metric by iteration."""

    def report(self, result: Mapping[str, Any], metrics: Sequence[MetricSpec]) -> None:
        """A result of it, on the way or the last one."""
        self.metrics = {m.name: float(result[m.name]) for m in metrics if _is_number(result.get(m.name))}
        self.last = max(self.last, int(result.get(ITERATION, 0)))
        first = metrics[0].name
        if first in self.metrics and self.last and kept(self.last):
            self.way[self.last] = self.metrics[first]

    def observation(self, metrics: Sequence[MetricSpec], longest: int) -> Observation:
        """What it taught, where the ``longest`` trial had so many iterations.

        Tune does not say which trials its scheduler stopped: it marks every last result as done. But it
        announces that beforehand only where a trial ended by itself. The others were stopped early
        if one went on for longer. How long a trial took is left out, so that a seeded experiment can be
        repeated.
        """
        status = self._status(metrics, longest)
        if status.failed:
            bounded = self._past_bounds(metrics, longest) if status is Status.WRONG else {}
            return Observation(self.configuration, status, bounded=bounded, reason=self.reason)
        if longest < 2 or sum(metric.goal is not None for metric in metrics) > 1:
            return Observation(self.configuration, status, self.metrics, reason=self.reason)
        early = status is Status.PRUNED and 0 < self.last < longest
        return Observation(
            self.configuration,
            status,
            self.metrics,
            fraction=self.last / longest if early else 1.0,
            curve=curve(self.way, longest),
            reason=self.reason,
        )

    def _status(self, metrics: Sequence[MetricSpec], longest: int) -> Status:
        if self.error:
            return Status.CRASHED
        goals = [metric.name for metric in metrics if metric.goal]
        if any(not math.isfinite(self.metrics.get(name, 0.0)) for name in goals):
            return Status.DIVERGED
        if any(_beyond(metric, self.metrics.get(metric.name)) for metric in metrics):
            return Status.WRONG
        missing = any(name not in self.metrics for name in goals)
        return Status.PRUNED if self.pruned or self._stopped(longest) or missing else Status.OK

    def _stopped(self, longest: int) -> bool:
        return not self.by_itself and self.last < longest

    def _past_bounds(self, metrics: Sequence[MetricSpec], longest: int) -> dict[str, float]:
        """What was measured of a trial past a bound; its goals are not final where it was stopped."""
        final = {m.name for m in metrics if not (m.goal and self._stopped(longest))}
        return {n: value for n, value in self.metrics.items() if n in final and math.isfinite(value)}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _beyond(metric: MetricSpec, value: float | None) -> bool:
    if value is None:
        return False
    over = metric.at_most is not None and not value <= metric.at_most
    return over or (metric.at_least is not None and not value >= metric.at_least)
