"""How much worse than the best a rule is, on workloads that it was learned from and on others. Pure.

A *policy* maps a workload to the columns that it would take, best first; the first that the constraints
allow for the workload counts. The tree is compared with policies that need no learning: one configuration
for all, that of the nearest workload, the default.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.hook.rule import leaf_for
from autotune.likeness import distance
from autotune.report.rules.tree import FAILS, Floats, Node, grow, limited, middles, prices, pruned
from autotune.space.configuration import Value

Workload = Mapping[str, Value]
Policy = Callable[[Workload], Sequence[int]]

WORTH = 0.01
"""Of trees whose regrets on left-out workloads differ by no more than this, the smallest is taken."""
MOST_LEAVES = 8
MOST_FOLDS = 12
"""With more workloads than this, several are left out at once."""


@dataclass(frozen=True)
class Table:
    """The measured losses of configurations on some workloads."""

    workloads: tuple[Workload, ...]
    names: tuple[str, ...]
    """The facts in which the workloads differ."""
    losses: Floats
    """Logarithms of the metric, smaller is better; shape (workloads, configurations), NaN without a value."""
    forbidden: np.ndarray
    """Of the same shape: whether the constraints forbid the configuration for the workload."""
    found_by: tuple[frozenset[int], ...]
    """For each column, the rows whose search found it; a column that none found was known beforehand."""
    default: int | None
    """The column of the default."""

    @property
    def regrets(self) -> Floats:
        """The losses less the smallest of their row."""
        best: Floats = np.nanmin(self.losses, axis=1, keepdims=True)
        return self.losses - best

    def without(self, out: Sequence[int]) -> tuple[Table, list[int]]:
        """What would be known if the rows ``out`` had not been searched, and which columns are left."""
        gone = frozenset(out)
        rows = [r for r in range(len(self.workloads)) if r not in gone]
        # The default is known without any search, even if a search found nothing better.
        kept = [c for c, by in enumerate(self.found_by) if c == self.default or not by or by - gone]
        return self._part(rows, kept).working(), kept

    def working(self) -> Table:
        """The table without workloads for which no configuration has a value."""
        works = ~np.isnan(self.losses).all(axis=1)
        return self._part(np.flatnonzero(works).tolist(), range(len(self.found_by)))

    def _part(self, rows: Sequence[int], columns: Sequence[int]) -> Table:
        renumbered = {r: n for n, r in enumerate(rows)}
        return Table(
            workloads=tuple(self.workloads[r] for r in rows),
            names=self.names,
            losses=self.losses[np.ix_(rows, columns)],
            forbidden=self.forbidden[np.ix_(rows, columns)],
            found_by=tuple(
                frozenset(renumbered[r] for r in self.found_by[c] if r in renumbered) for c in columns
            ),
            default=columns.index(self.default) if self.default in columns else None,
        )


@dataclass(frozen=True)
class Regret:
    """How much worse than the best of the measured configurations a policy is, over some workloads."""

    mean: float
    """The geometric mean of the ratios to the best; 1 is the best. NaN if no choice works."""
    worst: float
    """The largest of the ratios."""
    failures: int
    """For how many workloads the choice fails, or there is none; ``mean`` and ``worst`` leave these out."""
    workloads: int

    def is_better_than(self, other: Regret) -> bool:
        """Whether it has fewer failures, or as many and a mean that is better by more than :data:`WORTH`."""
        if self.failures != other.failures:
            return self.failures < other.failures
        return self.mean * (1 + WORTH) < other.mean

    def to_document(self) -> dict[str, float | int | None]:
        numbers = {"mean": self.mean, "worst": self.worst}
        ratios = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        return {**ratios, "failures": self.failures, "workloads": self.workloads}


def tree_policy(node: Node) -> Policy:
    tree = node.tree()
    return lambda workload: leaf_for(tree, workload).take


def single_policy(table: Table) -> Policy:
    """One configuration for all workloads: the one with the smallest total regret."""
    losses = np.where(np.isnan(table.regrets), FAILS, table.regrets).sum(axis=0)
    order = tuple(int(place) for place in np.argsort(losses, kind="stable"))
    return lambda workload: order


def nearest_policy(table: Table) -> Policy:
    """The best configuration of the nearest workload; if that is forbidden, of the next nearest."""

    def choose(workload: Workload) -> Sequence[int]:
        apart = [distance(_part(workload, table), _part(other, table)) for other in table.workloads]
        best = np.nanargmin(table.losses, axis=1)
        return [int(best[row]) for row in np.argsort(apart, kind="stable")]

    return choose


def default_policy(table: Table) -> Policy:
    own = () if table.default is None else (table.default,)
    return lambda workload: own


def _part(workload: Workload, table: Table) -> Workload:
    return {name: workload[name] for name in table.names}


def regret_of(policy: Policy, table: Table) -> Regret:
    """The regret of ``policy`` over the workloads of ``table``, each of which must have some value."""
    return _summed([_regret(policy(w), table, row) for row, w in enumerate(table.workloads)])


def _regret(take: Sequence[int], table: Table, row: int) -> float:
    """The logarithm of the ratio to the best; NaN if the configuration that is taken has no value."""
    allowed = [column for column in take if not table.forbidden[row, column]]
    return float(table.regrets[row, allowed[0]]) if allowed else math.nan


def _summed(regrets: Sequence[float]) -> Regret:
    known = [regret for regret in regrets if not math.isnan(regret)]
    mean, worst = (math.exp(np.mean(known)), math.exp(max(known))) if known else (math.nan, math.nan)
    return Regret(float(mean), worst, len(regrets) - len(known), len(regrets))


def doubts(regrets: Mapping[str, Mapping[str, Regret]]) -> tuple[str, ...]:
    """Remarks if one configuration for all was better than the rule, on workloads it was not learned from.

    ``regrets`` are by the set of workloads, then by policy.
    """
    unseen = {"left out": "left out in turn", "held out": "that are held out"}
    return tuple(
        f"for the workloads {who} one configuration for all was better than the rule: --leaves 1 takes it"
        for where, who in unseen.items()
        if where in regrets and regrets[where]["one for all"].is_better_than(regrets[where]["rule"])
    )


def left_out(make: Callable[[Table], Policy], table: Table) -> Regret:
    """The regret if the choice for each workload is learned from the others only."""
    return _summed(_left_out(lambda rest: [make(rest)], table)[0])


def _left_out(make: Callable[[Table], Sequence[Policy]], table: Table) -> list[list[float]]:
    """For each of the policies, the regret on each workload when it was left out.

    With many workloads, several are left out at once, no two of which are neighbours in the file.
    """
    found: list[list[float]] = []
    rows = range(len(table.workloads))
    for first in rows[:MOST_FOLDS]:
        out = rows[first::MOST_FOLDS]
        rest, columns = table.without(out)
        for place, policy in enumerate(make(rest) if rest.workloads else []):
            found.extend([] for _ in range(place + 1 - len(found)))
            for row in out:
                take = [columns[column] for column in policy(table.workloads[row])]
                found[place].append(_regret(take, table, row))
    return found or [[]]


def learn(table: Table, most_leaves: int = MOST_LEAVES, price: float | None = None) -> Node:
    """The tree, grown and then pruned until a larger one is no better on left-out workloads.

    ``price`` is the gain that a leaf must bring; ``None`` means that of :func:`price_of`.
    """
    whole = grow(table.workloads, table.names, table.regrets)
    if price is None:
        price = price_of(table, whole)
    return limited(pruned(whole, price), most_leaves)


def price_of(table: Table, whole: Node) -> float:
    """The gain that a leaf must bring, chosen by the regrets of trees pruned with it on left-out workloads.

    With fewer than three workloads, leaving one out says nothing, and it is :data:`WORTH`.
    """
    tried = middles(prices(whole))
    if len(table.workloads) < 3:
        return WORTH

    def make(rest: Table) -> list[Policy]:
        node = grow(rest.workloads, rest.names, rest.regrets)
        return [tree_policy(pruned(node, price)) for price in tried]

    means = [
        float(np.mean([FAILS if math.isnan(regret) else regret for regret in regrets]))
        for regrets in _left_out(make, table)
    ]
    return max(price for price, mean in zip(tried, means, strict=True) if mean <= min(means) + WORTH)


def left_out_tree(table: Table, most_leaves: int = MOST_LEAVES) -> Regret:
    """The regret of the whole procedure: the choice for each workload is by a tree learned without it.

    With many workloads, the price of a leaf is determined once from all of them; otherwise each time anew.
    """
    many = len(table.workloads) > MOST_FOLDS
    price = price_of(table, grow(table.workloads, table.names, table.regrets)) if many else None
    return left_out(lambda rest: tree_policy(learn(rest, most_leaves, price)), table)
