"""Several goals: the candidate that is expected to add most to the hypervolume of the front.

Each goal has a Gaussian process of its own over the same candidates. Given independent normal predictions
the expected hypervolume improvement (Emmerich, Giannakoglou and Naujoks, IEEE Transactions on Evolutionary
Computation 10(4), 2006) has a closed form: what the front leaves free is cut into boxes
(:func:`~autotune.search.acquisition.pareto.free_boxes`), and in each box the expectation is a product over
the goals (Yang, Emmerich, Deutz and Bäck, Journal of Global Optimization 75, 2019). It is computed as a
logarithm, which keeps an order among the hopeless (Ament et al., NeurIPS 2023).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import logsumexp

from autotune.search.acquisition.expected_improvement import log_expected_improvement
from autotune.search.acquisition.pareto import contributions, free_boxes, non_dominated
from autotune.search.candidates.climb import Candidate, best_first, best_found, rounded
from autotune.search.candidates.pool import Pools
from autotune.search.contract import Observation, Problem
from autotune.search.models.arrays import Floats, Integers
from autotune.search.models.bounds import is_bounded
from autotune.search.models.features import Features
from autotune.search.models.history import History, Targets
from autotune.search.models.surrogate import Prediction, Surrogate, fitted_next
from autotune.space.configuration import Configuration

INCUMBENTS = 4
"""All neighbours of so many points of the front are candidates: of those that contribute most to it."""
MARGIN = 0.1
"""The reference point lies behind the worst of the front by this part of the front's extent ..."""
LEAST_EXTENT = 1.0
"""... and at least so many standard deviations of a goal behind its best: the first fronts are a point or
two."""
LONGEST = {2: 64, 3: 16}
"""Over so many points of the front the improvement is computed, by the number of goals; with more, over 8."""


def reference_point(front: Floats) -> Floats:
    """Behind the worst of the ``front`` (n, goals) in each goal, so that its ends count too; shape (goals,).

    The margin is a tenth of its extent, which for fronts of some ten points is about the distance of two
    neighbours, so that ends and middle count alike (Ishibuchi et al., Evolutionary Computation 26(3), 2018).
    Where the front has little extent yet, the spread of all that was measured stands for it.
    """
    nadir, ideal = front.max(axis=0), front.min(axis=0)
    return np.asarray(np.maximum(nadir + MARGIN * (nadir - ideal), ideal + LEAST_EXTENT))


def log_hypervolume_improvement(mean: Floats, spread: Floats, front: Floats, reference: Floats) -> Floats:
    """Logarithm of the expected gain in hypervolume at normal predictions, shapes (n, goals); shape (n,).

    Of a box from ``l`` to ``u`` a point ``y`` dominates the product over the goals of
    ``max(0, u - y) - max(0, l - y)``, whose expectations are expected improvements on ``u`` and on ``l``.
    """
    lower, upper = free_boxes(front, reference)
    total = np.zeros((len(lower), len(mean)))
    for goal in range(len(reference)):
        edges, places = np.unique(np.concatenate([lower[:, goal], upper[:, goal]]), return_inverse=True)
        gains = np.full((len(edges), len(mean)), -np.inf)
        for row in np.flatnonzero(np.isfinite(edges)):
            gains[row] = log_expected_improvement(mean[:, goal], spread[:, goal], float(edges[row]))
        below, above = gains[places[: len(lower)]], gains[places[len(lower) :]]
        with np.errstate(divide="ignore"):
            total += above + np.log1p(-np.exp(np.minimum(below - above, 0.0)))
    return np.asarray(logsumexp(total, axis=0))


@dataclass(frozen=True)
class Front:
    """What is best so far: ``rows`` of the histories, and where they stand in each goal's target."""

    rows: Integers
    points: Floats
    """Shape (rows, goals)."""

    @property
    def reference(self) -> Floats:
        return reference_point(self.points)

    def foremost(self, count: int) -> Front:
        """The ``count`` points that contribute most, ends before others; the largest contribution first."""
        short = self.thinned()
        gains = contributions(short.points, self.reference)
        gains[short.points.argmin(axis=0)] = np.inf
        kept = np.argsort(-gains, kind="stable")[:count]
        return Front(short.rows[kept], short.points[kept])

    def thinned(self) -> Front:
        """At most about :data:`LONGEST` points: the ends, and others spread evenly along the first goal."""
        most = LONGEST.get(self.points.shape[1], 8)
        if len(self.rows) <= most:
            return self
        along = np.argsort(self.points[:, 0], kind="stable")
        even = along[np.linspace(0, len(along) - 1, most).astype(int)]
        kept = np.union1d(even, self.points.argmin(axis=0))
        return Front(self.rows[kept], self.points[kept])


class SeveralGoals:
    """Chooses candidates for a problem with more than one goal, on behalf of a strategy.

    Whatever it keeps follows from the observations alone, in their order.
    """

    def __init__(self, problem: Problem, features: Features, pools: Pools) -> None:
        bounds = tuple(replace(metric, goal=None) for metric in problem.metrics if is_bounded(metric))
        judged = problem.judged or problem.goals[0].name
        others = [replace(problem, metrics=(goal, *bounds), judged=judged) for goal in problem.goals[1:]]
        self._problems = [problem, *others]
        """A goal each; the first has all metrics, and so what there is of bounds."""
        self._histories = [History(one, past_bounds=True) for one in self._problems]
        self._features = features
        self._pools = pools
        self._surrogates: list[Surrogate] = []
        self._fitted = -1

    def learn(self, observations: Sequence[Observation]) -> None:
        for history in self._histories:
            history.learn(observations)

    def choose(
        self,
        pending: Sequence[Configuration],
        taken: set[str],
        rng: np.random.Generator,
        *,
        ambition: float,
        likely: float,
        plain: bool,
    ) -> Candidate | None:
        """The best candidate that is not ``taken``; ``None`` without one, and before a success.

        Also ``None`` where rounding defeats a process, so that a bad model never ends a search. What has to
        be improved on is the front moved by ``ambition``, in standard deviations, in each goal. What succeeds
        with a smaller probability than ``likely`` comes last. Where bounds are measured and the choice shall
        be ``plain``, any improvement will do, and none is too unlikely.
        """
        known = self._known()
        if known is None:
            return None
        front, targets = known
        try:
            surrogates = self._current()
            for surrogate, history, target in zip(surrogates, self._histories, targets, strict=True):
                surrogate.learn(history, target)
            pool, bounded = surrogates[0].pool, surrogates[0].bounded
            if plain and bounded:
                ambition = likely = 0.0

            def ranked(columns: Integers) -> Iterator[Candidate]:
                expected = [surrogate.predict(columns, pending) for surrogate in surrogates]
                gain = self._gain(expected, front, ambition)
                reason = partial(self._reason, expected, targets, gain)
                return best_first(pool, columns, np.minimum(expected[0].success, likely), gain, taken, reason)

            near = front.foremost(INCUMBENTS).rows
            columns = pool.near([self._histories[0].configurations[row] for row in near], rng)
            return best_found(pool, ranked(columns), ranked, rng, bounded=bounded, tries=len(taken))
        except np.linalg.LinAlgError:
            self._fitted = -1
            return None

    def _known(self) -> tuple[Front, list[Targets]] | None:
        """The front, and each goal's targets; ``None`` where no trial has all numbers yet."""
        values = np.column_stack([history.values() for history in self._histories])
        whole = np.flatnonzero(~np.isnan(values).any(axis=1))
        if not whole.size:
            return None
        rows = whole[non_dominated(values[whole])]
        targets = [history.targets(spared=rows) for history in self._histories]
        there = [target for target in targets if target is not None]
        return Front(rows, np.column_stack([target.values[rows] for target in there])), there

    def _current(self) -> list[Surrogate]:
        """The surrogates, over the same candidates, made anew when a fit is due."""
        told = self._histories[0].told
        count = fitted_next(self._problems, told, self._fitted)
        if not self._surrogates or count != self._fitted:
            # To the first observations alone, so that a resumed search has the same processes.
            pool = self._pools.draw(self._features, count)
            first = told[:count]
            self._surrogates = [
                Surrogate(problem, self._features, first, pool, success=goal == 0)
                for goal, problem in enumerate(self._problems)
            ]
            self._fitted = count
        return self._surrogates

    def _gain(self, expected: Sequence[Prediction], front: Front, ambition: float) -> Floats:
        """The logarithm of the hypervolume expected at each candidate, times its chance of success."""
        mean = np.column_stack([one.mean for one in expected])
        spread = np.column_stack([one.spread for one in expected])
        points = front.thinned().points - ambition
        gain = log_hypervolume_improvement(mean, spread, points, front.reference)
        return rounded(gain + expected[0].log_success)

    def _reason(
        self, expected: Sequence[Prediction], targets: Sequence[Targets], gain: Floats, row: int
    ) -> Mapping[str, object]:
        names = [goal.name for goal in self._problems[0].goals]
        both = list(zip(names, expected, targets, strict=True))
        return {
            "kind": "expected hypervolume improvement",
            "predicted": {name: target.metric(float(one.mean[row])) for name, one, target in both},
            "spread": {name: float(one.spread[row]) * target.scale for name, one, target in both},
            "logarithmic": {name: target.logarithmic for name, _, target in both},
            "success": float(expected[0].success[row]),
            "log_gain": float(gain[row]),
        }
