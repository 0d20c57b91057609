"""What an assignment costs, by the arithmetic of a pipeline: a model of few parameters, learned from trials.

Items are put on places (layers on devices, say). Each place has a load: what its items cost there, and what
it costs that items which work together are on different places. The metric is between two extremes, the sum
of the loads (they take turns) and the largest (they work at the same time)::

    load[d] = sum_{i on d} exp(weight_i + slowness_d + own_id) + sum_{i on d, j not} exp(link_ij) / 2
    metric  = (turns * sum_d load[d] + (1 - turns) * max_d load[d]) * exp(effect)

``turns`` is a logistic function of a parameter; other knobs add to that and to ``effect``, by their value.
All parameters have normal priors, so that the model can be asked before it knows much: it then says that
equal shares of neighbouring items are best. Where a metric is known for each place (``busy_gpu0``,
``busy_gpu1``), what the items there cost is fitted to that as well. If all places of a trial take longer than
predicted, and the metric with them, the machine was slower in that minute: noise that they share, called its
pace.

The parameters are those that maximise the posterior, found by Levenberg and Marquardt's method.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from autotune.search.models.arrays import Flags, Floats, Integers

SHARP = 12.0
"""The norm of this power stands for the largest load, since it is smooth."""
NOISE = 0.05
"""Standard deviation of what the model leaves unexplained of the logarithm of the metric."""
BUSY_NOISE = 0.05
"""The same for the logarithm of how long a place was busy."""
PACE = 0.15
"""The same for what all these of one trial have in common: the machine may be slower than a minute ago."""
ITERATIONS = 25
"""The most steps of a fit."""


@dataclass(frozen=True)
class Shape:
    """Sizes of a model: ``items`` on ``places``, and ``others`` values of other knobs in all."""

    items: int
    places: int
    others: int

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(self.items), 2))

    @cached_property
    def parts(self) -> dict[str, slice]:
        """Where each group of parameters is."""
        sizes = {
            "weight": self.items,
            "slowness": self.places,
            "own": self.items * self.places,
            "link": len(self.pairs),
            "turns": 1,
            "effect": self.others,
            "turning": self.others,
        }
        ends = np.cumsum(list(sizes.values()))
        return {
            name: slice(end - size, end)
            for (name, size), end in zip(sizes.items(), ends.tolist(), strict=True)
        }

    @cached_property
    def count(self) -> int:
        return int(self.parts["turning"].stop)


@dataclass(frozen=True)
class Rows:
    """Configurations as the model sees them: ``n`` rows."""

    place: Integers
    """Shape (n, items)."""
    others: Floats
    """Shape (n, others): 1 for the value of each other knob, else 0."""

    def __len__(self) -> int:
        return len(self.place)

    def taken(self, which: Flags) -> Rows:
        return Rows(self.place[which], self.others[which])


@dataclass(frozen=True)
class Data:
    """What was measured. ``values`` are logarithms of the metric, shape (n,); ``busy`` logarithms of shape
    (n, places), NaN where that is not known."""

    rows: Rows
    values: Floats
    busy: Floats

    def taken(self, which: Flags) -> Data:
        return Data(self.rows.taken(which), self.values[which], self.busy[which])


def prior(shape: Shape) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each parameter before anything is measured."""
    mean, spread = np.zeros(shape.count), np.ones(shape.count)
    each = -np.log(shape.items)
    for name, centre, width in (
        ("weight", each, 0.8),
        ("slowness", 0.0, 0.5),
        ("own", 0.0, 0.1),
        ("turns", -1.0, 1.0),
        ("effect", 0.0, 0.3),
        ("turning", 0.0, 1.0),
    ):
        mean[shape.parts[name]], spread[shape.parts[name]] = centre, width
    apart = np.array([j - i for i, j in shape.pairs])
    mean[shape.parts["link"]] = each + np.where(apart == 1, np.log(0.2), np.log(0.03))
    return mean, spread


class Bottleneck:
    """The model of one shape.

    ``level`` is the logarithm of a usual metric. Loads are in units of that: in the metric's own they would
    be too small for floats where it is 1e-310.
    """

    def __init__(self, shape: Shape, level: float) -> None:
        self.shape = shape
        self.level = level
        pairs = np.array(shape.pairs, dtype=np.int64).reshape(-1, 2)
        self._one, self._other = pairs[:, 0], pairs[:, 1]

    def predict(self, parameters: Floats, rows: Rows) -> Floats:
        """The logarithm of the metric, shape (n,)."""
        return self.level + self._evaluate(parameters, rows)[0]

    def slowness(self, parameters: Floats, data: Data) -> Floats:
        """How much slower than usual the machine was in each trial, by how long its places worked.

        Logarithms, of shape (n,); 0 where that is not known.
        """
        _, _, work, _ = self._evaluate(parameters, data.rows)
        known, beside = _beside(work, data.busy - self.level)
        certain = known.sum(axis=1) * (PACE / BUSY_NOISE) ** 2
        return np.asarray(-beside.sum(axis=1) / np.maximum(known.sum(axis=1), 1) * certain / (certain + 1.0))

    def fit(self, data: Data) -> Floats:
        """The most probable parameters. Damping is lowered after a step that helped, and else raised."""
        mean, spread = prior(self.shape)
        found = mean.copy()
        residual, slope = self._residuals(found, data)
        cost = _cost(residual, found, mean, spread)
        damping = 1e-2
        for _ in range(ITERATIONS):
            curvature = slope.T @ slope + np.diag((1.0 + damping) / spread**2)
            downhill = slope.T @ residual + (found - mean) / spread**2
            step = np.linalg.solve(curvature, downhill)
            tried = found - np.clip(step, -2.0, 2.0)
            residual_there, slope_there = self._residuals(tried, data)
            cost_there = _cost(residual_there, tried, mean, spread)
            if cost_there < cost:
                gained, cost = cost - cost_there, cost_there
                found, residual, slope = tried, residual_there, slope_there
                damping = max(damping / 5.0, 1e-6)
                if gained < 1e-4:
                    break
            else:
                damping *= 10.0
        return found

    def _residuals(self, parameters: Floats, data: Data) -> tuple[Floats, Floats]:
        """The residuals, in standard deviations, shape (m,), and their slopes, shape (m, parameters)."""
        predicted, slope, work, by_work = self._evaluate(parameters, data.rows)
        known, beside = _beside(work, data.busy - self.level)
        safe = np.where(known, work, 1.0)
        left = np.hstack([(self.level + predicted - data.values)[:, None] / NOISE, beside / BUSY_NOISE])
        by_busy = np.where(known[:, :, None], by_work / safe[:, :, None], 0.0)
        slopes = np.concatenate([slope[:, None] / NOISE, by_busy / BUSY_NOISE], axis=1)
        together = np.hstack([np.full((len(left), 1), PACE / NOISE), known * (PACE / BUSY_NOISE)])
        left, slopes = _apart(together, left[:, :, None])[:, :, 0], _apart(together, slopes)
        return left.ravel(), slopes.reshape(left.size, -1)

    def _evaluate(self, parameters: Floats, rows: Rows) -> tuple[Floats, Floats, Floats, Floats]:
        """The log metric less the level (n,) and its slopes (n, p); what the items on each place cost there
        (n, places) and its slopes (n, places, p)."""
        parts, places = self.shape.parts, self.shape.places
        n = len(rows)
        there = (rows.place[:, :, None] == np.arange(places)).astype(float)  # (n, items, places)
        own = parameters[parts["own"]].reshape(self.shape.items, places)
        cost = np.exp(parameters[parts["weight"]][:, None] + parameters[parts["slowness"]] + own)
        by_item = there * cost
        work = by_item.sum(axis=1)
        cut = rows.place[:, self._one] != rows.place[:, self._other]  # (n, pairs)
        touched = 0.5 * (there[:, self._one] + there[:, self._other]) * cut[:, :, None]
        by_pair = touched * np.exp(parameters[parts["link"]])[:, None]
        load = work + by_pair.sum(axis=1)
        total = load.sum(axis=1)
        largest = load.max(axis=1) * ((load / load.max(axis=1)[:, None]) ** SHARP).sum(axis=1) ** (1 / SHARP)
        turns = 1.0 / (
            1.0 + np.exp(-(parameters[parts["turns"]][0] + rows.others @ parameters[parts["turning"]]))
        )
        metric = turns * total + (1.0 - turns) * largest
        value = np.log(metric) + rows.others @ parameters[parts["effect"]]

        by_load = (
            turns[:, None] + (1.0 - turns)[:, None] * (load / largest[:, None]) ** (SHARP - 1)
        ) / metric[:, None]
        slope = np.zeros((n, self.shape.count))
        slope[:, parts["weight"]] = np.einsum("nid,nd->ni", by_item, by_load)
        slope[:, parts["slowness"]] = work * by_load
        slope[:, parts["own"]] = (by_item * by_load[:, None, :]).reshape(n, self.shape.items * places)
        slope[:, parts["link"]] = np.einsum("npd,nd->np", by_pair, by_load)
        by_turns = turns * (1.0 - turns) * (total - largest) / metric
        slope[:, parts["turns"]] = by_turns[:, None]
        slope[:, parts["effect"]] = rows.others
        slope[:, parts["turning"]] = by_turns[:, None] * rows.others

        by_work = np.zeros((n, places, self.shape.count))
        by_work[:, :, parts["weight"]] = by_item.transpose(0, 2, 1)
        for place in range(places):
            by_work[:, place, parts["slowness"].start + place] = work[:, place]
            by_work[:, place, parts["own"].start + place : parts["own"].stop : places] = by_item[:, :, place]
        return value, slope, work, by_work


def _beside(work: Floats, busy: Floats) -> tuple[Flags, Floats]:
    """Where it is known how long a place was busy (n, places); how much more the model predicts, else 0."""
    known = ~np.isnan(busy) & (work > 0.0)
    return known, np.where(known, np.log(np.where(known, work, 1.0)) - np.where(known, busy, 0.0), 0.0)


def _apart(together: Floats, what: Floats) -> Floats:
    """Residuals or slopes ``what`` (n, k, p), in units of their own noise, without the noise they share.

    The covariance of each row is the unit matrix plus the outer product of ``together`` (n, k) with itself;
    this multiplies by the inverse of its square root.
    """
    squares = np.square(together).sum(axis=1)
    shrunk = (1.0 - 1.0 / np.sqrt(1.0 + squares)) / squares
    along = np.einsum("nk,nkp->np", together, what)
    return np.asarray(what - np.einsum("n,nk,np->nkp", shrunk, together, along))


def _cost(residual: Floats, parameters: Floats, mean: Floats, spread: Floats) -> float:
    return float(residual @ residual + (((parameters - mean) / spread) ** 2).sum())
