"""Learning a decision tree whose leaves are configurations. Pure.

The loss of a tree is the sum of the regrets of its choices: the logarithms of the time over the best time
of the workload. Two levels are searched exhaustively (every tree of up to four leaves), then each side
again in the same way. Such a tree is too large; it is pruned by cost and complexity (Breiman et al.,
Classification and Regression Trees, 1984, chapter 3), to an extent that is decided on workloads that were
left out (:mod:`autotune.report.rules.regret`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from autotune.hook.rule import Branch, Condition, Leaf, Tree
from autotune.report.rules.conditions import Question, questions
from autotune.space.configuration import Value

Floats = NDArray[np.float64]

FAILS = 1e3
"""The regret of a configuration that fails for a workload, while trees are compared. It is larger than all
regrets together, so that a tree with fewer failures is better, whatever its regrets. No reported regret
contains it."""

LEAST = 1e-6
"""Smaller gains are ignored."""

PRICE = 2e-3
"""The cost of a leaf while a tree grows, so that of two equally good trees the smaller is found, and noise
is not fitted."""


LOOKED_AHEAD = 40
"""Two levels are searched in nodes of up to so many workloads; with more, one level at a time is enough."""


@dataclass(frozen=True)
class Node:
    """A tree while it is learned: what it would be as a leaf, and the nodes below."""

    loss: float
    """The loss of the node as a leaf, summed over its workloads."""
    take: tuple[int, ...]
    """All columns, the best for these workloads first."""
    condition: Condition | None = None
    then: Node | None = None
    otherwise: Node | None = None

    @property
    def parts(self) -> tuple[Node, ...]:
        return (self.then, self.otherwise) if self.then and self.otherwise else ()

    @property
    def leaves(self) -> int:
        return sum(part.leaves for part in self.parts) or 1

    @property
    def total(self) -> float:
        """The sum of the losses of its leaves."""
        return sum(part.total for part in self.parts) if self.parts else self.loss

    def tree(self) -> Tree:
        if self.condition is None or self.then is None or self.otherwise is None:
            return Leaf(self.take)
        return Branch(self.condition, self.then.tree(), self.otherwise.tree())


def grow(workloads: Sequence[Mapping[str, Value]], names: Sequence[str], regrets: Floats) -> Node:
    """The tree that fits best; ``regrets`` has shape (workloads, configurations), NaN for failures."""
    losses = np.where(np.isnan(regrets), FAILS, regrets)
    return _grown(list(workloads), names, losses)


def _grown(workloads: list[Mapping[str, Value]], names: Sequence[str], losses: Floats) -> Node:
    leaf = _leaf(losses)
    oracle = float(losses.min(axis=1).sum())
    if len(workloads) < 2 or leaf.loss - oracle < PRICE:
        return leaf
    asked = questions(workloads, names)
    best, least = None, leaf.loss + PRICE
    for question in asked:
        cost = _below(asked, losses, question.holds) + _below(asked, losses, ~question.holds)
        if cost < least - LEAST:  # of two equally good questions, the simpler one, which comes first
            best, least = question, cost
    if best is None:
        return leaf
    sides = []
    for holds in (best.holds, ~best.holds):
        kept = [workload for workload, inside in zip(workloads, holds, strict=True) if inside]
        sides.append(_grown(kept, names, losses[holds]))
    return Node(leaf.loss, leaf.take, best.condition, sides[0], sides[1])


def _below(asked: Sequence[Question], losses: Floats, inside: NDArray[np.bool_]) -> float:
    """The least loss of the workloads ``inside`` with at most one more question, plus the price of leaves."""
    own = losses[inside]
    whole = own.sum(axis=0)
    if len(losses) > LOOKED_AHEAD:
        return float(whole.min() + PRICE)
    masks = np.array([question.holds[inside] for question in asked], dtype=np.float64)
    yes = masks @ own
    split = yes.min(axis=1) + (whole - yes).min(axis=1)
    return float(min(whole.min() + PRICE, split.min() + 2 * PRICE))


def _leaf(losses: Floats) -> Node:
    """A leaf that takes the best on the geometric mean; of equal ones, the one with the better worst case."""
    total, worst = losses.sum(axis=0), losses.max(axis=0)
    order = np.lexsort((worst, np.round(total / LEAST)))
    return Node(float(total[order[0]]), tuple(int(place) for place in order))


def pruned(node: Node, price: float) -> Node:
    """The smallest tree that is best if each leaf costs ``price``."""
    if not node.parts:
        return node
    then, otherwise = (pruned(part, price) for part in node.parts)
    kept = Node(node.loss, node.take, node.condition, then, otherwise)
    if node.loss + price <= kept.total + price * kept.leaves:
        return Node(node.loss, node.take)
    return kept


def prices(node: Node) -> list[float]:
    """The prices of a leaf at which the best tree becomes smaller, from 0 to the one that leaves one leaf."""
    found = [0.0]
    while node.parts:
        price = max(min(_link(inner) for inner in _inner(node)), found[-1])
        found.append(price)
        node = pruned(node, price * (1 + 1e-9) + LEAST / 10)
    return found


def _inner(node: Node) -> list[Node]:
    return [node, *(inner for part in node.parts for inner in _inner(part))] if node.parts else []


def _link(node: Node) -> float:
    """The gain of the node's subtree for each leaf beyond the first."""
    return (node.loss - node.total) / (node.leaves - 1)


def limited(node: Node, leaves: int) -> Node:
    """The tree pruned to at most ``leaves`` leaves."""
    for price in prices(node):
        smaller = pruned(node, price * (1 + 1e-9) + LEAST / 10 if price else 0.0)
        if smaller.leaves <= leaves:
            return smaller
    return Node(node.loss, node.take)


def middles(found: Sequence[float]) -> list[float]:
    """A price inside each range in which the best tree stays the same."""
    inner = [math.sqrt(a * b) for a, b in pairwise(found)]
    return [*inner, found[-1] * 2 + LEAST]
