"""What a rule is said to cost: on what it saw, without what it is judged on, and where things fail."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from autotune.report.rules.regret import (
    Regret,
    Table,
    default_policy,
    doubts,
    learn,
    left_out,
    left_out_tree,
    nearest_policy,
    regret_of,
    single_policy,
    tree_policy,
)

NAN = math.nan


def table(losses: list[list[float]], found_by: list[set[int]] | None = None, **fields: object) -> Table:
    """Columns are the default, then the winner of each row; workloads are powers of two."""
    values = np.array(losses, dtype=np.float64)
    rows, columns = values.shape
    by = found_by or [set(), *({row} for row in range(columns - 1))]
    return Table(
        workloads=tuple({"m": 2 ** (4 * row)} for row in range(rows)),
        names=("m",),
        losses=values,
        forbidden=fields.get("forbidden", np.zeros_like(values, dtype=bool)),  # type: ignore[arg-type]
        found_by=tuple(map(frozenset, by)),
        default=0,
    )


def test_regrets_are_ratios_to_the_best_of_the_row() -> None:
    known = table([[math.log(3), math.log(2)], [math.log(8), math.log(2)]])
    found = regret_of(default_policy(known), known)
    assert found.mean == pytest.approx(math.sqrt(1.5 * 4))
    assert found.worst == pytest.approx(4)
    assert (found.failures, found.workloads) == (0, 2)


def test_a_failure_is_counted_and_is_in_no_mean() -> None:
    known = table([[NAN, 0.0], [1.0, 0.0]])
    found = regret_of(default_policy(known), known)
    assert found.failures == 1
    assert found.mean == pytest.approx(math.e)
    nothing = regret_of(default_policy(table([[NAN, 0.0]])), table([[NAN, 0.0]]))
    assert math.isnan(nothing.mean)
    assert nothing.to_document() == {"mean": None, "worst": None, "failures": 1, "workloads": 1}


def test_what_is_forbidden_is_passed_over_and_what_fails_is_not() -> None:
    forbidden = np.array([[False, True, False]])
    known = table([[1.0, NAN, 0.0]], forbidden=forbidden)
    assert regret_of(lambda w: (1, 2), known).mean == pytest.approx(1)
    assert regret_of(lambda w: (1, 2), table([[1.0, NAN, 0.0]])).failures == 1


def test_the_left_out_workload_takes_its_own_finding_with_it() -> None:
    # Each row's own winner is perfect there and bad elsewhere: who leaves a row out has only bad ones.
    known = table([[1.0, 0.0, 2.0], [1.0, 2.0, 0.0]])
    assert regret_of(nearest_policy(known), known).mean == pytest.approx(1)
    assert left_out(nearest_policy, known).mean == pytest.approx(math.exp(2))
    # A winner that two searches found is not lost with one of them.
    shared = table([[1.0, 0.0], [1.0, 0.0]], [set(), {0, 1}])
    assert left_out(nearest_policy, shared).mean == pytest.approx(1)


def test_what_only_the_left_out_workload_has_found_is_not_to_be_chosen_for_it() -> None:
    # The winner of row 0 is best everywhere, but without that row nobody had heard of it.
    known = table([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]], [set(), {0}])
    for policy in (single_policy, nearest_policy):
        assert left_out(policy, known).mean == pytest.approx(math.exp(1 / 3))
    assert known.without([0])[1] == [0]
    assert replace(known, default=None).without([1])[0].default is None


def test_from_no_other_workload_nothing_is_learned() -> None:
    assert left_out(single_policy, table([[1.0, 0.0]])).workloads == 0


def test_a_workload_for_which_nothing_works_takes_its_rules_with_it() -> None:
    forbidden = np.array([[False, False], [True, False]])
    known = table([[NAN, NAN], [0.0, 1.0]], forbidden=forbidden).working()
    assert known.workloads == ({"m": 16},)
    assert regret_of(lambda w: (0, 1), known).mean == pytest.approx(math.e)


def test_the_default_is_known_without_the_search_that_found_nothing_better() -> None:
    known = table([[0.0, 1.0], [0.5, 0.0]], [{0}, {1}])
    assert left_out(default_policy, known).failures == 0
    assert known.without([0])[0].default == 0


def test_the_tree_beats_one_for_all_where_sides_differ() -> None:
    rows = [[1.0, 0.0, 0.5]] * 3 + [[1.0, 0.5, 0.0]] * 3
    known = table(rows, [set(), {0, 1, 2}, {3, 4, 5}])
    node = learn(known)
    assert node.leaves == 2
    assert regret_of(tree_policy(node), known).mean == pytest.approx(1)
    assert left_out_tree(known).mean == pytest.approx(1)
    assert regret_of(single_policy(known), known).mean == pytest.approx(math.exp(0.25))


def test_noise_does_not_grow_a_tree() -> None:
    rng = np.random.default_rng(3)
    rows = (0.003 * rng.standard_normal((10, 4))).tolist()
    known = table(rows, [set(), {0, 1}, {2, 3}, {4}])
    assert learn(known).leaves == 1


def test_two_workloads_that_clearly_differ_have_a_leaf_each_and_one_has_one() -> None:
    assert learn(table([[1.0, 0.0, 0.5], [1.0, 0.5, 0.0]])).leaves == 2
    assert learn(table([[1.0, 0.0, 0.005], [1.0, 0.005, 0.0]])).leaves == 1
    assert learn(table([[1.0, 0.0]])).leaves == 1


def test_no_more_leaves_than_asked_for() -> None:
    rows = [[1.0, *(0.0 if own == row // 2 else 0.9 for own in range(4))] for row in range(8)]
    known = table(rows, [set(), *({2 * own, 2 * own + 1} for own in range(4))])
    assert learn(known).leaves == 4
    assert learn(known, 2).leaves <= 2


def test_rows_where_nothing_works_are_left_aside() -> None:
    known = table([[1.0, 0.0], [NAN, NAN]])
    assert len(known.working().workloads) == 1
    assert len(known.without([0])[0].workloads) == 0


def test_findings_keep_their_workloads_where_one_before_them_is_left_aside() -> None:
    """For row 1 only the winner of row 0 works; without both, three rows are left to learn from."""
    own = [[1.0, *(0.0 if column == row else 0.5 for column in range(5))] for row in (2, 3, 4)]
    known = table([[1.0, 0.0, *[NAN] * 4], [NAN, 0.0, *[NAN] * 4], *own])
    rest, columns = known.without([0])
    assert columns == [0, 2, 3, 4, 5]
    assert rest.found_by == (frozenset(), frozenset(), frozenset({0}), frozenset({1}), frozenset({2}))
    assert left_out_tree(known).workloads == 5


def test_many_workloads_are_left_out_in_groups_and_soon_done() -> None:
    rng = np.random.default_rng(0)
    sizes = rng.integers(16, 4096, (60, 2))
    rows = [[0.5, 0.0, 0.4] if m * n < 300_000 else [0.5, 0.4, 0.0] for m, n in sizes.tolist()]
    known = Table(
        workloads=tuple({"m": m, "n": n} for m, n in sizes.tolist()),
        names=("m", "n"),
        losses=np.array(rows),
        forbidden=np.zeros((60, 3), dtype=bool),
        found_by=(frozenset(), frozenset(range(0, 60, 2)), frozenset(range(1, 60, 2))),
        default=0,
    )
    node = learn(known)
    assert node.leaves == 2
    assert left_out_tree(known).mean < 1.05


def test_it_is_said_where_one_for_all_was_better_than_the_rule() -> None:
    good, bad, failing = Regret(1.1, 1.5, 0, 4), Regret(1.2, 1.3, 0, 4), Regret(1.0, 1.0, 1, 4)
    seen = {"learned from": {"rule": bad, "one for all": good}}
    assert doubts(seen) == ()
    assert doubts({"left out": {"rule": good, "one for all": bad}}) == ()
    assert doubts({"left out": {"rule": good, "one for all": Regret(1.095, 1.2, 0, 4)}}) == (), "a trifle"
    (said,) = doubts({**seen, "left out": {"rule": bad, "one for all": good}})
    assert "left out" in said and "--leaves 1" in said
    (said,) = doubts({"held out": {"rule": failing, "one for all": good}})
    assert "held out" in said, "who fails has no ratio"
