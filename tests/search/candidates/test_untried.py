"""What is left is drawn evenly, each once, to the last."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from autotune.search.candidates.untried import untried
from autotune.search.contract import Problem
from autotune.search.strategies.random import Random
from autotune.space.knobs import Choice, FloatRange, IntegerRange, OrderedValues, Permutation
from autotune.space.space import Space
from tests.search.spaces import CASES, TIME

LISTABLE = ["kernel", "tiny", "conditional", "permutation", "assignment"]


@pytest.mark.parametrize("name", LISTABLE[1:])
def test_the_first_try_of_random_is_uniform_over_the_feasible_set(name: str) -> None:
    """Pearson's statistic over many seeds stays within six standard deviations of its mean."""
    space = CASES[name]().space
    size = len(space.feasible)
    default = space.configuration({})
    draws = 20 * size
    counts: Counter[str] = Counter()
    rng = np.random.default_rng(0)
    for _ in range(draws):
        counts[next(untried(space, rng, {default.hash}, [default])).hash] += 1
    assert default.hash not in counts
    expected = draws / (size - 1)
    statistic = sum((counts[space.configuration(c).hash] - expected) ** 2 / expected for c in space.feasible)
    statistic -= expected  # the default's own term
    assert abs(statistic - (size - 2)) < 6.0 * np.sqrt(2.0 * (size - 2))


def test_what_is_left_at_the_end_is_as_likely_each() -> None:
    space = Space([IntegerRange("n", 1, 50)])
    known = [space.configuration({"n": n}) for n in range(1, 48)]
    taken = {c.hash for c in known}
    rng = np.random.default_rng(0)
    counts = Counter(next(untried(space, rng, taken, known))["n"] for _ in range(600))
    assert set(counts) == {48, 49, 50}
    assert min(counts.values()) > 150


@pytest.mark.parametrize("name", LISTABLE)
def test_everything_is_drawn_once(name: str) -> None:
    space = CASES[name]().space
    drawn = [c.hash for c in untried(space, np.random.default_rng(0), set())]
    assert len(drawn) == len(set(drawn)) == len(space.feasible)


def test_branches_are_drawn_by_their_size() -> None:
    """Uniform over configurations, not over branches."""
    space = Space([Choice("kind", ("small", "large")), IntegerRange("n", 1, 99, when="kind == 'large'")])
    rng = np.random.default_rng(0)
    drawn = [next(untried(space, rng, set()))["kind"] for _ in range(400)]
    assert drawn.count("small") <= 15  # of 400, 4 expected


def test_ends_where_nothing_is_feasible() -> None:
    space = Space([OrderedValues("n", (1, 2))], constraints=["n > 2"])
    assert list(untried(space, np.random.default_rng(0), set())) == []


def test_a_range_gives_new_values_for_ever() -> None:
    space = Space([FloatRange("rate", 1e-3, 1.0, scale="log")])
    draws = untried(space, np.random.default_rng(0), set())
    rates = [next(draws)["rate"] for _ in range(300)]
    assert len(set(rates)) == 300
    assert 60 < sum(rate < 1e-2 for rate in rates) < 140  # a third of the scale


def test_every_item_of_an_order_is_as_likely_everywhere() -> None:
    space = Space([Permutation("order", tuple("abcde"))])
    strategy = Random(Problem(space, (TIME,)), 0)
    orders = [p.configuration["order"] for p in strategy.ask(120)]
    assert len(set(orders)) == 120  # all of them
    early = Counter(order[0] for order in orders[:60])
    assert min(early.values()) >= 4
