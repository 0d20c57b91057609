"""Configurations as numbers: finite ones, and different ones for different configurations."""

import numpy as np
import pytest

from autotune.search.models.features import Features
from autotune.space import OrderedValues, Permutation, Space


@pytest.mark.parametrize(
    "values",
    [(10**15, 10**15 + 1), (2**53, 2**53 + 1, 2**53 + 2), (-1.7e308, 0.0, 1.7e308), (False, True), (7,)],
    ids=str,
)
def test_values_that_are_nearly_the_same_or_very_far_apart_have_finite_features(values):
    knob = OrderedValues("k", values)
    smooth = Features(Space([knob])).of([{"k": value} for value in values]).smooth
    assert np.isfinite(smooth).all()
    assert len({tuple(row) for row in smooth.tolist()}) == len(values)


def test_one_and_true_are_different_items_of_an_order():
    features = Features(Space([Permutation("order", (1, True, "k"))]))
    assert features.row({"order": (1, True, "k")}) == [0, 1, 2]
    assert features.row({"order": (True, 1, "k")}) == [1, 0, 2]


def test_orders_are_alike_by_the_pairs_that_stand_the_same_way_round():
    features = Features(Space([Permutation("order", tuple("abcd"))]))
    assert features.columns.groups.tolist() == [0] * 4 + [1] * 6
    order, swapped, other = features.of([{"order": tuple(o)} for o in ("abcd", "abdc", "dcba")]).smooth
    pairs = slice(4, None)
    assert np.count_nonzero(order[pairs] != swapped[pairs]) == 1
    assert ((order - other)[pairs] ** 2).sum() == pytest.approx(2.0)


@pytest.mark.parametrize("items", [1, 17, 200])
def test_an_order_of_one_or_of_very_many_items_has_their_places_alone(items):
    features = Features(Space([Permutation("order", tuple(range(items)))]))
    assert features.of([{"order": tuple(range(items))}]).smooth.shape == (1, items)
