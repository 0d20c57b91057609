"""Products and quotients of knobs."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from autotune.search.models.features import Features
from autotune.search.models.products import MOST, Numbers, Products, is_whole
from autotune.space.knobs import Choice, FloatRange, IntegerRange, OrderedValues
from autotune.space.space import Space


def test_only_positive_whole_numbers_count() -> None:
    space = Space(
        [
            OrderedValues("tile", (16, 48, 64)),
            OrderedValues("padding", (0, 1, 2)),
            OrderedValues("rate", (0.5, 1.5)),
            IntegerRange("depth", 1, 8),
            Choice("layout", ("row", "column")),
            OrderedValues("only", (4,)),
            FloatRange("share", 0.0, 1.0),
        ]
    )
    features = Features(space)
    numbers = Numbers(features)
    assert numbers.names == ("tile", "depth")
    tried = features.of([{**space.default(), "tile": 48, "depth": 5}])
    assert np.exp2(numbers.logs(tried.codes)).round(9).tolist() == [[48.0, 5.0]]


def test_what_does_not_exist_divides_everything() -> None:
    space = Space([OrderedValues("a", (2, 4)), OrderedValues("b", (3, 6), when="a == 4")])
    features = Features(space)
    logs = Numbers(features).logs(features.of([{"a": 2}, {"a": 4, "b": 6}]).codes)
    assert np.exp2(logs).round(9).tolist() == [[2.0, 1.0], [4.0, 6.0]]


def test_every_product_of_a_few_numbers_is_there_once() -> None:
    found = {tuple(column) for column in Products.of(4).exponents.T.tolist()}
    expected = {signs for signs in itertools.product((-1.0, 0.0, 1.0), repeat=4) if sum(map(abs, signs)) >= 2}
    assert found == expected
    assert len(Products.of(4).log_prior) == len(expected)


def test_shorter_products_are_thought_likelier() -> None:
    products = Products.of(5)
    of_two, of_three = (np.abs(products.exponents).sum(axis=0) == size for size in (2, 3))
    assert products.log_prior[of_two].min() > products.log_prior[of_three].max()


def test_a_fact_stands_over_products_alone() -> None:
    products = Products.of(3, facts=2)
    plain, of_fact = products.exponents[:, ~products.of_fact], products.exponents[:, products.of_fact]
    assert plain[:3].tolist() == Products.of(3).exponents.tolist() and not plain[3:].any()
    assert (of_fact[3:].sum(axis=0) == 1.0).all() and (of_fact[:3] <= 0.0).all()
    assert len(set(map(tuple, of_fact.T.tolist()))) == of_fact.shape[1] == 2 * 7


def test_sizes_of_a_workload_are_facts() -> None:
    workload = {"rows": 480, "one": 1, "dtype": "float32", "causal": True, "scale": 0.5, "none": 0}
    features = Features(Space([OrderedValues("tile", (16, 48, 64))], workload=workload))
    numbers = Numbers(features)
    assert numbers.facts == {"rows": 480}
    assert np.exp2(numbers.logs(features.of([{"tile": 48}]).codes)).round(9).tolist() == [[48.0, 480.0]]


@given(st.integers(0, 60), st.integers(0, 6))
def test_there_are_never_more_products_than_can_be_looked_at(numbers: int, facts: int) -> None:
    assert Products.of(numbers, facts).exponents.shape[1] <= MOST


@given(st.integers(1, 4096), st.integers(1, 4096))
def test_whole_is_what_divides(over: int, under: int) -> None:
    assert is_whole(np.array([np.log2(over) - np.log2(under)]))[0] == (over % under == 0)
