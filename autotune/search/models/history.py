"""What was observed, as a surrogate learns it: kept up to date observation by observation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.search.contract import Observation, Problem
from autotune.search.loss import failures_as_worst, signed, signed_at_full
from autotune.search.models.arrays import Floats, Integers
from autotune.search.models.bounds import FAR, past_bound
from autotune.search.models.features import only_ranges
from autotune.search.models.fidelity import HUGE, AtFull
from autotune.space.configuration import Configuration
from autotune.status import Status

MOST = 300
"""A surrogate learns from at most so many configurations: half the best ones, half spread over the rest."""
FAR_END = 1.0
"""Slow results are cut so many times as far above the median as the best is below it."""
FAR_END_OF_RANGES = 3.0
"""The same where all knobs are ranges (``benchmarks/results/smooth_functions.md``). Any improvement will do
there (:data:`~autotune.search.acquisition.ambition.LEVELS`), so a search crowds early; and a process that
knows other places only as bad never goes back to them. With 10 it has to explain by how much trainings
diverge where a rate is too high, and is slow to find the best rate next to those."""
SAME = 1e-12
"""Losses that differ by a smaller part of themselves differ by rounding only."""


@dataclass(frozen=True)
class Targets:
    """One target per row, as a process learns it, and how to read its predictions."""

    values: Floats
    """Shape (rows,): standardised losses, the slow side cut; failures stand at the worst that is known."""
    uncut: Floats
    """The same with nothing cut: for a law that holds on the slow side too."""
    failed: Floats
    """Shape (rows,): 1 where the configuration failed (or had no number), else 0."""
    known: Floats
    """Shape (rows,): the variance of each mean as the readings tell it, on the scale of ``values``."""
    instructive: Integers
    """The rows that say something about the goal: the successes, and what was measured past a bound.

    Any other failure has no value. If it were told as a bad one it would make a whole region look bad, and
    the best often lies just below a limit.
    """
    middle: float
    scale: float
    logarithmic: bool
    sign: float

    @property
    def best(self) -> float:
        """The lowest target of a success."""
        return float(self.values[self.failed == 0.0].min())

    def since(self, level: float) -> int:
        """How many rows came after the last success that was as good as ``level``, or was the best.

        One with exactly the value of an earlier row is no news: a makespan or a count of bytes has plateaus,
        on which any number of configurations are equal.
        """
        good = np.flatnonzero((self.failed == 0.0) & (self.values <= max(level, self.best)))
        _, first = np.unique(self.values[good], return_index=True)
        return len(self.values) - 1 - int(good[first.max()])

    @property
    def likelihood(self) -> float:
        """How probable success is where nothing is known: the share of successes, with one of each added."""
        return float((np.count_nonzero(self.failed == 0.0) + 1) / (len(self.values) + 2))

    @property
    def best_first(self) -> Integers:
        """The rows from the best to the worst, failures last."""
        return np.lexsort((self.values, self.failed))

    def metric(self, target: float) -> float:
        """The metric that a target stands for, in its own unit; no larger than :data:`HUGE`."""
        own = self.sign * (self.middle + self.scale * target)
        return math.exp(min(own, math.log(HUGE))) if self.logarithmic else own

    def predicted(self, mean: float, spread: float) -> dict[str, float | bool]:
        """A prediction as a :data:`~autotune.search.contract.Reason` has it."""
        return {
            "predicted": self.metric(mean),
            "spread": spread * self.scale,
            "logarithmic": self.logarithmic,
            "best": self.metric(self.best),
        }


class History:
    """The trials told so far: a row per configuration, in the order in which they were first told.

    Replicates are averaged. A lower loss is better. Losses are logarithms where every metric is positive, as
    times, rates and sizes are, since with those ratios are what counts.

    ``past_bounds``: whether to learn from the goal that was measured in trials past a bound. It is no result,
    but shows what the goal is like there, and so what there is to gain on this side of the bound.
    """

    def __init__(self, problem: Problem, *, past_bounds: bool = False) -> None:
        self.problem = problem
        self._past_bounds = past_bounds
        self.configurations: list[Configuration] = []
        self._goal = problem.goals[0] if problem.goals else None
        self._far_end = FAR_END_OF_RANGES if only_ranges(problem.space) else FAR_END
        self._sign = self._goal.sign if self._goal else 1.0
        self._rows: dict[str, int] = {}
        self.told: list[Observation] = []
        """In the order in which they were told."""
        self._row_of: list[int] = []
        self._values: list[float] = []
        self._beyond: list[float] = []
        """As ``_values``, but of trials past a bound only."""
        self._errors: list[float] = []
        self.stopped = False
        """Whether a trial was stopped before it had used its whole resource."""
        self.ran_out = False
        """Whether a trial ran out of memory."""

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.configurations)

    @classmethod
    def of(
        cls, problem: Problem, observations: Sequence[Observation], *, past_bounds: bool = False
    ) -> History:
        history = cls(problem, past_bounds=past_bounds)
        history.learn(observations)
        return history

    def learn(self, observations: Sequence[Observation]) -> None:
        """Take in further observations."""
        self.stopped |= any(o.fraction < 1.0 for o in observations)
        self.ran_out |= any(o.status is Status.OUT_OF_MEMORY for o in observations)
        self.told.extend(observations)
        for observation in observations:
            configuration = observation.configuration
            row = self._rows.setdefault(configuration.hash, len(self._rows))
            if row == len(self.configurations):
                self.configurations.append(configuration)
            self._row_of.append(row)
            error = observation.errors.get(self._goal.name, 0.0) if self._goal else 0.0
            self._errors.append(min(error, HUGE) if math.isfinite(error) else 0.0)
            self._beyond.append(self._measured_beyond(observation) if self._past_bounds else math.nan)
        if not self.stopped:
            self._values.extend(signed(self.problem, observations).tolist())

    def values(self) -> Floats:
        """Shape (rows,): the goal, lower is better, the mean of replicates; NaN where there is no number."""
        return self._by_row(self._at_full().losses) if self.told else np.zeros(0)

    def targets(self, spared: Integers | None = None) -> Targets | None:
        """What a surrogate is to learn; ``None`` where nothing has succeeded yet.

        No value of the rows ``spared`` is cut off with the slow side.
        """
        at_full = self._at_full()
        raw = at_full.losses
        known = raw[~np.isnan(raw)]
        if not known.size:
            return None
        metric = self._sign * raw
        logarithmic = bool(self._sign * known.max() > 0.0 and self._sign * known.min() > 0.0)
        losses = self._sign * np.log(metric) if logarithmic else raw
        values = self._by_row(losses)
        errors = np.hypot(self._errors, at_full.doubts)
        variances = np.square(errors / metric if logarithmic else errors)
        failed = np.isnan(values)
        cut = self._cut(losses)
        if spared is not None and spared.size:
            cut = max(cut, float(values[spared].max()))
        whole = np.where(failed, self._beyond_by_row(values, logarithmic), values)
        flat = np.minimum(whole, cut)
        middle, scale = float(np.nanmean(flat)), float(np.nanstd(flat))
        # Logarithms differ by ratios. What plain values differ by counts beside their size, in any unit.
        size = max(1.0, abs(middle)) if logarithmic else float(np.nanmax(np.abs(flat)))
        if scale <= max(SAME * size, 1.0 / HUGE):
            scale = 1.0
        return Targets(
            values=(failures_as_worst(flat) - middle) / scale,
            uncut=(failures_as_worst(whole) - middle) / scale,
            failed=failed.astype(float),
            known=np.nan_to_num(self._by_row(variances)) / scale**2,
            instructive=np.flatnonzero(~np.isnan(flat)),
            middle=middle,
            scale=scale,
            logarithmic=logarithmic,
            sign=self._sign,
        )

    def _at_full(self) -> AtFull:
        if self.stopped:
            return signed_at_full(self.problem, self.told)
        return AtFull(np.array(self._values), np.zeros(len(self._values)))

    def _measured_beyond(self, observation: Observation) -> float:
        """The goal, lower is better, of a whole trial that is past a bound; NaN of any other."""
        if self._goal is None or observation.fraction < 1.0 or not past_bound(self.problem, observation):
            return math.nan
        value = observation.bounded.get(self._goal.name, math.nan)
        return self._sign * value if abs(value) <= HUGE else math.nan

    def _beyond_by_row(self, values: Floats, logarithmic: bool) -> Floats:
        """The values of rows past a bound, on the scale of the ``values`` (rows,) that count; else NaN.

        What is absurdly good is cut: a kernel that does nothing is done at once.
        """
        beyond = self._sign * np.array(self._beyond)
        if logarithmic:
            beyond = np.log(np.where(beyond > 0.0, beyond, np.nan))
        found = self._by_row(self._sign * beyond)
        all_known = np.concatenate([values[~np.isnan(values)], found[~np.isnan(found)]])
        middle = float(np.median(all_known))
        return np.maximum(found, middle - FAR * float(np.median(np.abs(all_known - middle))))

    def _by_row(self, values: Floats) -> Floats:
        """The mean of each row's replicates that have a number; NaN where none has."""
        rows = np.array(self._row_of)
        there = ~np.isnan(values)
        sums = np.bincount(rows[there], values[there], minlength=len(self))
        counts = np.bincount(rows[there], minlength=len(self))
        return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)

    def _cut(self, losses: Floats) -> float:
        """Where the slow side is cut: as far above the median as the best is below, times ``_far_end``.

        The times of a kernel spread over orders of magnitude and only their fast end matters. A process
        that must also explain the slow end fits its length scales to that. As the search crowds around the
        best the median sinks, and the process has less and less to tell apart.
        """
        known = losses[~np.isnan(losses)]
        return (1.0 + self._far_end) * float(np.median(known)) - self._far_end * float(known.min())


def chosen(targets: Targets, most: int = MOST) -> Integers:
    """At most ``most`` rows, as :func:`best_and_some` has them."""
    return best_and_some(targets.best_first, most)


def best_and_some(best_first: Integers, most: int = MOST) -> Integers:
    """At most ``most`` of these rows, sorted: the best half of that many, and others spread evenly."""
    half = most // 2
    if len(best_first) > most:
        spread = np.linspace(half, len(best_first) - 1, most - half).astype(int)
        best_first = np.concatenate([best_first[:half], best_first[spread]])
    return np.sort(best_first)
