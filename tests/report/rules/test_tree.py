"""Learning the tree: it finds what is planted, prefers the simple, and never trades a failure for speed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.hook.rule import Branch, Equals, Leaf, Threshold, leaf_for
from autotune.report.rules.conditions import questions
from autotune.report.rules.tree import FAILS, grow, limited, middles, prices, pruned

NAN = math.nan


def regrets(rows: list[list[float]]) -> np.ndarray:
    return np.array(rows, dtype=np.float64)


def test_a_threshold_lies_between_the_values_with_few_digits() -> None:
    [question] = questions([{"m": 64}, {"m": 960}], ["m"])
    assert question.condition == Threshold(("m",), 200)
    assert question.holds.tolist() == [True, False]


@given(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300))
def test_a_threshold_always_tells_them_apart(one: float, other: float) -> None:
    for question in questions([{"m": one}, {"m": other}], ["m"]):
        assert question.holds.tolist() == [one < other, other < one]
    assert (
        one == other
        or questions([{"m": one}, {"m": other}], ["m"])
        or max(one, other) / min(one, other) < 1.01
    )


def test_a_single_number_is_asked_before_a_product_or_a_ratio() -> None:
    found = questions([{"m": 1, "n": 1}, {"m": 8, "n": 1}, {"m": 8, "n": 64}], ["m", "n"])
    assert [question.condition.to_document() for question in found] == [
        {"product": ["m"], "at_most": 3},
        {"product": ["n"], "at_most": 8},
        {"product": ["m"], "over": ["n"], "at_most": 3},
    ]


def test_numbers_that_are_not_positive_are_asked_by_themselves_alone() -> None:
    found = questions([{"m": 0, "n": 4}, {"m": -3, "n": 2}, {"m": 5, "n": 3}], ["m", "n"])
    assert all(len(q.condition.product) == 1 and not q.condition.over for q in found)  # type: ignore[union-attr]


def test_texts_and_flags_are_asked_for_equality() -> None:
    found = questions(
        [{"t": "half", "c": True}, {"t": "single", "c": True}, {"t": "half", "c": False}], ["t", "c"]
    )
    assert found[0].condition == Equals("t", "half")
    assert found[1].condition == Equals("c", True)
    assert len(found) == 2  # the opposite question is the same


def test_what_one_number_decides_is_one_question() -> None:
    workloads = [{"m": m} for m in (1, 2, 3, 100, 200, 300)]
    node = grow(workloads, ["m"], regrets([[0, 1], [0, 1], [0, 1], [1, 0], [1, 0], [1, 0]]))
    assert node.tree() == Branch(Threshold(("m",), 20), Leaf((0, 1)), Leaf((1, 0)))
    assert node.total == 0


@pytest.mark.parametrize("values", [(1, 9), ("half", "single")])
def test_two_levels_find_what_no_single_question_improves(values: tuple[int | str, ...]) -> None:
    workloads = [{"m": m, "n": n} for m in values for n in values]
    either = regrets([[0, 1], [1, 0], [1, 0], [0, 1]])
    node = grow(workloads, ["m", "n"], either)
    assert node.total == 0
    tree = node.tree()
    assert [leaf_for(tree, w).take[0] for w in workloads] == [0, 1, 1, 0]


def test_where_one_configuration_is_best_there_is_one_leaf() -> None:
    assert grow([{"m": 1}, {"m": 2}], ["m"], regrets([[0, 0.3], [0, 0.2]])).tree() == Leaf((0, 1))
    assert grow([{"m": 1}], ["m"], regrets([[0.5, 0]])).tree() == Leaf((1, 0))


def test_of_equals_the_one_with_the_better_worst_case_is_taken() -> None:
    node = grow([{"m": 1}, {"m": 1}], ["m"], regrets([[0.4, 0.2], [0.0, 0.2]]))
    assert node.take[0] == 1


def test_a_better_mean_comes_before_a_better_worst_case() -> None:
    node = grow([{"m": 1}] * 3, ["m"], regrets([[0.0, 0.3], [0.0, 0.3], [0.4, 0.3]]))
    assert node.take == (0, 1)


def test_a_hole_weighs_more_than_any_regret() -> None:
    node = grow([{"m": 1}, {"m": 2}], ["m"], regrets([[0, 5.0], [NAN, 6.0]]))
    tree = node.tree()
    assert leaf_for(tree, {"m": 2}).take[0] == 1
    assert pruned(node, 100.0).tree() == Leaf((1, 0)), "not even a dear leaf is saved by a failure"


def test_pruning_gives_ever_smaller_trees_from_all_to_one_leaf() -> None:
    rng = np.random.default_rng(0)
    workloads = [{"m": int(m), "n": int(n)} for m, n in rng.integers(1, 1000, (12, 2))]
    losses = rng.exponential(0.2, (12, 5))
    whole = grow(workloads, ["m", "n"], losses - losses.min(axis=1, keepdims=True))
    found = prices(whole)
    assert found == sorted(found)
    sizes = [pruned(whole, price).leaves for price in middles(found)]
    assert sizes[0] == whole.leaves
    assert sizes[-1] == 1
    assert sizes == sorted(sizes, reverse=True)
    for most in range(1, whole.leaves + 1):
        assert limited(whole, most).leaves == max(size for size in sizes if size <= most)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_tree_is_between_one_configuration_for_all_and_the_best_of_each(data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 6))
    columns = data.draw(st.integers(1, 4))
    cell = st.one_of(st.floats(0, 2), st.just(NAN))
    table = regrets([[data.draw(cell) for _ in range(columns)] for _ in range(rows)])
    workloads = [
        {"m": data.draw(st.integers(1, 50)), "t": data.draw(st.sampled_from("ab"))} for _ in range(rows)
    ]
    node = grow(workloads, ["m", "t"], table)
    losses = np.where(np.isnan(table), FAILS, table)
    assert losses.min(axis=1).sum() - 1e-3 <= node.total <= losses.sum(axis=0).min() + 1e-3
    tree = node.tree()
    told = sum(losses[row, leaf_for(tree, w).take[0]] for row, w in enumerate(workloads))
    assert told == pytest.approx(node.total, abs=1e-3)
