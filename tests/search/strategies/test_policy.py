"""The gradients are gradients, the draws follow them, and a policy learns."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.search.models.arrays import Floats
from autotune.search.registry import make_strategy
from autotune.search.strategies.policy import Policy
from autotune.search.strategies.policy_heads import Head, Places, head_of
from autotune.space.configuration import Value
from autotune.space.knobs import Assignment, Choice, FloatRange, IntegerRange, OrderedValues, Permutation
from autotune.space.space import Space
from tests.search.spaces import Case, observe, problem, search

KNOBS = [
    OrderedValues("tile", (1, 2, 4, 8)),
    Choice("layout", ("row", "column", "tiled")),
    Permutation("order", tuple("abcd")),
    Assignment("place", ("x", "y", "z"), ("cpu", "gpu")),
    FloatRange("rate", 1e-4, 1.0, scale="log"),
    IntegerRange("width", 1, 1000),
]


def rows_of(head: Head, rng: np.random.Generator, n: int) -> Floats:
    return np.stack([head.row(head.knob.sample(rng)) for _ in range(n)])


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
class TestEveryHead:
    @given(seed=st.integers(0, 2**32 - 1))
    def test_its_gradient_is_that_of_the_log_probability(self, knob, seed):  # type: ignore[no-untyped-def]
        rng = np.random.default_rng(seed)
        head = head_of(knob)
        theta = head.start + 0.5 * rng.standard_normal(len(head.start))
        rows, weights = rows_of(head, rng, 3), rng.standard_normal(3)
        slope = head.gradient(theta, rows, weights, 0.0)
        for place in range(len(theta)):
            step = np.zeros(len(theta))
            step[place] = 1e-6
            ahead, behind = (weights @ head.log_probability(theta + s, rows) for s in (step, -step))
            assert slope[place] == pytest.approx((ahead - behind) / 2e-6, rel=1e-3, abs=1e-4)

    def test_draws_possible_values(self, knob):  # type: ignore[no-untyped-def]
        head = head_of(knob)
        drawn = head.draw(head.start, np.random.default_rng(0), 50)
        assert len(drawn) == 50
        assert all(value in knob for value in drawn)

    def test_the_bonus_alone_leads_back_to_even_odds(self, knob):  # type: ignore[no-untyped-def]
        head = head_of(knob)
        rng = np.random.default_rng(0)
        theta = head.start + rng.standard_normal(len(head.start))
        rows, nothing = rows_of(head, rng, 64), np.zeros(64)
        before = float(np.std(head.log_probability(theta, rows)))
        for _ in range(300):
            theta = theta + 0.2 * head.gradient(theta, rows, nothing, 1.0)
        if len(knob.cells) and len(knob.cells[0].values) <= 64:
            assert float(np.std(head.log_probability(theta, rows))) < 0.5 * before
        else:
            assert theta[1] > head.start[1]  # a range: it widens


@pytest.mark.parametrize("knob", KNOBS[:4], ids=lambda knob: knob.name)
def test_values_are_drawn_as_often_as_their_probability_says(knob):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(1)
    head = head_of(knob)
    theta = head.start + rng.standard_normal(len(head.start))
    drawn = Counter(head.draw(theta, rng, 20_000))
    values = list(drawn)
    chances = np.exp(head.log_probability(theta, np.stack([head.row(value) for value in values])))
    assert chances.sum() <= 1.0 + 1e-9
    assert chances.sum() > 0.99
    seen = np.array([drawn[value] / 20_000 for value in values])
    assert np.abs(seen - chances).max() < 0.015


def chain() -> Case:
    """Ten items that want to be together, in one of two places, the second a little more."""
    items = tuple(f"i{n}" for n in range(10))
    space = Space([Assignment("place", items, ("a", "b", "c"))], constraints=["count(place, 'a') <= 8"])

    def cost(c):  # type: ignore[no-untyped-def]
        places = [c["place"][item] for item in items]
        cuts = sum(one != other for one, other in pairwise(places))
        return 1.0 + cuts + 0.2 * sum(place != "b" for place in places)

    return Case(space, cost, None)


def test_learns_that_neighbours_belong_together() -> None:
    case = chain()
    best = {
        name: [
            min(map(case.cost, search(make_strategy(name, problem(case), seed), case, 80)))
            for seed in range(4)
        ]
        for name in ("policy", "random")
    }
    assert np.mean(best["policy"]) < np.mean(best["random"]) - 1.0


def test_failures_push_away() -> None:
    space = Space([OrderedValues(name, (0, 1, 2, 3)) for name in "abc"])
    case = Case(space, lambda c: None if c["a"] > 0 else 1.0 + c["b"] + c["c"], 64)
    tried = search(Policy(problem(case), 0), case, 28)
    assert sum(c["a"] == 0 for c in tried) >= 11  # of 16 that there are; 7 by chance


def test_each_trial_is_put_into_numbers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best had been put into numbers anew with every trial: to resume 3,000 took most of a minute."""
    seen: list[object] = []
    row = Places.row

    def noted(head: Places, value: Value) -> Floats:
        seen.append(value)
        return row(head, value)

    monkeypatch.setattr(Places, "row", noted)
    space = Space([OrderedValues(name, (0, 1, 2, 3)) for name in "abc"])
    case = Case(space, lambda c: 1.0 + c["a"] + c["b"], 64)
    strategy = Policy(problem(case), 0)
    seen.clear()
    strategy.tell([observe(case, one) for one in space.sample(np.random.default_rng(0), 40)])
    assert len(seen) == 3 * 40
