"""Fronts and hypervolumes against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.search.acquisition.pareto import (
    contributions,
    dominates,
    free_boxes,
    hypervolume,
    non_dominated,
    ranks,
)
from autotune.search.models.arrays import Floats

SIDE = 6
"""Points lie on a grid of integers below this, so that volumes can be counted cell by cell."""


def grids(goals: int, most: int = 8) -> st.SearchStrategy[Floats]:
    point = st.lists(st.integers(0, SIDE), min_size=goals, max_size=goals)
    return st.lists(point, min_size=1, max_size=most).map(lambda rows: np.array(rows, dtype=float))


any_goals = st.integers(1, 4).flatmap(grids)


def counted(points: Floats) -> int:
    """The unit cells of the grid that some point dominates."""
    goals = points.shape[1]
    cells = np.stack(np.meshgrid(*[np.arange(SIDE)] * goals, indexing="ij"), axis=-1).reshape(-1, goals)
    return int(np.any(np.all(points[:, None] <= cells[None], axis=2), axis=0).sum())


def reference(points: Floats) -> Floats:
    return np.full(points.shape[1], float(SIDE))


@given(any_goals)
def test_the_front_is_what_nothing_dominates(points: Floats) -> None:
    brute = [not any(dominates(other, point[None])[0] for other in points) for point in points]
    assert non_dominated(points).tolist() == brute


@given(any_goals)
def test_each_rank_is_dominated_by_the_one_before(points: Floats) -> None:
    found = ranks(points)
    assert ((found == 0) == non_dominated(points)).all()
    for rank in range(1, int(found.max()) + 1):
        for point in points[found == rank]:
            assert any(dominates(other, point[None])[0] for other in points[found == rank - 1])


@settings(max_examples=60)
@given(any_goals)
def test_the_hypervolume_is_the_volume_that_is_dominated(points: Floats) -> None:
    assert hypervolume(points, reference(points)) == counted(points)


@settings(max_examples=60)
@given(any_goals)
def test_a_contribution_is_what_is_missing_without_the_point(points: Floats) -> None:
    for row, contribution in enumerate(contributions(points, reference(points))):
        rest = np.delete(points, row, axis=0)
        assert contribution == counted(points) - (counted(rest) if len(rest) else 0)


@settings(max_examples=60)
@given(any_goals, st.data())
def test_a_point_adds_what_it_dominates_of_the_free_boxes(points: Floats, data: st.DataObject) -> None:
    goals = points.shape[1]
    new = np.array(data.draw(st.lists(st.integers(-2, SIDE), min_size=goals, max_size=goals)), dtype=float)
    lower, upper = free_boxes(points, reference(points))
    added = np.prod(np.maximum(upper - np.maximum(new, lower), 0.0), axis=1).sum()
    both = np.vstack([points, new])
    gain = hypervolume(both, reference(points)) - hypervolume(points, reference(points))
    assert added == pytest.approx(gain)


def test_nothing_below_the_reference_leaves_all_of_it_free() -> None:
    lower, upper = free_boxes(np.array([[2.0, 0.0]]), np.array([1.0, 1.0]))
    assert lower.tolist() == [[-np.inf, -np.inf]] and upper.tolist() == [[1.0, 1.0]]
    assert hypervolume(np.array([[2.0, 0.0]]), np.array([1.0, 1.0])) == 0.0


def test_equal_points_are_on_the_front_together_and_contribute_nothing() -> None:
    points = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 2.0]])
    assert non_dominated(points).all()
    assert contributions(points, np.array([3.0, 3.0])).tolist() == [0.0, 0.0, 1.0]
