"""Several goals at once: which points are best, and how much of the space of goals they take.

All goals are minimised here. A point *dominates* another where it is nowhere worse and somewhere better;
the points that none dominates are the Pareto front. The *hypervolume* of some points is the volume that
they dominate, up to a reference point: the one measure of a front that grows whenever the front does
(Zitzler and Thiele, IEEE Transactions on Evolutionary Computation 3(4), 1999).

Fronts found by measuring have tens of points, seldom more than a few hundred, and two or three goals. What
is here is exact, quadratic at worst for two goals, and a factor of the points dearer for each goal more.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from autotune.search.models.arrays import Flags, Floats, Integers


def dominates(one: Floats, others: Floats) -> Flags:
    """Which of ``others`` (n, goals) the point ``one`` (goals,) dominates; shape (n,)."""
    return np.asarray(np.all(one <= others, axis=1) & np.any(one < others, axis=1))


def non_dominated(points: Floats) -> Flags:
    """Which of ``points`` (n, goals) are on the front; shape (n,). Equal points are all on it, or none."""
    left = np.ones(len(points), dtype=bool)
    # In this order whatever dominates a point comes before it: the front's points are met first.
    for row in np.lexsort(points.T[::-1]):
        if left[row]:
            left &= ~dominates(points[row], points)
    return left


def ranks(points: Floats) -> Integers:
    """0 for the front, 1 for the front of the rest, and so on; shape (n,).

    Non-dominated sorting (Deb et al., IEEE Transactions on Evolutionary Computation 6(2), 2002).
    """
    found = np.full(len(points), -1, dtype=np.int64)
    rank = 0
    while (rest := np.flatnonzero(found < 0)).size:
        found[rest[non_dominated(points[rest])]] = rank
        rank += 1
    return found


def hypervolume(points: Floats, reference: Floats) -> float:
    """The volume that ``points`` (n, goals) dominate below ``reference`` (goals,).

    Points that are not below it in every goal add nothing. Two goals are swept once; each goal more is cut
    into slices between the points (While et al., IEEE Transactions on Evolutionary Computation 10(1), 2006).
    """
    inside = np.unique(points[np.all(points < reference, axis=1)], axis=0)
    if not inside.size:
        return 0.0
    if inside.shape[1] == 1:
        return float(reference[0] - inside.min())
    front = inside[non_dominated(inside)]
    if front.shape[1] == 2:
        # By the first goal rising, the second falls: each point adds the strip up to the one before.
        before = np.append(reference[1], front[:-1, 1])
        return float((reference[0] - front[:, 0]) @ (before - front[:, 1]))
    front = front[np.argsort(front[:, -1], kind="stable")]
    heights = np.diff(front[:, -1], append=reference[-1])
    areas = [
        hypervolume(front[: count + 1, :-1], reference[:-1]) if height > 0.0 else 0.0
        for count, height in enumerate(heights)
    ]
    return float(heights @ np.array(areas))


def contributions(points: Floats, reference: Floats) -> Floats:
    """By how much the hypervolume would shrink without each of ``points``; shape (n,).

    0 for a dominated point, and for one that is there twice.
    """
    total = hypervolume(points, reference)
    found = np.zeros(len(points))
    for row in np.flatnonzero(non_dominated(points)):
        found[row] = max(total - hypervolume(np.delete(points, row, axis=0), reference), 0.0)
    return found


def free_boxes(points: Floats, reference: Floats) -> tuple[Floats, Floats]:
    """What ``points`` leave undominated below ``reference``, as disjoint boxes: lower and upper corners.

    Both of shape (boxes, goals); a lower corner may be minus infinity. A point adds to the hypervolume what
    it dominates of each box. ``n`` points leave ``n + 1`` boxes where there are two goals, and a factor of
    up to ``n + 1`` more for each goal more.
    """
    goals = len(reference)
    inside = points[np.all(points < reference, axis=1)]
    if goals == 1:
        top = min(float(inside.min()), float(reference[0])) if inside.size else float(reference[0])
        return np.array([[-np.inf]]), np.array([[top]])
    inside = np.unique(inside[non_dominated(inside)], axis=0)
    inside = inside[np.argsort(inside[:, -1], kind="stable")]
    edges = np.concatenate([[-np.inf], inside[:, -1], [reference[-1]]])
    lowers, uppers = [], []
    for count, (low, high) in enumerate(pairwise(edges.tolist())):
        if high <= low:
            continue
        # In this slice the points so far are in the way, whatever their last goal.
        lower, upper = free_boxes(inside[:count, :-1], reference[:-1])
        lowers.append(np.column_stack([lower, np.full(len(lower), low)]))
        uppers.append(np.column_stack([upper, np.full(len(upper), high)]))
    return np.vstack(lowers), np.vstack(uppers)
