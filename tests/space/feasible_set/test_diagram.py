"""Counted decision diagrams: counts, numbers and paths, on diagrams made by hand and built from rules."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autotune.space.feasible_set.columns import column
from autotune.space.feasible_set.diagram import Diagram, Layer
from autotune.space.feasible_set.factors import draw, wilson
from autotune.space.feasible_set.grouping import codes, group, pack
from autotune.space.feasible_set.layering import Puzzle, build
from autotune.space.feasible_set.ordering import arrange
from autotune.space.feasible_set.terms import Term, Terms


def layer(variable: int, edges: list[list[tuple[int, int]]], certain: list[bool] | None = None) -> Layer:
    """A layer from the (value, child) edges of each of its states."""
    flat = [edge for state in edges for edge in state]
    return Layer(
        variable,
        np.cumsum([0, *map(len, edges)]),
        np.array([value for value, _ in flat], dtype=np.uint8),
        np.array([child for _, child in flat], dtype=np.int32),
        None if certain is None else np.array(certain),
    )


def edges(diagram: Diagram) -> int:
    """What it costs to keep."""
    return sum(len(layer.value) for layer in diagram.layers)


def by_hand() -> Diagram:
    """a in 0..2, b in 0..2: (0, 0) (0, 2) (2, 1); a = 1 leads nowhere."""
    first = layer(0, [[(0, 0), (1, 1), (2, 2)]])
    second = layer(1, [[(0, 0), (2, 0)], [], [(1, 0)]])
    return Diagram((first, second), ([1, 1, 1], [1, 1, 1]))


def test_counts_and_numbers() -> None:
    diagram = by_hand()
    assert diagram.size == diagram.certain == 3
    rows, members = diagram.assignments(np.arange(3))
    assert rows.tolist() == [[0, 0], [0, 2], [2, 1]]
    assert diagram.all_assignments().tolist() == rows.tolist()
    assert diagram.indices(rows, members).tolist() == [0, 1, 2]
    missing = np.array([[1, 0], [0, 1], [2, 2]])
    assert diagram.indices(missing, np.zeros((3, 2), np.int64)).tolist() == [-1, -1, -1]


def test_states_that_lead_nowhere_are_dropped() -> None:
    diagram = by_hand()
    assert [len(count) for count in diagram.counts] == [1, 2, 1]
    assert edges(diagram) == 5


def test_a_diagram_without_paths() -> None:
    empty = Diagram((layer(0, [[(0, 0)]]), layer(1, [[]])), ([1], [1]))
    assert empty.size == empty.certain == 0
    assert empty.all_assignments().shape == (0, 2)
    assert empty.indices(np.array([[0, 0]]), np.zeros((1, 2), np.int64)).tolist() == [-1]
    lost = Diagram((layer(0, [[(0, -1)]]), layer(1, [])), ([1], [1]))
    assert lost.size == 0


def test_a_class_that_stands_for_many() -> None:
    """b's class 1 stands for 5 values: (0, 0), (0, 1) five times, (1, 1) five times."""
    diagram = Diagram(
        (layer(0, [[(0, 0), (1, 1)]]), layer(1, [[(0, 0), (1, 0)], [(1, 0)]])), ([1, 1], [1, 5])
    )
    assert diagram.size == 11
    rows, members = diagram.assignments(np.arange(11))
    assert rows.tolist() == [[0, 0]] + [[0, 1]] * 5 + [[1, 1]] * 5
    assert members[:, 1].tolist() == [0, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    assert diagram.indices(rows, members).tolist() == list(range(11))


def test_counts_past_64_bits() -> None:
    diagram = Diagram((layer(0, [[(0, 0), (1, 0)]]), layer(1, [[(0, 0)]])), ([1, 1], [10**30]))
    assert diagram.size == 2 * 10**30
    indices = np.array([0, 10**30, 2 * 10**30 - 1], dtype=object)
    rows, members = diagram.assignments(indices)
    assert rows[:, 0].tolist() == [0, 1, 1]
    assert members[:, 1].tolist() == [0, 0, 10**30 - 1]
    assert diagram.indices(rows, members).tolist() == indices.tolist()


def test_uncertain_edges_bound_from_below() -> None:
    first = layer(0, [[(0, 0), (1, 0)]])
    second = layer(1, [[(0, 0), (1, 0), (2, 0)]], certain=[True, False, True])
    diagram = Diagram((first, second), ([1, 1], [1, 1, 1]))
    assert (diagram.certain, diagram.size) == (4, 6)


# --- built from rules ----------------------------------------------------------------------------


def puzzle(sizes: list[int], make: object) -> Puzzle:
    terms = Terms()
    values = [terms.variable(v, column(list(range(size)))) for v, size in enumerate(sizes)]
    return Puzzle(
        terms,
        tuple([1] * size for size in sizes),
        tuple(values),
        tuple(make(terms, values)),
        (None,) * len(sizes),
    )  # type: ignore[operator]


def at_most(total: int) -> object:
    def rules(terms: Terms, values: list[Term]) -> list[Term]:
        return [terms.make("<=", (terms.make("+", values), terms.literal(total)))]

    return rules


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(-1, 12), st.integers(1, 40))
@example([4, 4], -1, 1)  # nothing is left, and more edges than may be were made before
def test_a_sum_is_counted_whatever_the_limit(sizes: list[int], total: int, limit: int) -> None:
    paths = {row for row in product(*map(range, sizes)) if sum(row) <= total}
    exact = build(puzzle(sizes, at_most(total)))
    assert exact.size == exact.certain == len(paths)
    assert {tuple(row) for row in exact.all_assignments().tolist()} == paths
    relaxed = build(puzzle(sizes, at_most(total)), limit)
    assert relaxed.certain <= len(paths) <= relaxed.size
    assert {tuple(row) for row in relaxed.all_assignments().tolist()} >= paths


def test_the_width_is_the_number_of_sums_and_not_of_assignments() -> None:
    diagram = build(puzzle([10] * 30, at_most(100)))
    assert max(len(count) for count in diagram.counts) <= 101
    assert edges(diagram) <= 30 * 101 * 10


def test_a_rule_that_nothing_can_violate_any_more_is_forgotten() -> None:
    """Sums of two 0/1 variables and one large one: past the large one all that matters is its side."""

    def rules(terms: Terms, values: list[Term]) -> list[Term]:
        return [terms.make(">=", (terms.make("+", values), terms.literal(10)))]

    diagram = build(puzzle([100, 2, 2], rules))
    assert diagram.size == sum(sum(row) >= 10 for row in product(range(100), range(2), range(2)))
    assert max(len(count) for count in diagram.counts) <= 3


def test_the_order_keeps_variables_of_a_rule_together() -> None:
    def rules(terms: Terms, values: list[Term]) -> list[Term]:
        a, b, c, d = values
        return [terms.make("==", (a, b)), terms.make("==", (c, d)), terms.make("<=", (b, c))]

    given_ = puzzle([8, 8, 8, 8], rules)
    order = arrange(given_.sizes, given_.rules, given_.levels)
    assert sorted(order) == [0, 1, 2, 3]
    assert abs(order.index(0) - order.index(1)) == abs(order.index(2) - order.index(3)) == 1


# --- its tools -----------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(-5, 5), st.sampled_from([0.5, -0.5, 2.0]), st.sampled_from("ab")), min_size=1
    )
)
def test_equal_rows_are_grouped(rows: list[tuple[int, float, str]]) -> None:
    columns = [column(list(values)) for values in zip(*rows, strict=True)]
    number, member = group(pack(map(codes, columns), len(rows)))
    assert len(member) == len(set(rows)) == len(set(number.tolist()))
    assert all(rows[member[n]] == row for n, row in zip(number.tolist(), rows, strict=True))


@pytest.mark.parametrize("wide", [2**62 - 1, 2**40])
def test_packing_past_64_bits(wide: int) -> None:
    numbers = np.array([0, 1, 1, 0])
    number, member = group(pack([(numbers, wide), (numbers, wide), (numbers[::-1].copy(), wide)], 4))
    assert len(member) == 2 and number[0] == number[3] != number[1] == number[2]


@pytest.mark.parametrize("below", [1, 7, 2**62 + 12345, 10**40])
def test_draws_stay_below(below: int) -> None:
    drawn = draw(np.random.default_rng(0), below, 2000)
    assert min(drawn) >= 0 and max(drawn) < below
    mean = sum(int(n) for n in drawn) / 2000
    assert abs(mean - (below - 1) / 2) <= 0.03 * below


def test_an_interval_of_a_share() -> None:
    low, high = wilson(50, 100)
    assert 0.37 < low < 0.5 < high < 0.63


def test_an_interval_of_a_share_ends_exactly_where_none_or_all_were_good() -> None:
    for tried in range(1, 3000):
        assert wilson(0, tried)[0] == 0.0 and wilson(tried, tried)[1] == 1.0
        assert wilson(1, tried + 1)[0] > 0.0 and wilson(tried, tried + 1)[1] < 1.0
