"""The answers are what they are said to be, and strategies find better ones than random search."""

from __future__ import annotations

from functools import cache
from itertools import pairwise, permutations

import numpy as np
import pytest

from benchmarks.constrained_spaces import Run, Search, better, rows, run, tried
from benchmarks.known_optima import (
    DEVICES,
    FAMILIES,
    ITEMS,
    branches,
    flow_shop,
    makespans,
    placed,
    placement,
)

TRIES = 45
SEEDS = {"auto": 2, "bandit": 3, "evolution": 6, "policy": 6}
"""Few where a proposal takes long."""


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_is_better_than_the_optimum(family: str) -> None:
    instance = FAMILIES[family](0)
    assert len(instance.space.feasible) == instance.size
    costs = [instance.cost(c) for c in instance.space.sample(np.random.default_rng(0), 200)]
    assert min(costs) >= instance.optimum * (1.0 - 1e-12)
    assert instance.cost(instance.space.default()) > instance.optimum


def test_a_makespan_by_hand() -> None:
    times = np.array([[3, 2], [1, 4]])
    # job 0 first: machine 0 works until 3 and 4, machine 1 until 5 and 9; job 1 first: 1 and 4, 5 and 7
    assert makespans(times, np.array([[0, 1], [1, 0]])).tolist() == [9, 7]


def test_makespans_do_not_depend_on_how_many_are_asked_for() -> None:
    times = np.random.default_rng(0).integers(1, 100, size=(4, 3))
    orders = np.array(list(permutations(range(4))))
    one_by_one = [int(makespans(times, order[None])[0]) for order in orders]
    assert makespans(times, orders).tolist() == one_by_one


def test_what_a_placement_costs() -> None:
    rng = np.random.default_rng(0)
    costs, transfers = rng.uniform(size=(ITEMS, DEVICES)), rng.uniform(size=ITEMS - 1)
    places = rng.integers(DEVICES, size=(1, ITEMS))
    expected = sum(costs[i, d] for i, d in enumerate(places[0]))
    expected += sum(t for t, (a, b) in zip(transfers, pairwise(places[0]), strict=True) if a != b)
    assert placed(costs, transfers, places)[0] == pytest.approx(expected)


def test_instances_differ() -> None:
    assert len({family(number).optimum for family in (branches, flow_shop) for number in range(3)}) == 6


@cache
def regret(family: str, strategy: str, seeds: int) -> float:
    """The mean over seeds, in percent, of the best of :data:`TRIES` tries."""
    instance = FAMILIES[family](0)
    best = [min(tried(instance, strategy, seed, TRIES)) for seed in range(seeds)]
    return 100.0 * (float(np.mean(best)) / instance.optimum - 1.0)


@pytest.mark.parametrize(
    "strategy", ["auto", *(pytest.param(name, marks=pytest.mark.long) for name in SEEDS if name != "auto")]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_is_better_than_random(family: str, strategy: str) -> None:
    assert regret(family, strategy, SEEDS[strategy]) < 0.8 * regret(family, "random", 12)


def test_the_table_pairs_each_search_with_random_on_its_instance_and_seed() -> None:
    control = [Run(Search("branches", 0, "random", s), (50.0 + s,) * 120, 1.0) for s in range(10)]
    good = [Run(Search("branches", 0, "good", s), (49.0 + s,) * 120, 1.0) for s in range(10)]
    table = list(rows([*control, *good], ["good", "random"]))
    assert [line.split("|")[3].strip() for line in table[2:]] == ["good", "random"] * 2
    assert table[2].split("|")[7].strip() == "0.001"  # all ten pairs: 1 / 2**10
    assert better([1.0, 2.0], [1.0, 2.0]) == 1.0


def test_a_search_is_repeatable() -> None:
    search = Search("flow-shop", 1, "evolution", 3, 30)
    assert run(search).regrets == run(search).regrets
    assert placement(1) is placement(1)


def test_a_strategy_without_a_seed_has_no_p() -> None:
    """Three searches of a grid, each paired with twenty of random search, had a p of 8e-10."""
    curve = tuple(float(n) for n in range(120, 0, -1))
    control = [Run(Search("branches", 0, "random", s), (50.0 + s,) * 120, 1.0) for s in range(20)]
    same = [Run(Search("branches", 0, "same", s), curve, 1.0) for s in range(20)]
    table = list(rows([*control, *same], ["same", "random"]))
    (row,) = (row for row in table if "| 120 | same |" in row)
    assert row.split("|")[7:9] == ["  ", "  "]
    (alone,) = (row for row in rows([control[0], same[0]], ["same", "random"]) if "| 120 | same |" in row)
    assert alone.split("|")[7] == " 0.5 "
